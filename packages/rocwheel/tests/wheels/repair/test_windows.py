"""A wheel for Windows and the DLLs that it needs: made and read here, run nowhere."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rocbase.errors import CheckError, InputError
from rocwheel.wheels.repair import Made, Request, bundle, check_traced, plan_for
from rocwheel.wheels.repair.dlls import dll_names_in, imports
from rocwheel.wheels.repair.windows import with_hook
from rocwheel.wheels.write import WheelFile, write_wheel
from rocwheel_samples.tables import each


def make_dll(
    folder: Path, name: str, code: str, *, exports: tuple[str, ...], needs: tuple[Path, ...] = ()
) -> Path:
    """A DLL of no C runtime, by clang and LLVM's linker; its import library lies beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    source, thing, out = folder / f"{name}.c", folder / f"{name}.obj", folder / name
    source.write_text(code)
    subprocess.run(
        ["clang-22", "--target=x86_64-pc-windows-msvc", "-c", "-ffreestanding", source, "-o", thing],
        check=True,
    )
    libraries = [one.with_suffix(".lib") for one in needs]
    words: list[str | Path] = [
        "lld-link-22",
        "/dll",
        "/noentry",
        "/nodefaultlib",
        f"/out:{out}",
        thing,
        *libraries,
    ]
    subprocess.run([*words, *(f"/export:{one}" for one in exports)], check=True, capture_output=True)
    return out


@pytest.fixture(scope="module")
def rocm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ROCm for Windows: HIP, which opens comgr, rocBLAS with kernels, MIOpen with a database."""
    root = tmp_path_factory.mktemp("rocm")
    folder = root / "bin"
    make_dll(folder, "amd_comgr0701.dll", "int comgr(void) { return 3; }", exports=("comgr",))
    code = 'const char *comgr_dll = "amd_comgr0701.dll"; int hip(void) { return 7; }'
    hip = make_dll(folder, "amdhip64_7.dll", code, exports=("hip", "comgr_dll"))
    blas = make_dll(
        folder,
        "rocblas.dll",
        "__declspec(dllimport) int hip(void); int blas(void) { return hip(); }",
        exports=("blas",),
        needs=(hip,),
    )
    code = "__declspec(dllimport) int blas(void); int miopen(void) { return blas(); }"
    make_dll(folder, "MIOpen.dll", code, exports=("miopen",), needs=(blas,))
    kernels, tuned = folder / "rocblas" / "library", root / "share" / "miopen" / "db"
    for path in (kernels, tuned):
        path.mkdir(parents=True)
    for target in ("gfx1100", "gfx1151"):
        (kernels / f"TensileLibrary_lazy_{target}.dat").write_text(target)
    (tuned / "gfx1151.HIP.fdb.txt").write_text("tuned")
    return root


@pytest.fixture(scope="module")
def wheel(rocm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    code = "__declspec(dllimport) int miopen(void); int PyInit__native(void) { return miopen(); }"
    native = make_dll(
        folder, "_native.pyd", code, exports=("PyInit__native",), needs=(rocm / "bin" / "MIOpen.dll",)
    )
    info = "needy-1.0.dist-info"
    out = folder / "needy-1.0-cp311-cp311-win_amd64.whl"
    init = b'"""Needy."""\n\nfrom __future__ import annotations\n\nfrom needy import _native\n'
    files = [
        WheelFile(path="needy/__init__.py", content=init),
        WheelFile(path="needy/_native.pyd", content=native),
        WheelFile(path=f"{info}/METADATA", content=b"Metadata-Version: 2.1\nName: needy\nVersion: 1.0\n"),
        WheelFile(
            path=f"{info}/WHEEL",
            content=b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-win_amd64\n",
        ),
    ]
    write_wheel(out, files, epoch=0)
    return out


@pytest.fixture(scope="module")
def made(rocm: Path, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    request = Request(roots=(rocm,), targets=("gfx1151",))
    yield bundle(wheel, request, tmp_path_factory.mktemp("out"), epoch=0)


def names_in(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


def text_in(path: Path, name: str) -> str:
    with zipfile.ZipFile(path) as archive:
        return archive.read(name).decode()


def test_a_dll_says_what_it_imports_and_holds_the_names_that_it_opens(rocm: Path) -> None:
    assert imports(rocm / "bin" / "rocblas.dll") == ("amdhip64_7.dll",)
    assert "amd_comgr0701.dll" in dll_names_in(rocm / "bin" / "amdhip64_7.dll")


def test_the_dlls_their_kernels_and_what_is_opened_by_name_go_into_the_package(made: Made) -> None:
    assert made.path.name == "needy-1.0+standalone.gfx1151-cp311-cp311-win_amd64.whl"
    assert {name for name in names_in(made.path) if name.startswith("needy/_rocm/")} == {
        "needy/_rocm/__init__.py",
        "needy/_rocm/bin/MIOpen.dll",
        "needy/_rocm/bin/amd_comgr0701.dll",
        "needy/_rocm/bin/amdhip64_7.dll",
        "needy/_rocm/bin/rocblas.dll",
        "needy/_rocm/bin/rocblas/library/TensileLibrary_lazy_gfx1151.dat",
        "needy/_rocm/share/miopen/db/gfx1151.HIP.fdb.txt",
    }


def test_the_package_runs_the_hook_before_its_own_imports(made: Made) -> None:
    init = text_in(made.path, "needy/__init__.py")
    kinds = [(type(one).__name__, getattr(one, "module", "")) for one in ast.parse(init).body]
    assert kinds == [
        ("Expr", ""),
        ("ImportFrom", "__future__"),
        ("ImportFrom", None),
        ("ImportFrom", "needy"),
    ]


def test_the_hook_adds_the_folder_sets_what_is_fixed_and_loads_what_is_opened(
    made: Made, tmp_path: Path
) -> None:
    """Run with stand-ins for what only Windows has: os.add_dll_directory and ctypes.WinDLL."""
    with zipfile.ZipFile(made.path) as archive:
        archive.extractall(tmp_path)
    code = f"""
