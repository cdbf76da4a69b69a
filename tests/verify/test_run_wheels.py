"""What a wheel requires where it is imported is locked, fetched and installed for its checks."""

from __future__ import annotations

import ensurepip
from pathlib import Path

import pytest
from samples.making import make_tiny_root
from samples.project import TinyProject, make_sources, open_project, put_roots
from tests.making import record_of
from tests.verify.stored import put_alpha

from rocbase.errors import InputError
from rocwheel_samples.fatbin import write_wheel
from rocwheel_samples.trees import write_tree
from rocwright.catalog.load import builtin_catalog
from rocwright.home import Home
from rocwright.model.steps import FilePin, IndexOrigin, RunAction
from rocwright.plan.make import make_plan
from rocwright.plan.packages import RUN_WHEELS
from rocwright.plan.resolve.files import read_lock, write_lock
from rocwright.plan.resolve.lock import make_lock
from rocwright.plan.resolve.model import Lock, LockedPython, Request
from rocwright.plan.resolve.upstream import OfflineUpstream
from rocwright.store.local import LocalStore
from rocwright.store.model import Output
from rocwright.verify import run

SCRIPT = """import json
import alpha
said = {"name": "imported", "ok": True, "detail": alpha.said, "device": "cpu"}
print("ROCWRIGHT-CHECK " + json.dumps(said))
"""

LISTED = """import json, os
finding = {"name": "listed", "ok": True, "detail": " ".join(os.listdir("/wheels")), "device": "cpu"}
print("ROCWRIGHT-CHECK " + json.dumps(finding))
"""

FOLDERS = (Path(ensurepip.__file__).parent / "_bundled", Path("/usr/share/python-wheels"))
PIP = next(path for folder in FOLDERS for path in sorted(folder.glob("pip-*.whl")))
"""That of Python, or of Debian's: the root file system of the test has none."""

CHECK = {
    "name": "imports",
    "kind": "script",
    "script": "checks/told.py",
    "wheels": True,
    "env": {"PYTHONPATH": f"/wheels/{PIP.name}"},
}

RECIPE = {
    "alpha": {
        "kind": "wheel",
        "run": ["true"],
        "python_run": ["helper"],
        "output": [{"name": "wheel", "pattern": "alpha-*.whl"}],
        "system": {"build": ["shell"], "check": ["shell"]},
        "check": [CHECK],
    }
}


def wheel(folder: Path, name: str, text: str) -> Path:
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    tag = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {
        f"{name}.py": text,
        f"{name}-1.0.dist-info/METADATA": about,
        f"{name}-1.0.dist-info/WHEEL": tag,
        f"{name}-1.0.dist-info/RECORD": "",
    }
    path = folder / f"{name}-1.0-py3-none-any.whl"
    return write_wheel(path, {name: content.encode() for name, content in files.items()})


@pytest.fixture
def project(home: Home, tmp_path: Path) -> TinyProject:
    """A stack that is in the store: a wheel, and the one that it requires."""
    folder = tmp_path / "sources"
    make_sources(folder, RECIPE)
    write_tree(folder / "catalog", {"checks/told.py": SCRIPT})
    store = LocalStore(home.store)
    helper = wheel(tmp_path, "helper", "word = 'helped'\n")
    sha256, size = store.put_file(helper)
    origin = IndexOrigin(project="helper", version="1.0")
    pin = FilePin(filename=helper.name, sha256=sha256, size=size, origin=origin)
    lock = read_lock(folder / "rocwright.lock")
    run_wheels = LockedPython(version="3", wanted=("helper",), files=(pin,))
    write_lock(folder / "rocwright.lock", lock.model_copy(update={"python_run": run_wheels}))
    project = open_project(folder, home.path)
    # Debian's pip reads them when it is imported
    certificates = [one for one in (Path("/etc/ssl/certs"),) if one.is_dir()]
    make_tiny_root(tmp_path / "root.tar.zst", tmp_path, python=True, whole=True, folders=certificates)
    put_roots(project, tmp_path / "root.tar.zst")
    built = wheel(tmp_path, "alpha", "import helper\nsaid = helper.word\n")
    steps = {one.name: one for one in make_plan(project.locked, project.catalog).steps}
    for name, paths in (("alpha", (built,)), (RUN_WHEELS, (helper, PIP))):
        kept = ((path.name, *store.put_file(path)) for path in paths)
        outputs = (Output(name=name, filename=name, sha256=sha, size=size) for name, sha, size in kept)
        store.put_record(record_of(steps[name], *outputs))
    return project


