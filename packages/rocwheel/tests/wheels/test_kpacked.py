"""Libraries whose code lies in kpack archives: never "no GPU code", and joined with what is given too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rocbase.errors import CheckError, FailureClass
from rocwheel.cli import cli
from rocwheel.cli.check_gpu import CANNOT_TELL
from rocwheel.wheels.choose import Target
from rocwheel.wheels.devicecode.code_objects import check_targets
from rocwheel.wheels.devicecode.fatbin import TAKEN_OUT, fat_binary
from rocwheel.wheels.environment import inspect_environment
from rocwheel.wheels.inspection import inspect, inspect_together
from rocwheel.wheels.runs_on import RunsOn, runs_on, runs_together
from rocwheel.wheels.source import MemorySource
from rocwheel_samples.fatbin import pe_file, write_wheel
from rocwheel_samples.index_making import index, page
from rocwheel_samples.kpack import code_for, kpack, kpacked_elf, reference, wrappers
from rocwheel_samples.wheel import make_wheel

NAMES = ("lib/x.so#0", "lib/x.so#1")
DEVICE = "amd-x-device-{}"


def host(folder: Path, version: str = "1.0", *, library: bytes | None = None) -> Path:
    needs = tuple(
        f'{DEVICE.format(target)} == {version}; extra == "device-{target}"'
        for target in ("gfx1100", "gfx1151")
    )
    files = {"x/lib/x.so": library or kpacked_elf(wanted=2)}
    return make_wheel(folder, "x", version, needs=needs, files=files)


def device(folder: Path, target: str, version: str = "1.0", *, names: tuple[str, ...] = NAMES) -> Path:
    files = {f"x/.kpack/x_{target}.kpack": kpack(code_for(target, *names))}
    name = DEVICE.format(target).replace("-", "_")
    return make_wheel(folder, name, version, needs=(f"x == {version}",), files=files)


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.mark.parametrize("told", [None, b""])
def test_a_library_says_under_which_name_and_where_its_code_lies(told: bytes | None) -> None:
    found = fat_binary(MemorySource(kpacked_elf(wanted=3, told=told)))
    assert found is not None and found.reference is not None
    assert found.reference.keys == ("lib/x.so#0", "lib/x.so#1", "lib/x.so#2")
    assert found.reference.search == ("../.kpack/x_@GFXARCH@.kpack",)
    assert not found.has_code and found.unreached == ()


def test_a_dll_says_it_too() -> None:
    sections = {b".hipFatB": wrappers([0, 1], 0), b".hip_fat": b"", b".kpackrf": reference("bin/x.dll")}
    found = fat_binary(MemorySource(pe_file(sections)))
    assert found is not None and found.reference is not None
    assert found.reference.keys == ("bin/x.dll#0", "bin/x.dll#1")


@pytest.mark.parametrize(
    "told",
    [b"\xc1", b"\x80", b"\x93abc", b"\x81\xabkernel_name\xc0", reference("x", []), b"\xdf\xff\xff\xff\xff"],
)
def test_a_reference_that_cannot_be_read_is_never_no_code(tmp_path: Path, told: bytes) -> None:
    with pytest.raises(CheckError, match="its reference to them cannot be read"):
        fat_binary(MemorySource(kpacked_elf(told=told)))
    wheel = host(tmp_path, library=kpacked_elf(told=told))
    done = run("check-gpu", "gfx1151", wheel)
    assert done.exit_code == CANNOT_TELL and "no GPU code" not in done.output
    assert "its code cannot be read" in done.output


def test_code_that_was_cut_out_is_never_no_code(tmp_path: Path) -> None:
    stripped = kpacked_elf(told=b"\0", magic=0x48495046).replace(b".rocm_kpack_ref", b".rocm_kpack_old")
    found = fat_binary(MemorySource(stripped))
    assert found is not None and found.unread == (TAKEN_OUT,)
    wheel = host(tmp_path, library=stripped)
    assert TAKEN_OUT in run("inspect", wheel).output
    assert run("check-gpu", "gfx1151", wheel).exit_code == CANNOT_TELL


def test_the_host_wheel_alone_says_where_its_code_is(tmp_path: Path) -> None:
    wheel = host(tmp_path)
    (one,) = runs_on(wheel, Target("gfx1151"))
    assert one.verdict is RunsOn.UNKNOWN
    assert "kpack archives that are not here (../.kpack/x_@GFXARCH@.kpack)" in one.reason
    assert "amd-x-device-gfx1151==1.0 has those for gfx1151" in one.reason
    done = run("check-gpu", "gfx1151", wheel)
    assert done.exit_code == CANNOT_TELL == 13 and "no GPU code" not in done.output
    shown = run("inspect", wheel)
    assert shown.exit_code == 0 and "not here" in shown.output and "no GPU code" not in shown.output


def test_no_class_of_failure_ends_with_the_exit_code_of_what_cannot_be_told() -> None:
    assert CANNOT_TELL not in {one.exit_code for one in FailureClass}


def test_host_and_device_wheels_are_seen_together(tmp_path: Path) -> None:
    wheels = [host(tmp_path), device(tmp_path, "gfx1151"), device(tmp_path, "gfx1100")]
    done = run("check-gpu", "gfx1151", *wheels)
    assert done.exit_code == 0
    assert "no GPU code" not in done.output
    assert (
        "gfx1151-1.0-py3-none-any.whl holds a kpack archive, whose library was judged with it" in done.output
    )
    assert run("check-gpu", "gfx1100", *wheels).exit_code == 0
    assert run("check-gpu", "gfx1030", *wheels).exit_code == 12
    (library,) = [one for one in inspect_together(wheels).libraries if one.kpacked]
    assert library.kpacked is not None and library.kpacked.targets == ("gfx1100", "gfx1151")
    told = json.loads(run("inspect", "--json", *wheels).stdout)
    assert {one["target_id"]: one["count"] for one in told["totals"]} == {"gfx1100": 2, "gfx1151": 2}


def test_an_archive_for_another_gpu_does_not_run_on_this_one(tmp_path: Path) -> None:
    judged = runs_together([host(tmp_path), device(tmp_path, "gfx1151")], Target("gfx803"))
    assert judged[0].judged[0].verdict is RunsOn.NO and judged[1] == ([], 1)


def test_code_that_an_archive_lacks_is_missed(tmp_path: Path) -> None:
    judged = runs_together([host(tmp_path), device(tmp_path, "gfx1151", names=NAMES[:1])], Target("gfx1151"))
    assert judged[0].judged[0].verdict is RunsOn.NO
    assert judged[0].judged[0].reason.startswith("1 of 2 fat binaries without code for gfx1151")


def test_a_device_wheel_alone_is_judged_by_its_archives(tmp_path: Path) -> None:
    (one,) = runs_on(device(tmp_path, "gfx1151"), Target("gfx1151"))
    assert one.verdict is RunsOn.NATIVE
    assert one.reason.startswith("kpack archives for a library that is not here")


def test_what_the_runtime_does_not_open_or_look_for_does_not_count(tmp_path: Path) -> None:
    code = code_for("gfx1100", *NAMES)
    misnamed = {"x/.kpack/x_gfx1151.kpack": kpack(code)}
    unlisted = {"x/.kpack/x_gfx1100.kpack": kpack(code, changed={"gfx_arches": ["gfx1151"]})}
    elsewhere = {"x/kpack/x_gfx1100.kpack": kpack(code)}
    for number, files in enumerate((misnamed, unlisted, elsewhere)):
        wheels = [host(tmp_path / str(number)), make_wheel(tmp_path / str(number), "y", files=files)]
        assert runs_together(wheels, Target("gfx1100"))[0].judged[0].verdict in (RunsOn.NO, RunsOn.UNKNOWN)


def test_a_search_path_that_climbs_out_finds_nothing(tmp_path: Path) -> None:
    for search in ("../../../x_@GFXARCH@.kpack", "/x_@GFXARCH@.kpack"):
        files = {
            "x/lib/x.so": kpacked_elf(search=[search]),
            "x_gfx1151.kpack": kpack(code_for("gfx1151", *NAMES)),
        }
        judged = runs_on(write_wheel(tmp_path / "x.whl", files), Target("gfx1151"))
        assert RunsOn.UNKNOWN in {one.verdict for one in judged}


def test_files_of_platlib_lie_among_the_packages(tmp_path: Path) -> None:
    files = {
        "x-1.data/platlib/x/lib/x.so": kpacked_elf(),
        "x/.kpack/x_gfx1151.kpack": kpack(code_for("gfx1151", *NAMES)),
    }
    (one,) = runs_on(write_wheel(tmp_path / "x.whl", files), Target("gfx1151"))
    assert one.verdict is RunsOn.NATIVE


def test_wheels_of_different_versions_are_refused(tmp_path: Path) -> None:
    wheels = [host(tmp_path), device(tmp_path, "gfx1151", "2.0")]
    for verb in (("check-gpu", "gfx1151"), ("inspect",)):
        done = run(*verb, *wheels)
        assert done.exit_code != 0
        assert isinstance(done.exception, CheckError)
        assert done.exception.message == "amd-x-device-gfx1151 2.0 has code for x==2.0, and 1.0 is here"
        assert "2.0" in done.exception.next_step


def install(wheels: list[Path], folder: Path) -> Path:
    import zipfile

    site = folder / "lib" / "python3.12" / "site-packages"
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
    return folder


def test_an_environment_is_seen_whole(tmp_path: Path) -> None:
    venv = install([host(tmp_path), device(tmp_path, "gfx1151")], tmp_path / "venv")
    (library,) = [one for one in inspect_environment(venv).libraries if one.kpacked]
    assert library.kpacked is not None and library.kpacked.targets == ("gfx1151",)
    assert all((venv / path).is_file() for path in library.kpacked.archives)
    assert library.distribution == "x 1.0"
    assert run("check-gpu", "gfx1151", venv).exit_code == 0


def test_an_environment_of_two_versions_is_refused(tmp_path: Path) -> None:
    venv = install([host(tmp_path), device(tmp_path, "gfx1151", "2.0")], tmp_path / "venv")
    with pytest.raises(CheckError, match=r"has code for x==2\.0, and 1\.0 is here"):
        runs_on(venv, Target("gfx1151"))


def test_a_check_for_exact_targets_is_not_passed_by_code_that_is_elsewhere(tmp_path: Path) -> None:
    first, *_ = told = check_targets(host(tmp_path), ["gfx1151"])
    assert "in kpack archives" in first and "no GPU code" not in " ".join(told)


def test_several_paths_are_only_listed(tmp_path: Path) -> None:
    assert run("inspect", "--kernels", host(tmp_path), device(tmp_path, "gfx1151")).exit_code == 2


def test_one_file_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    files = {"a.kpack": b"KPAK" + bytes(20), "x/lib/x.so": kpacked_elf()}
    judged = runs_on(write_wheel(tmp_path / "x.whl", files), Target("gfx1151"))
    assert [one.path for one in judged] == ["a.kpack", "x/lib/x.so"]
    with pytest.raises(CheckError, match="kpack"):
        inspect(tmp_path / "x.whl")


def test_an_index_offers_the_device_wheel_of_each_gpu_and_the_host_wheel_to_all(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    host(wheels)
    for target in ("gfx1100", "gfx1151"):
        device(wheels, target)
    index(wheels)
    for target in ("gfx1100", "gfx1151"):
        listed = {one["name"] for one in page(wheels, view=target)["projects"]}
        assert listed == {"x", f"amd-x-device-{target}"}
    told = run("index", "list", wheels).output
    assert [line for line in told.splitlines() if line.startswith("x ") and "every GPU" in line], told
    assert "no GPU" not in told


def test_archives_without_code_of_the_library_are_no_yes(tmp_path: Path) -> None:
    code = code_for("gfx1151", "lib/other.so#0")
    for library in (kpacked_elf(wanted=0), kpacked_elf(wanted=1)):
        files = {"x/lib/x.so": library, "x/.kpack/x_gfx1151.kpack": kpack(code)}
        (one,) = runs_on(write_wheel(tmp_path / "x.whl", files), Target("gfx1151"))
        assert not one.verdict.runs
