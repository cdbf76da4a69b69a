"""A wheel is checked in the root file system in which it is to run: its libraries are there, or named."""

from __future__ import annotations

from pathlib import Path

from samples.project import TinyProject, make_sources, open_project, put_roots
from tests.making import record_of

from rocwheel_samples.fake_rocm import compile_library, make_wheel
from rocwheel_samples.trees import write_tree
from rocwright.home import Home
from rocwright.plan.make import make_plan
from rocwright.store.model import Output
from rocwright.verify import run

RECIPE = {
    "alpha": {
        "kind": "wheel",
        "run": ["true"],
        "output": [{"name": "wheel", "pattern": "needy-*.whl"}],
        "system": {"build": ["shell"], "check": ["shell"]},
        "check": [
            {"name": "wheel", "kind": "wheel"},
            {"name": "starts", "kind": "script", "script": "checks/starts.py"},
        ],
    }
}


def libraries(home: Home, engine: str, python_root: Path, folder: Path, soname: str) -> tuple[bool, str]:
    """What a check says of a wheel that needs a library of this name."""
    make_sources(folder, RECIPE)
    write_tree(folder / "catalog", {"checks/starts.py": ""})
    project = open_project(folder, home.path)
    put_roots(project, python_root)
    put_wheel(project, folder, soname)
    (found,) = (one for one in run.verify(project, project.locked, engine, print) if one.name == "libraries")
    return found.ok, found.detail


def put_wheel(project: TinyProject, folder: Path, soname: str) -> None:
    helper = compile_library(folder / soname, "int help(void) { return 1; }", soname=soname)
    code = "int help(void); int answer(void) { return help(); }"
    path = make_wheel(
        folder / "out", folder, library=compile_library(folder / "_c.so", code, needs=(helper,))
    )
    sha256, size = project.store.put_file(path)
    step = next(one for one in make_plan(project.locked, project.catalog).steps if one.name == "alpha")
    project.store.put_record(
        record_of(step, Output(name="wheel", filename=path.name, sha256=sha256, size=size))
    )


def test_a_library_that_no_package_of_the_root_brings_fails_before_anything_is_imported(
    home: Home, engine: str, python_root: Path, tmp_path: Path
) -> None:
    ok, detail = libraries(home, engine, python_root, tmp_path / "sources", "libnobody.so.7")
    assert not ok
    assert detail == "libnobody.so.7, which needy/_native.so needs, is not in the root to check in"


def test_a_library_of_the_root_is_found(home: Home, engine: str, python_root: Path, tmp_path: Path) -> None:
    ok, detail = libraries(home, engine, python_root, tmp_path / "sources", "libacl.so.1")
    assert (ok, detail) == (True, "all 1 that it needs of the system are in the root to check in")
