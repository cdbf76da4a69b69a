"""A wheel made to stand alone, run where its ROCm is gone."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rocwheel
from rocbase.errors import CheckError, InputError
from rocwheel.cli import cli
from rocwheel.wheels.needed import linkage_of
from rocwheel.wheels.repair import Made, Request, bundle, check_traced, plan_for
from rocwheel.wheels.write import WheelFile
from rocwheel_samples.fake_rocm import NATIVE, compile_library, make_rocm, make_wheel, use


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, Request]]:
    """A ROCm, a wheel that needs it, and the request to put the one into the other."""
    folder = tmp_path_factory.mktemp("there")
    rocm = make_rocm(folder / "rocm")
    yield make_wheel(folder, rocm), rocm, Request(roots=(rocm,), system=False)


@pytest.fixture(scope="module")
def made(there: tuple[Path, Path, Request], tmp_path_factory: pytest.TempPathFactory) -> Made:
    wheel, _, request = there
    return bundle(wheel, replace(request, targets=("gfx1151",)), tmp_path_factory.mktemp("out"), epoch=0)


def unpacked(wheel: Path, folder: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_its_library_loads_compiles_and_finds_its_kernels_without_the_rocm(
    there: tuple[Path, Path, Request], made: Made, tmp_path: Path
) -> None:
    _, rocm, _ = there
    away = rocm.rename(rocm.with_name("away"))
    try:
        told = use(unpacked(made.path, tmp_path))
    finally:
        away.rename(rocm)
    assert told["nodes"] == 2
    assert told["kernel"] == "kernels for gfx1151"
    assert told["compile"] == "comgr"


def test_a_name_without_a_version_leads_to_the_same_library(made: Made, tmp_path: Path) -> None:
    told = use(unpacked(made.path, tmp_path))
    assert told["count"] == 12
    assert [(one.place, one.of) for one in made.plan.aliases] == [
        ("needy/_rocm/lib/libamdhip64.so", "libamdhip64.so.6")
    ]


def test_everything_loaded_is_the_wheels_or_the_systems(made: Made, tmp_path: Path) -> None:
    loaded = use(unpacked(made.path, tmp_path))["loaded"]
    assert isinstance(loaded, list)
    ours = [one for one in loaded if Path(one).name.startswith(("libamd", "libroc", "libhsa", "libnuma"))]
    assert len(ours) == 4
    assert all(one.startswith(str(tmp_path)) for one in ours)


def test_libraries_of_rocm_keep_their_names_and_others_get_one_of_their_own(made: Made) -> None:
    names = {one.was[-1]: one.name for one in made.plan.libraries}
    assert names["libamdhip64.so.6"] == "libamdhip64.so.6"
    assert names["libnuma.so.1"].startswith("libnuma-")
    assert names["libnuma.so.1"].endswith(".so.1")


def test_rpaths_lead_into_the_wheel_and_nowhere_else(made: Made, tmp_path: Path) -> None:
    site = unpacked(made.path, tmp_path)
    native = linkage_of(site / "needy/_native.so")
    hsa = linkage_of(site / "needy/_rocm/lib/libhsa-runtime64.so.1")
    assert native is not None
    assert hsa is not None
    assert (native.rpath, native.runpath) == (("$ORIGIN/_rocm/lib",), ())
    assert (hsa.rpath, hsa.runpath) == (("$ORIGIN",), ())
    assert any(name.startswith("libnuma-") for name in hsa.needed)


def test_only_the_kernels_of_the_targets_asked_for_are_brought(made: Made) -> None:
    assert {one.place.rpartition("/")[2] for one in made.plan.data} == {
        "Kernels.so-000-gfx1151.hsaco",
        "TensileLibrary_lazy_gfx1151.dat",
        "TensileManifest.txt",
    }
    assert made.plan.dropped == {"gfx1100": 700 + 19, "gfx90a": 600 + 18}


def test_the_wheel_says_what_was_done_to_it(made: Made, tmp_path: Path) -> None:
    assert made.path.name.startswith("needy-1.0+standalone.gfx1151-py3-none-manylinux_")
    site = unpacked(made.path, tmp_path)
    info = next(site.glob("*.dist-info"))
    assert "Version: 1.0+standalone.gfx1151\n" in (info / "METADATA").read_text()
    assert f"Tag: py3-none-{made.plan.platform}\n" in (info / "WHEEL").read_text()
    assert (info / "licenses/needy/_rocm/librocblas.so.4/LICENSE.md").read_text() == "MIT"


def test_auditwheel_finds_nothing_external_and_the_same_platform(made: Made) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", made.path], capture_output=True, text=True, check=True
    )
    told = " ".join(done.stdout.split())
    assert f'consistent with the following platform tag: "{made.plan.platform}"' in told
    assert "requires" not in told


def test_pip_installs_it(made: Made, tmp_path: Path) -> None:
    words: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        tmp_path,
    ]
    subprocess.run([*words, made.path], check=True, capture_output=True)
    assert use(tmp_path)["kernel"] == "kernels for gfx1151"


def test_the_same_request_gives_the_same_bytes(
    there: tuple[Path, Path, Request], made: Made, tmp_path: Path
) -> None:
    wheel, _, request = there
    again = bundle(wheel, replace(request, targets=("gfx1151",)), tmp_path, epoch=0)
    assert again.path.read_bytes() == made.path.read_bytes()


def test_a_request_may_name_gpus_as_people_do(
    there: tuple[Path, Path, Request], made: Made, tmp_path: Path
) -> None:
    wheel, rocm, request = there
    named = bundle(wheel, replace(request, targets=("Strix Halo", "8060s")), tmp_path, epoch=0)
    assert named.path.name == made.path.name
    assert named.path.read_bytes() == made.path.read_bytes()
    again = rocwheel.repair(wheel, tmp_path / "again", rocm=[rocm], gpu="Strix Halo", system=False)
    assert again.path.read_bytes() == made.path.read_bytes()
    with pytest.raises(InputError, match="another maker"):
        plan_for(wheel, replace(request, targets=("RTX 4090",)))


def test_a_plan_writes_nothing_and_names_everything(there: tuple[Path, Path, Request]) -> None:
    wheel, _, request = there
    before = sorted(wheel.parent.iterdir())
    plan = plan_for(wheel, request)
    assert sorted(wheel.parent.iterdir()) == before
    assert [one.was for one in plan.libraries] == [
        ("libamd_comgr.so.3",),
        ("libamdhip64.so", "libamdhip64.so.6"),
        ("libhsa-runtime64.so.1",),
        ("libnuma.so.1",),
        ("librocblas.so.4",),
    ]
    assert plan.libraries[0].wanted_by == ("libamdhip64.so.6",)
    assert [one.name for one in plan.without] == ["libhsa-amd-aqlprofile64.so"]
    assert len(plan.data) == 7


def test_a_name_without_a_version_is_made_where_rocm_has_only_the_version(
    there: tuple[Path, Path, Request], tmp_path: Path
) -> None:
    wheel, rocm, request = there
    name = "libhsa-amd-aqlprofile64.so.1"
    profile = compile_library(rocm / "lib" / name, "int profile(void) { return 5; }", soname=name)
    try:
        made = bundle(wheel, request, tmp_path, epoch=0)
    finally:
        profile.unlink()
    assert ("needy/_rocm/lib/libhsa-amd-aqlprofile64.so", name) in [
        (one.place, one.of) for one in made.plan.aliases
    ]
    site = unpacked(made.path, tmp_path / "site")
    assert ctypes.CDLL(str(site / "needy/_rocm/lib/libhsa-amd-aqlprofile64.so")).profile() == 5


def test_a_target_that_rocm_has_no_kernels_for_is_an_error_that_names_those_it_has(
    there: tuple[Path, Path, Request], tmp_path: Path
) -> None:
    wheel, _, request = there
    with pytest.raises(CheckError) as caught:
        bundle(wheel, replace(request, targets=("gfx1103",)), tmp_path, epoch=0)
    assert "rocblas/library for gfx1103" in caught.value.detail
    assert "gfx1100, gfx1151, gfx90a" in caught.value.detail
    assert list(tmp_path.iterdir()) == []


def test_a_library_that_is_nowhere_is_an_error_that_says_who_wants_it(
    there: tuple[Path, Path, Request], tmp_path: Path
) -> None:
    wheel, rocm, request = there
    gone = rocm / "lib" / "libamd_comgr.so.3.0"
    away = gone.rename(rocm / "comgr")
    try:
        with pytest.raises(CheckError) as caught:
            bundle(wheel, request, tmp_path, epoch=0)
    finally:
        away.rename(gone)
    assert caught.value.detail.startswith("libamd_comgr.so.3  for libamdhip64.so.6 (it links")


def test_an_excluded_library_stays_out_and_the_wheel_is_for_any_linux(
    there: tuple[Path, Path, Request], tmp_path: Path
) -> None:
    wheel, _, request = there
    made = bundle(wheel, replace(request, exclude=("libhsa-runtime64.so.*",)), tmp_path, epoch=0)
    assert {one.was[-1] for one in made.plan.libraries} == {
        "libamd_comgr.so.3",
        "libamdhip64.so.6",
        "librocblas.so.4",
    }
    assert made.plan.kept_out["libhsa-runtime64.so.1"] == "excluded by libhsa-runtime64.so.*"
    assert made.plan.platform == "linux_x86_64"


def test_a_file_that_is_read_can_be_excluded(there: tuple[Path, Path, Request]) -> None:
    wheel, _, request = there
    plan = plan_for(wheel, replace(request, exclude=("rocblas/library/*.hsaco",)))
    assert all(not one.place.endswith(".hsaco") for one in plan.data)


@pytest.mark.parametrize("option", ["exclude", "include"])
def test_a_pattern_that_matches_nothing_is_an_error(there: tuple[Path, Path, Request], option: str) -> None:
    wheel, _, request = there
    pattern: dict[str, Any] = {option: ("libnothing.so*",)}
    asked = Request(roots=request.roots, system=False, **pattern)
    with pytest.raises(InputError, match=f"--{option} libnothing"):
        plan_for(wheel, asked)


def test_an_included_library_is_brought_with_what_it_needs(there: tuple[Path, Path, Request]) -> None:
    wheel, rocm, request = there
    extra = compile_library(
        rocm / "lib" / "libextra.so.1", "int extra(void) { return 1; }", soname="libextra.so.1"
    )
    try:
        plan = plan_for(wheel, replace(request, include=("libextra.so.1",)))
    finally:
        extra.unlink()
    assert ("libextra.so.1", ("--include",)) in [(one.name, one.wanted_by) for one in plan.libraries]


def test_libraries_of_a_wheel_that_is_required_are_left_to_it(
    there: tuple[Path, Path, Request], tmp_path: Path
) -> None:
    _, rocm, request = there
    torch = compile_library(
        tmp_path / "libtorch_hip.so", "int torch(void) { return 1; }", soname="libtorch_hip.so"
    )
    code = NATIVE + "int torch(void); int with_torch(void) { return torch(); }"
    needs = ("librocblas.so.4", "libamdhip64.so.6", str(torch))
    declared = make_wheel(tmp_path / "declared", rocm, code=code, needs=needs, requires=("torch (>=2.8)",))
    plan = plan_for(declared, request)
    assert plan.kept_out == {"libtorch_hip.so": "torch provides it"}
    assert plan.missing == ()
    silent = make_wheel(tmp_path / "silent", rocm, code=code, needs=needs)
    [missing] = plan_for(silent, request).missing
    assert missing.name == "libtorch_hip.so"
    assert "does not list torch as a requirement" in missing.why


def test_the_interpreters_library_is_needed_no_more(
    there: tuple[Path, Path, Request], tmp_path: Path
) -> None:
    _, rocm, request = there
    name = "libpython3.99.so.1.0"
    python = compile_library(rocm / "lib" / name, "int Py_IsInitialized(void) { return 1; }", soname=name)
    try:
        code = NATIVE + "int Py_IsInitialized(void); int python(void) { return Py_IsInitialized(); }"
        wheel = make_wheel(tmp_path, rocm, code=code, needs=("librocblas.so.4", "libamdhip64.so.6", name))
        made = bundle(wheel, request, tmp_path / "out", epoch=0)
    finally:
        python.unlink()
    assert name not in {one.soname for one in made.plan.libraries}
    native = linkage_of(unpacked(made.path, tmp_path / "site") / "needy/_native.so")
    assert native is not None
    assert name not in native.needed
    assert made.plan.platform.startswith("manylinux")


def test_a_wheel_that_needs_nothing_is_an_error_not_a_copy(
    there: tuple[Path, Path, Request], tmp_path: Path
) -> None:
    _, rocm, request = there
    wheel = make_wheel(tmp_path, rocm, code="int one(void) { return 1; }", needs=())
    with pytest.raises(InputError, match="already self-contained"):
        bundle(wheel, request, tmp_path / "out", epoch=0)


def test_a_wheel_that_stands_alone_stays_as_it_is(made: Made, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="already self-contained"):
        bundle(made.path, Request(system=False), tmp_path, epoch=0)


def test_a_wheel_without_libraries_is_refused(
    tmp_path: Path, write_pure_wheel: Callable[[Path], Path]
) -> None:
    with pytest.raises(InputError, match="no library or program"):
        plan_for(write_pure_wheel(tmp_path), Request())


@pytest.fixture
def write_pure_wheel() -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        from rocwheel.wheels.write import write_wheel

        info = "pure-1.0.dist-info"
        out = folder / "pure-1.0-py3-none-any.whl"
        files = [
            WheelFile(path="pure.py", content=b""),
            WheelFile(path=f"{info}/METADATA", content=b"Name: pure\n"),
        ]
        write_wheel(out, [*files, WheelFile(path=f"{info}/WHEEL", content=b"Wheel-Version: 1.0\n")], epoch=0)
        return out

    return write


def test_another_librarys_folder_in_the_wheel_is_kept_in_the_rpath(
    there: tuple[Path, Path, Request], tmp_path: Path
) -> None:
    _, rocm, request = there
    helper = compile_library(
        tmp_path / "libhelper.so.1", "int help(void) { return 7; }", soname="libhelper.so.1"
    )
    code = NATIVE + "int help(void); int helped(void) { return help(); }"
    needs = ("librocblas.so.4", "libamdhip64.so.6", str(helper))
    file = WheelFile(path="needy/lib/libhelper.so.1", content=helper)
    wheel = make_wheel(tmp_path / "wheel", rocm, code=code, needs=needs, files=(file,))
    made = bundle(wheel, request, tmp_path / "out", epoch=0)
    native = linkage_of(unpacked(made.path, tmp_path / "site") / "needy/_native.so")
    assert native is not None
    assert native.rpath == ("$ORIGIN/lib", "$ORIGIN/_rocm/lib")
    shutil.rmtree(tmp_path / "build", ignore_errors=True)
    assert use(tmp_path / "site")["nodes"] == 2


def test_a_library_outside_of_any_package_gets_a_folder_beside(
    there: tuple[Path, Path, Request], tmp_path: Path
) -> None:
    _, rocm, request = there
    made = bundle(make_wheel(tmp_path, rocm, place="_native.so"), request, tmp_path / "out", epoch=0)
    assert made.plan.home == "needy.rocm"
    assert use(unpacked(made.path, tmp_path / "site"))["compile"] == "comgr"


def test_only_the_libraries_that_are_meant_are_served(
    there: tuple[Path, Path, Request], tmp_path: Path
) -> None:
    _, rocm, request = there
    cuda = compile_library(
        tmp_path / "libcudart.so.12", "int cuda(void) { return 1; }", soname="libcudart.so.12"
    )
    other = compile_library(
        tmp_path / "_other.so", "int cuda(void); int other(void) { return cuda(); }", needs=(cuda,)
    )
    file = WheelFile(path="needy/_other.so", content=other)
    wheel = make_wheel(tmp_path / "wheel", rocm, files=(file,))
    assert [one.name for one in plan_for(wheel, request).missing] == ["libcudart.so.12"]
    only = replace(request, only=("_native.so",))
    made = bundle(wheel, only, tmp_path / "out", epoch=0)
    assert check_traced(made, only).problems == ()
    site = unpacked(made.path, tmp_path / "site")
    assert (site / "needy/_other.so").read_bytes() == other.read_bytes()
    assert use(site)["nodes"] == 2
    with pytest.raises(InputError, match="--only"):
        plan_for(wheel, replace(request, only=("_none.so",)))


def test_a_library_that_is_there_and_only_named_is_told(
    there: tuple[Path, Path, Request], tmp_path: Path
) -> None:
    _, rocm, request = there
    name = "libplugin.so.3"
    plugin = compile_library(rocm / "lib" / name, "int plug(void) { return 1; }", soname=name)
    user = compile_library(
        rocm / "lib" / "libuser.so.1",
        'const char *use(int n) { return n ? "libplugin.so.3" : "libGL.so.1"; }',
        soname="libuser.so.1",
    )
    try:
        code = NATIVE + "const char *use(int n); const char *used(void) { return use(1); }"
        needs = ("librocblas.so.4", "libamdhip64.so.6", "libuser.so.1")
        plan = plan_for(make_wheel(tmp_path, rocm, code=code, needs=needs), request)
    finally:
        plugin.unlink()
        user.unlink()
    assert [(one.name, one.wanted_by) for one in plan.named] == [(name, ("libuser.so.1",))]
    assert plan.kept_out == {}


def test_a_program_among_the_scripts_cannot_be_helped_and_is_told(
    there: tuple[Path, Path, Request], tmp_path: Path
) -> None:
    _, rocm, request = there
    wheel = make_wheel(tmp_path, rocm, place="needy-1.0.data/scripts/native")
    [missing] = plan_for(wheel, request).missing
    assert missing.name == "needy-1.0.data/scripts/native"
    assert "move it into the package" in missing.why


def test_the_command_tells_the_plan_and_writes_the_wheel(
    there: tuple[Path, Path, Request], tmp_path: Path
) -> None:
    wheel, rocm, _ = there
    words = ["repair", str(wheel), "--rocm", str(rocm), "--no-system", "--gpu", "gfx1151"]
    told = CliRunner().invoke(cli, [*words, "--plan", "--json"])
    assert told.exit_code == 0, told.output
    plan = json.loads(told.output)
    assert plan["home"] == "needy/_rocm"
    assert [one["soname"] for one in plan["libraries"]][:2] == ["libamd_comgr.so.3", "libamdhip64.so.6"]
    told = CliRunner().invoke(cli, [*words, "-o", str(tmp_path), "--trace"])
    assert told.exit_code == 0, told.output
    assert "libamdhip64.so.6 = libamdhip64.so" in told.output
    assert "nothing from outside" in told.output
    assert "no licence found for: libamd_comgr.so.3" in told.output
    assert len(list(tmp_path.glob("*.whl"))) == 1