def test_a_check_imports_a_wheel_beside_what_that_requires(project: TinyProject, engine: str) -> None:
    found = run.verify(project, project.locked, engine, print)
    assert [(one.name, one.ok, one.detail) for one in found if one.check == "imports"] == [
        ("imported", True, "helped")
    ]


def test_a_lock_without_wheels_for_checks_is_to_be_made_anew(project: TinyProject, engine: str) -> None:
    before = project.locked.model_copy(update={"python_run": None})
    with pytest.raises(InputError, match="no Python packages for the checks") as told:
        run.verify(project, before, engine, print)
    assert told.value.next_step.startswith("rocwright lock")


def test_a_lock_without_them_is_right_where_no_check_wants_wheels(home: Home, tmp_path: Path) -> None:
    make_sources(tmp_path, {"alpha": RECIPE["alpha"] | {"kind": "archive", "check": []}})
    project = open_project(tmp_path, home.path)
    put_alpha(project, tmp_path)
    assert project.locked.python_run is None
    assert run.verify(project, project.locked, None, print) == []


def test_archives_alone_are_beside_a_check_and_pip_is_not_called(
    home: Home, tmp_path: Path, engine: str
) -> None:
    recipe = RECIPE["alpha"] | {"kind": "archive", "python_run": [], "check": [CHECK]}
    make_sources(tmp_path, {"alpha": recipe | {"output": [{"name": "archive", "pattern": "*.gz"}]}})
    write_tree(tmp_path / "catalog", {"checks/told.py": LISTED})
    project = open_project(tmp_path, home.path)
    make_tiny_root(tmp_path / "root.tar.zst", tmp_path, python=True, whole=True)
    put_roots(project, tmp_path / "root.tar.zst")
    put_alpha(project, tmp_path)
    findings = run.verify(project, project.locked, engine, print)
    listed = [finding for finding in findings if finding.check == "imports"]
    assert [(finding.ok, finding.detail) for finding in listed] == [(True, "alpha-1.0.tar.gz")]


def locked(base: str, version: str) -> Lock:
    request = Request(stack="pytorch", gpu=("gfx803",), base=base, versions={"pytorch": version})
    return make_lock(request, builtin_catalog(), OfflineUpstream(), lambda line: None)


def test_what_the_base_has_for_another_python_alone_comes_from_the_index() -> None:
    lock = locked("debian:sid", "2.6.0")
    assert lock.python_run is not None
    assert {"numpy", "pillow", "typing-extensions>=4.10.0"} <= {*lock.python_run.wanted}
    assert lock.python_run.version == "3.13"
    # where the base's own Python is taken, its own packages are
    other = locked("arch:2025-10-15", "2.6.0").python_run
    assert other is not None
    assert not {"numpy", "pillow"} & {*other.wanted}


def test_no_build_waits_for_it_and_no_key_has_it() -> None:
    lock = locked("debian:sid", "2.6.0")
    catalog = builtin_catalog()
    plan = make_plan(lock, catalog)
    without = make_plan(lock.model_copy(update={"python_run": None}), catalog)
    step = next(one for one in plan.steps if one.name == RUN_WHEELS)
    assert step.key not in {item.key for one in plan.steps for item in one.inputs}
    keys = {one.name: one.key for one in plan.steps if isinstance(one.action, RunAction)}
    assert keys == {one.name: one.key for one in without.steps if isinstance(one.action, RunAction)}
