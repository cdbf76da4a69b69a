"""A wheel that was made to stand alone, loaded and watched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rocbase.errors import CheckError
from rocwheel.wheels.repair import Request, bundle, check_traced, trace
from rocwheel.wheels.repair.trace import judge
from rocwheel_samples.fake_rocm import compile_library, make_rocm, make_wheel

USE = """
import ctypes
native = ctypes.CDLL(f"{SITE}/needy/_native.so")
native.kernel(b"gfx1151"), native.compile(), native.count()
"""


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, Request, Path]]:
    """A ROCm, a wheel that needs it, a request, a program that uses it."""
    folder = tmp_path_factory.mktemp("there")
    rocm = make_rocm(folder / "rocm")
    program = folder / "use.py"
    program.write_text(USE)
    yield make_wheel(folder, rocm), rocm, Request(roots=(rocm,), system=False), program


def test_all_that_a_whole_wheel_loads_is_its_own(
    there: tuple[Path, Path, Request, Path], tmp_path: Path
) -> None:
    wheel, _, request, program = there
    traced = check_traced(bundle(wheel, request, tmp_path, epoch=0), request, [program])
    names = {Path(one).name.partition("-")[0] for one in traced.loaded}
    assert names == {
        "_native.so",
        "libamd_comgr.so.3",
        "libamdhip64.so",
        "libamdhip64.so.6",
        "libhsa",
        "libnuma",
        "librocblas.so.4",
    }
    assert traced.absent == ()
    if traced.files_seen:
        assert "needy/_rocm/lib/rocblas/library/TensileLibrary_lazy_gfx1151.dat" in traced.read


def test_a_library_opened_by_name_that_nobody_knew_of_is_an_error(
    there: tuple[Path, Path, Request, Path], tmp_path: Path
) -> None:
    _, rocm, request, _ = there
    plugin = rocm / "lib" / "libplugin.so.1"
    compile_library(plugin, "int plug(void) { return 1; }", soname="libplugin.so.1")
    code = """
    #include <dlfcn.h>
    const char *hip_compile(void);
    const char *keep(void) { return hip_compile(); }
    __attribute__((constructor)) static void open_it(void) { dlopen("libplugin.so.1", RTLD_LAZY); }
    """
    wheel = make_wheel(tmp_path, rocm, code=code, needs=("libamdhip64.so.6",))
    made = bundle(wheel, request, tmp_path / "out", epoch=0)
    with pytest.raises(CheckError) as caught:
        check_traced(made, request)
    assert caught.value.detail == "libplugin.so.1 is opened by needy/_native.so but was not bundled"
    assert not made.path.exists()
    asked = replace(request, include=("libplugin.so.1",))
    traced = check_traced(bundle(wheel, asked, tmp_path / "out", epoch=0), asked)
    assert any(one.endswith("/libplugin.so.1") for one in traced.loaded)


def test_what_rocm_has_not_either_is_told_and_no_error(
    there: tuple[Path, Path, Request, Path], tmp_path: Path
) -> None:
    _, rocm, request, _ = there
    code = """
    #include <dlfcn.h>
    const char *hip_compile(void);
    const char *keep(void) { return hip_compile(); }
    __attribute__((constructor)) static void open_it(void) { dlopen("libnowhere.so.1", RTLD_LAZY); }
    """
    wheel = make_wheel(tmp_path, rocm, code=code, needs=("libamdhip64.so.6",))
    traced = check_traced(bundle(wheel, request, tmp_path / "out", epoch=0), request)
    assert traced.absent == (("libnowhere.so.1", "needy/_native.so"),)


def test_a_library_that_comes_from_outside_is_an_error(
    there: tuple[Path, Path, Request, Path], tmp_path: Path
) -> None:
    wheel, _, request, _ = there
    plan = bundle(wheel, request, tmp_path, epoch=0).plan
    site = tmp_path / "site"
    lines = [
        f"file=librocblas.so.4 [0];  needed by {site}/needy/_native.so [0]",
        "find library=librocblas.so.4 [0]; searching",
        "  trying file=/opt/rocm/lib/librocblas.so.4",
        "file=librocblas.so.4 [0];  generating link map",
    ]
    traced = judge(lines, [], site=site, plan=plan, request=request, failed={}, files_seen=False)
    assert traced.problems == (
        "librocblas.so.4 came from /opt/rocm/lib/librocblas.so.4, for needy/_native.so",
    )


def test_kernels_that_are_read_where_they_came_from_are_an_error(
    there: tuple[Path, Path, Request, Path], tmp_path: Path
) -> None:
    wheel, _, request, _ = there
    plan = bundle(wheel, request, tmp_path, epoch=0).plan
    lines = [
        f'77 openat(AT_FDCWD, "{plan.data[0].source}", O_RDONLY) = 5',
        '77 openat(AT_FDCWD, "/x", 0) = -1',
    ]
    traced = judge([], lines, site=tmp_path, plan=plan, request=request, failed={}, files_seen=True)
    assert traced.read_outside == (str(plan.data[0].source),)


def test_a_program_that_fails_is_an_error_with_its_words(
    there: tuple[Path, Path, Request, Path], tmp_path: Path
) -> None:
    wheel, _, request, _ = there
    program = tmp_path / "fails.py"
    program.write_text("raise ValueError('not today')")
    traced = trace((made := bundle(wheel, request, tmp_path, epoch=0)).path, made.plan, request, [program])
    assert "not today" in traced.problems[0]