import ctypes, os, sys
calls = []
os.add_dll_directory = lambda path: calls.append(("folder", path))
ctypes.WinDLL = lambda path: calls.append(("load", path))
sys.path.insert(0, {str(tmp_path)!r})
try:
    import needy
except ImportError as error:
    assert "_native" in str(error)
for kind, path in calls:
    print(kind, os.path.relpath(path, {str(tmp_path)!r}))
print(os.path.relpath(os.environ["MIOPEN_SYSTEM_DB_PATH"], {str(tmp_path)!r}))
"""
    env = {"PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-I", "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "folder needy/_rocm/bin",
        "load needy/_rocm/bin/amd_comgr0701.dll",
        "needy/_rocm/share/miopen/db",
    ]


def test_a_dll_that_is_nowhere_is_an_error_and_windows_own_are_not(
    rocm: Path, wheel: Path, tmp_path: Path
) -> None:
    with pytest.raises(CheckError) as caught:
        bundle(wheel, Request(), tmp_path, epoch=0)
    assert caught.value.detail == "MIOpen.dll  for needy/_native.pyd"
    plan = plan_for(wheel, Request(roots=(rocm,), exclude=("miopen.dll",)))
    assert plan.kept_out == {"MIOpen.dll": "excluded by miopen.dll"}
    assert plan.libraries == ()


def test_a_pattern_that_matches_no_dll_is_an_error(rocm: Path, wheel: Path) -> None:
    with pytest.raises(InputError, match="matches nothing"):
        plan_for(wheel, Request(roots=(rocm,), exclude=("nothing.dll",)))


def test_a_target_without_kernels_is_an_error(rocm: Path, wheel: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckError) as caught:
        bundle(wheel, Request(roots=(rocm,), targets=("gfx1103",)), tmp_path, epoch=0)
    assert "rocblas/library for gfx1103" in caught.value.detail


def test_watching_it_here_is_refused(made: Made) -> None:
    with pytest.raises(InputError, match="Windows"):
        check_traced(replace(made), Request())


def test_a_damaged_dll_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "x.dll"
    path.write_bytes(b"MZ" + bytes(200))
    with pytest.raises(CheckError, match="cannot be read as a DLL"):
        imports(path)


@each(
    ("before", "after"),
    [
        ("", "from . import _rocm as _rocm\n"),
        ("import a\n", "from . import _rocm as _rocm\nimport a\n"),
        ('"""Doc."""', '"""Doc."""\nfrom . import _rocm as _rocm\n'),
        (
            '"""Doc.\n"""\nfrom __future__ import annotations\nimport a\n',
            '"""Doc.\n"""\nfrom __future__ import annotations\nfrom . import _rocm as _rocm\nimport a\n',
        ),
    ],
)
def test_where_the_hook_goes(before: str, after: str) -> None:
    assert with_hook(before, "_rocm") == after


def test_what_is_no_python_takes_no_hook() -> None:
    with pytest.raises(InputError, match="not valid Python"):
        with_hook("def (", "_rocm")
