"""Wheels and folders with only the GPU code that is needed."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from rocbase.errors import CheckError, InputError
from rocwheel.cli.slim import command
from rocwheel.wheels.archive import Deflated
from rocwheel.wheels.choose import Target
from rocwheel.wheels.devicecode.code_objects import code_objects
from rocwheel.wheels.metadata import RecordRow, read_record, record_bytes
from rocwheel.wheels.slim import slim
from rocwheel.wheels.slim.wheel import slim_version
from rocwheel_samples.fatbin import compressed_bundle, entry_id, gpu_elf, plain_bundle
from rocwheel_samples.kpack import kpack, kpacked_elf
from rocwheel_samples.loading import code_in, embed, registered
from rocwheel_samples.tables import each
from rocwheel_samples.wheel_making import FILES, small_wheel

MACHINES = {"gfx803": 0x2A, "gfx1103": 0x44, "gfx1151": 0x4A}


SEEN = "import small, importlib.metadata as m; print(small.answer, m.version('small'))"


def code(target: str, size: int = 20_000) -> bytes:
    return gpu_elf(MACHINES[target], body=hashlib.shake_256(target.encode()).digest(size))


def bundle() -> bytes:
    return plain_bundle([(entry_id(target), code(target)) for target in MACHINES])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return embed(tmp_path_factory.mktemp("embedded"), [bundle()]).read_bytes()


@pytest.fixture
def files(library: bytes) -> dict[str, bytes]:
    loose = {
        f"small/rocblas/library/TensileLibrary_lazy_{target}.{suffix}": code(target, 100)
        for target in MACHINES
        for suffix in ("dat", "co")
    }
    return {
        **FILES,
        "small/libsmall.so": library,
        "small/transform.hsaco": compressed_bundle(bundle(), version=2, method=1),
        "small/kernels/lone_a": code("gfx803"),
        "small/kernels/lone_b": code("gfx1151"),
        **loose,
        "small/miopen/gfx803_36.kdb": b"kernels",
        "small/rocblas/library/TensileLibrary.dat": b"for all",
        "small-1.0.data/scripts/tool": b"#!python\n",
    }


def unpacked(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        return {info.filename: archive.read(info) for info in archive.infolist()}


def test_a_wheel_keeps_what_the_target_needs_and_says_so(tmp_path: Path, files: dict[str, bytes]) -> None:
    wheel = small_wheel(tmp_path, files)
    report = slim(wheel, ["gfx1151"], tmp_path / "out", epoch=0)
    assert report.out == tmp_path / "out" / "small-1.0+gfx1151-py3-none-any.whl"
    assert [one.name for one in (tmp_path / "out").iterdir()] == [report.out.name]
    found = unpacked(report.out)
    others = [name for name in files if "gfx803" in name or "gfx1103" in name or name.endswith("lone_a")]
    kept = {name.replace("small-1.0.d", "small-1.0+gfx1151.d") for name in files if name not in others}
    assert set(found) == kept | {"small-1.0+gfx1151.dist-info/RECORD"}
    assert b"\nVersion: 1.0+gfx1151\n" in found["small-1.0+gfx1151.dist-info/METADATA"]
    assert {one.target for one in code_objects(report.out)} == {"gfx1151"}
    changed = {"small/libsmall.so", "small/transform.hsaco"}
    for name in set(files) & set(found) - changed:
        assert found[name] == files[name]
    (tmp_path / "libsmall.so").write_bytes(found["small/libsmall.so"])
    assert [code_in(one) for one in registered(tmp_path / "libsmall.so")] == [
        {entry_id("gfx1151"): code("gfx1151")}
    ]
    assert code_in(found["small/transform.hsaco"]) == {entry_id("gfx1151"): code("gfx1151")}
    assert {one.path for one in report.changed} == changed | set(others)


def test_record_has_the_hash_of_every_file(tmp_path: Path, files: dict[str, bytes]) -> None:
    report = slim(small_wheel(tmp_path, files), ["gfx803"], epoch=0)
    found = unpacked(report.out)
    rows = {row.path: row for row in read_record(found["small-1.0+gfx803.dist-info/RECORD"])}
    assert rows.keys() == found.keys()
    for name, content in found.items():
        if not name.endswith("/RECORD"):
            assert (rows[name].sha256, rows[name].size) == (hashlib.sha256(content).hexdigest(), len(content))


def test_pip_installs_it_and_python_imports_it(tmp_path: Path, files: dict[str, bytes]) -> None:
    report = slim(small_wheel(tmp_path, files), ["gfx1151", "gfx803"], epoch=0)
    site = tmp_path / "site"
    install: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-index",
        "--no-deps",
        "--target",
        site,
    ]
    subprocess.run([*install, report.out], check=True)
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import small, importlib.metadata as m; print(small.answer, m.version('small'))",
        ],
        env={"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "42 1.0+gfx1151.gfx803\n"


def test_the_same_wheel_and_time_give_the_same_bytes(tmp_path: Path, files: dict[str, bytes]) -> None:
    wheel = small_wheel(tmp_path, files)
    first = slim(wheel, ["gfx1151"], tmp_path / "a", epoch=10**9).out
    assert slim(wheel, ["gfx1151"], tmp_path / "b", epoch=10**9).out.read_bytes() == first.read_bytes()


@each(
    ("before", "targets", "after"),
    [
        ("1.22.2.post3", ["gfx1151"], "1.22.2.post3+gfx1151"),
        ("2.8.0+rocm6.4", ["gfx1151"], "2.8.0+rocm6.4.gfx1151"),
        ("2.8.0+rocm6.4", ["gfx1103", "gfx1151"], "2.8.0+rocm6.4.gfx1103.gfx1151"),
        ("2.8.0+rocm6.4.gfx1103.gfx1151", ["gfx1151"], "2.8.0+rocm6.4.gfx1151"),
        ("1!2.0rc1+gfx803", ["gfx1151"], "1!2.0rc1+gfx1151"),
    ],
)
def test_the_version_names_the_targets_behind_what_it_named_before(
    before: str, targets: list[str], after: str
) -> None:
    assert slim_version(before, [Target(one) for one in targets], set(MACHINES)) == after


def test_features_are_spelled_as_a_version_may() -> None:
    assert slim_version("1.0", [Target("gfx90a", ("xnack-",))], {"gfx90a"}) == "1.0+gfx90a.xnackoff"


@pytest.mark.parametrize(
    "name", ["small/rocblas/library/TensileLibrary_lazy_gfx1151", "small/kernels/lone_b"]
)
def test_files_that_are_missing_for_the_target_are_an_error_that_names_them(
    tmp_path: Path, files: dict[str, bytes], name: str
) -> None:
    rest = {path: content for path, content in files.items() if not path.startswith(name)}
    wheel = small_wheel(tmp_path, rest)
    with pytest.raises(CheckError, match=rf"{Path(name).parent} has files of .* none for gfx1151"):
        slim(wheel, ["gfx1151"], tmp_path / "out", epoch=0)
    assert not list(tmp_path.glob("out/*"))
    report = slim(wheel, ["gfx1151"], tmp_path / "out", epoch=0, allow_missing=True)
    assert report.missing == {str(Path(name).parent): ("gfx1151",)}


def test_a_wheel_without_other_code_is_an_error_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="there is nothing to remove"):
        slim(small_wheel(tmp_path), ["gfx1151"], tmp_path / "out", epoch=0)
    assert not list(tmp_path.glob("out/*"))


def test_a_name_that_would_contradict_the_wheel_is_refused(tmp_path: Path, files: dict[str, bytes]) -> None:
    wheel = small_wheel(tmp_path, files)
    with pytest.raises(InputError, match=r"is called small-1\.0\+gfx1151-py3-none-any\.whl"):
        slim(wheel, ["gfx1151"], wheel, epoch=0)


def test_code_in_a_windows_library_is_left_and_told(tmp_path: Path, files: dict[str, bytes]) -> None:
    dll = b"MZ" + bytes(500) + b".hip_fat" + bytes(500)
    report = slim(small_wheel(tmp_path, {**files, "small/x.dll": dll}), ["gfx1151"], epoch=0)
    assert report.left == {"small/x.dll": "code in Windows libraries is not taken out"}
    assert unpacked(report.out)["small/x.dll"] == dll


def write_tree(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_a_folder_is_copied_with_less_code_and_its_links(tmp_path: Path, files: dict[str, bytes]) -> None:
    tree = write_tree(tmp_path / "tree", files)
    (tree / "small" / "libsmall.so").chmod(0o755)
    (tree / "small" / "libsmall.so.1").symlink_to("libsmall.so")
    (tree / "small" / "kernels" / "link").symlink_to("lone_a")
    (tree / "outside").symlink_to("/etc/passwd")
    (tree / "empty").mkdir()
    out = slim(tree, ["gfx1151"], tmp_path / "new", epoch=0).out
    found = {str(path.relative_to(out)) for path in out.rglob("*") if not path.is_dir()}
    assert found == {
        *(name for name in files if "gfx803" not in name and "gfx1103" not in name and "lone_a" not in name),
        "small/libsmall.so.1",
        "outside",
    }
    assert (out / "empty").is_dir()
    assert str((out / "outside").readlink()) == "/etc/passwd"
    assert (out / "small" / "libsmall.so").stat().st_mode & 0o777 == 0o755
    assert len(registered(out / "small" / "libsmall.so.1")) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "tree"]


def test_a_folder_is_not_written_into_itself(tmp_path: Path, files: dict[str, bytes]) -> None:
    tree = write_tree(tmp_path / "tree", files)
    before = sorted(tree.rglob("*"))
    with pytest.raises(InputError, match="lies inside"):
        slim(tree, ["gfx1151"], tree / "small" / "out", epoch=0)
    assert sorted(tree.rglob("*")) == before


def test_a_record_in_a_folder_is_made_right_again(tmp_path: Path, files: dict[str, bytes]) -> None:
    report = slim(small_wheel(tmp_path, files), ["gfx1151", "gfx803"], epoch=0)
    tree = write_tree(tmp_path / "site", unpacked(report.out))
    out = slim(tree, ["gfx1151"], tmp_path / "new", epoch=0).out
    (record,) = out.glob("*.dist-info/RECORD")
    rows = {row.path: row for row in read_record(record.read_bytes())}
    assert rows.keys() == {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    for name, row in rows.items():
        if row.sha256:
            assert row.sha256 == hashlib.sha256((out / name).read_bytes()).hexdigest()


def test_a_damaged_library_leaves_nothing_behind(tmp_path: Path, files: dict[str, bytes]) -> None:
    files["small/libsmall.so"] = files["small/libsmall.so"][:-3000]
    tree = write_tree(tmp_path / "tree", files)
    for path in (tree, small_wheel(tmp_path, files)):
        with pytest.raises(CheckError):
            slim(path, ["gfx1151"], tmp_path / "out", epoch=0)
    assert not list(tmp_path.glob("out/*"))
    assert not list(tmp_path.glob(".*"))


def test_the_command_tells_what_went(tmp_path: Path, files: dict[str, bytes]) -> None:
    wheel = small_wheel(tmp_path, files)
    done = CliRunner().invoke(command, [str(wheel), "--gpu", "gfx1151", "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "gfx1103, gfx803" in done.output
    assert "6 files of other GPUs left out" in done.output


def test_auto_is_no_guess_where_there_is_no_gpu(
    tmp_path: Path, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocwheel.wheels.asked.find_gpus", lambda by_pci, sysfs: [])
    done = CliRunner().invoke(command, [str(small_wheel(tmp_path, files)), "--gpu", "auto"])
    assert isinstance(done.exception, InputError)
    assert "no AMD GPU that is known was found here" in str(done.exception)


def test_the_report_is_json_if_asked_for(tmp_path: Path, files: dict[str, bytes]) -> None:
    words = [str(small_wheel(tmp_path, files)), "--gpu", "gfx1151", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "rocwheel", "slim", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout)
    assert told["version"] == "1.0+gfx1151"
    assert told["after"] == Path(told["out"]).stat().st_size
    library = next(one for one in told["changed"] if one["path"] == "small/libsmall.so")
    assert library["stayed"] == {"gfx1151": len(code("gfx1151"))}
    assert set(library["went"]) == {"gfx803", "gfx1103"}


def test_kpack_archives_for_other_gpus_go(tmp_path: Path) -> None:
    archives = {
        f"small/.kpack/x_{target}.kpack": kpack({("lib/x.so#0", target): code(target)}) for target in MACHINES
    }
    files = {**FILES, "small/lib/x.so": kpacked_elf(), **archives}
    wheel = small_wheel(tmp_path, files)
    report = slim(wheel, ["gfx1151"], epoch=0)
    left = unpacked(report.out)
    assert {path for path in left if path.endswith(".kpack")} == {"small/.kpack/x_gfx1151.kpack"}
    assert left["small/lib/x.so"] == files["small/lib/x.so"]
    with pytest.raises(CheckError, match=r"has files of kpack archive x for other GPUs and none for gfx906"):
        slim(wheel, ["gfx906"], epoch=0)


def test_a_kpack_archive_for_several_gpus_stays_with_a_word(tmp_path: Path) -> None:
    both = kpack({("lib/x.so#0", target): code(target) for target in ("gfx803", "gfx1151")})
    other = kpack({("lib/x.so#0", "gfx1103"): code("gfx1103")})
    wheel = small_wheel(tmp_path, {**FILES, "small/.kpack/a.kpack": both, "small/.kpack/b.kpack": other})
    report = slim(wheel, ["gfx1151"], epoch=0)
    assert report.left == {"small/.kpack/a.kpack": "a kpack archive that is for gfx803 too"}
    assert [one.path for one in report.changed] == ["small/.kpack/b.kpack"]


def test_a_library_is_inflated_once_for_its_code_and_for_record(
    tmp_path: Path, library: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = RecordRow(path="small/lib.so", sha256=hashlib.sha256(library).hexdigest())
    record = {"small-1.0.dist-info/RECORD": record_bytes([told])}
    wheel = small_wheel(tmp_path, {**FILES, "small/lib.so": library, **record})
    inflated: list[str] = []
    unpacked = Deflated.unpacked

    def counted(member: Deflated) -> Iterator[bytes]:
        yield from unpacked(member)
        inflated.append(member.member.path)

    monkeypatch.setattr(Deflated, "unpacked", counted)
    assert slim(wheel, ["gfx1151"], epoch=0).changed
    assert inflated.count("small/lib.so") == 1


@pytest.mark.parametrize("path", ["small/__init__.py", "small/lib.so", "small/other.co"])
def test_a_wheel_whose_record_contradicts_its_files_is_refused(
    tmp_path: Path, library: bytes, path: str
) -> None:
    files = {
        **FILES,
        "small/lib.so": library,
        "small/other.co": code("gfx803"),
        "small/k.co": code("gfx1151"),
    }
    told = [
        RecordRow(path=name, sha256=hashlib.sha256(content).hexdigest()) for name, content in files.items()
    ]
    record = "small-1.0.dist-info/RECORD"
    sound = small_wheel(tmp_path / "1", {**files, record: record_bytes(told)})
    assert slim(sound, ["gfx1151"], epoch=0).out.is_file()

    false = [replace(row, sha256="0" * 64) if row.path == path else row for row in told]
    wheel = small_wheel(tmp_path / "2", {**files, record: record_bytes(false)})
    with pytest.raises(CheckError, match="RECORD and the files contradict each other") as caught:
        slim(wheel, ["gfx1151"], epoch=0)
    assert path in caught.value.detail
    assert "rocwheel canonicalize --fix-record" in caught.value.next_step
    assert [one.name for one in wheel.parent.iterdir()] == [wheel.name]
