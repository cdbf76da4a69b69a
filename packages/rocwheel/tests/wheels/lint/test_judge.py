"""What a wheel says against what is in it, on libraries that gcc links here."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rocbase.errors import CheckError, InputError
from rocwheel.wheels.lint.judge import judge
from rocwheel.wheels.lint.linking import linking_findings, machine_findings, policy_findings
from rocwheel.wheels.lint.model import Grade, LintFinding
from rocwheel.wheels.metadata import RECORD, RecordRow, record_bytes
from rocwheel.wheels.needed import Linkage, linkage_of
from rocwheel.wheels.write import WheelFile, write_wheel
from rocwheel_samples.fatbin import compressed_bundle, entry_id, gpu_elf, host_elf, plain_bundle
from rocwheel_samples.wheel_making import FILES, small_wheel

TAG = "cp311-cp311-linux_x86_64"
WORDS = {
    "small-1.0.dist-info/METADATA": FILES["small-1.0.dist-info/METADATA"],
    "small-1.0.dist-info/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode(),
}


def link(folder: Path, name: str, *flags: str, source: str = "int answer(void) { return 42; }") -> Path:
    path = folder / name
    done = subprocess.run(
        ("gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", path, f"-L{folder}", *flags),
        input=source,
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    return path


def wheel(folder: Path, files: dict[str, bytes], tag: str = TAG) -> Path:
    out = folder / f"small-1.0-{tag}.whl"
    words = {path: data.replace(TAG.encode(), tag.encode()) for path, data in WORDS.items()}
    write_wheel(
        out, [WheelFile(path=path, content=data) for path, data in (words | files).items()], epoch=315532800
    )
    return out


def told(findings: list[LintFinding]) -> list[tuple[str, str]]:
    return [(str(one.grade), one.kind) for one in findings]


def test_a_sound_wheel_has_no_findings(tmp_path: Path) -> None:
    library = link(tmp_path, "libhelp.so").read_bytes()
    assert judge(wheel(tmp_path, {"small/libhelp.so": library})) == []


def test_gpu_code_that_cannot_be_read_is_an_error_and_embedded_a_warning(tmp_path: Path) -> None:
    sound = plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A))])
    newer = b"CCOB\x09\x00" + compressed_bundle(sound, version=3, method=1)[6:]
    files = {
        "small/good.so": host_elf(sound),
        "small/bad.so": host_elf(newer),
        "small/bad.kpack": b"KPAK" + bytes(60),
        "small/inside.so": host_elf(newer, name=b".rodata"),
    }
    found = [one for one in judge(wheel(tmp_path, files)) if one.kind == "GPU code"]
    assert [(one.grade, one.path) for one in found] == [
        (Grade.ERROR, "small/bad.kpack"),
        (Grade.ERROR, "small/bad.so"),
        (Grade.WARNING, "small/inside.so"),
    ]
    assert all("version" in one.what for one in found)


def test_a_library_that_nobody_brings_is_named_with_who_needs_it(tmp_path: Path) -> None:
    link(tmp_path, "libhelp.so", "-Wl,-soname,libhelp.so.1")
    user = link(tmp_path, "libuser.so", "-Wl,--no-as-needed", "-lhelp").read_bytes()
    (one,) = judge(wheel(tmp_path, {"small/libuser.so": user}))
    assert (one.grade, one.kind, one.path) == (Grade.WARNING, "library from elsewhere", "small/libuser.so")
    assert "libhelp.so.1" in one.what

    both = {"small/libuser.so": user, "small/lib/x.so": (tmp_path / "libhelp.so").read_bytes()}
    assert judge(wheel(tmp_path, both)) == []


@pytest.mark.parametrize(
    ("folder", "grade"),
    [
        ("/opt/rocm/lib", "warning"),
        ("build/lib", "warning"),
        ("$ORIGIN/../../torch/lib", "note"),
        ("$ORIGIN/../lib", None),
        ("${ORIGIN}", None),
    ],
)
def test_a_search_path_out_of_the_wheel_is_told(tmp_path: Path, folder: str, grade: str | None) -> None:
    library = link(tmp_path, "libhelp.so", f"-Wl,-rpath,{folder}").read_bytes()
    found = judge(wheel(tmp_path, {"small/libhelp.so": library}))
    assert told(found) == ([(grade, "search path")] if grade else [])


def test_symbol_versions_newer_than_the_tag_promises_are_an_error(tmp_path: Path) -> None:
    library = linkage_of(link(tmp_path, "libhelp.so"))
    assert library is not None
    new = {"a.so": replace(library, versions={"libc.so.6": ("GLIBC_2.2.5", "GLIBC_2.34")})}
    assert list(policy_findings(new, ["manylinux_2_34_x86_64"])) == []
    (one,) = policy_findings(new, ["manylinux_2_28_x86_64"])
    assert "GLIBC_2.34" in one.what and "GLIBC_2.2.5" not in one.what
    assert "manylinux_2_34_x86_64" in one.next_step
    assert told(list(policy_findings(new, ["manylinux_2_99_x86_64"]))) == [("note", "platform tag")]
    assert list(policy_findings(new, ["linux_x86_64"])) == []


def test_a_library_for_another_machine_is_an_error(tmp_path: Path) -> None:
    library = linkage_of(link(tmp_path, "libhelp.so"))
    assert library is not None
    assert list(machine_findings({"a.so": library}, ["manylinux_2_28_x86_64"])) == []
    assert len(list(machine_findings({"a.so": library}, ["manylinux_2_28_aarch64"]))) == 1
    assert len(list(machine_findings({"a.so": library}, ["any"]))) == 1


@pytest.mark.parametrize(
    ("file", "tag", "kind"),
    [
        ("x.cpython-311-x86_64-linux-gnu.so", TAG, None),
        ("x.cpython-310-x86_64-linux-gnu.so", TAG, "python tag"),
        ("x.abi3.so", "py3-none-linux_x86_64", "python tag"),
        ("x.abi3.so", "cp310-abi3-linux_x86_64", None),
    ],
)
def test_extensions_of_another_python_are_an_error(
    tmp_path: Path, file: str, tag: str, kind: str | None
) -> None:
    library = link(tmp_path, "libhelp.so").read_bytes()
    found = judge(wheel(tmp_path, {f"small/{file}": library}, tag))
    assert told(found) == ([("error", kind)] if kind else [])


def make_pure(folder: Path, program: str) -> Path:
    """A pure wheel with a PE file at a path."""
    files = FILES | {program: b"MZ" + bytes(62)}
    rows = [RecordRow(path=path, sha256=None, size=None) for path in files]
    return small_wheel(folder, files | {"small-1.0.dist-info/RECORD": record_bytes(rows)})


def test_launchers_that_a_pure_wheel_carries_as_data_are_no_machine_code_of_its_own(tmp_path: Path) -> None:
    wheel = make_pure(tmp_path, "small/_vendor/distlib/t64.exe")
    assert not [one for one in judge(wheel) if one.kind == "WHEEL"]


@pytest.mark.parametrize("path", ["small-1.0.data/scripts/run.exe", "small/run.dll", "small/_run.pyd"])
def test_programs_to_run_and_libraries_of_windows_are_machine_code(tmp_path: Path, path: str) -> None:
    finding = next(one for one in judge(make_pure(tmp_path, path)) if one.kind == "WHEEL")
    assert "this is machine code" in finding.what


def test_machine_code_in_a_pure_wheel_is_an_error(tmp_path: Path) -> None:
    library = link(tmp_path, "libhelp.so").read_bytes()
    files = FILES | {"small/libhelp.so": library}
    rows = [RecordRow(path=path, sha256=None, size=None) for path in files]
    pure = small_wheel(tmp_path, files | {"small-1.0.dist-info/RECORD": record_bytes(rows)})
    assert ("error", "WHEEL") in told(judge(pure)) and ("error", "platform tag") in told(judge(pure))


def test_record_is_compared_with_the_files(tmp_path: Path) -> None:
    rows = record_bytes(
        [
            RecordRow(path="small/__init__.py", sha256="0" * 64, size=12),
            RecordRow(path="gone.py", sha256="1" * 64, size=1),
        ]
    )
    found = judge(small_wheel(tmp_path, FILES | {f"small-1.0.dist-info/{RECORD}": rows}))
    assert {one.kind for one in found} == {"RECORD"}
    text = "\n".join(one.what for one in found)
    assert "gone.py" in text and "is not what RECORD says" in text and "METADATA is not in RECORD" in text


def test_a_secret_comes_first(tmp_path: Path) -> None:
    found = judge(
        wheel(tmp_path, {"small/keys.py": b"KEY = 'AKIAIOSFODNN7EXAMPLE'  # /home/alice/keys/a.py\n"})
    )
    assert told(found) == [("error", "AWS access key"), ("note", "home folder")]


def test_what_is_no_wheel_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "small-1.0-py3-none-any.whl"
    path.write_bytes(b"PK\x03\x04 no zip")
    with pytest.raises((CheckError, InputError)):
        judge(path)


def test_a_damaged_library_is_a_finding_and_the_rest_is_judged(tmp_path: Path) -> None:
    good = link(tmp_path, "libhelp.so", "-Wl,-rpath,/opt/x").read_bytes()
    bad = bytearray(good)
    bad[32:40] = b"\xff" * 8  # where the program headers are
    found = judge(wheel(tmp_path, {"small/a.so": bytes(bad), "small/b.so": good}))
    assert told(found) == [("error", "damaged"), ("warning", "search path")]


def test_requirements_are_named_where_a_library_is_missing() -> None:
    library = Linkage(needed=("libtorch.so",), machine=62)
    (one,) = linking_findings({"a.so": library}, ["torch==2.8.0"])
    assert "torch==2.8.0" in one.what
