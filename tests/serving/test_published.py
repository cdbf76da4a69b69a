"""The environment of wheels that others published, of which nothing is built."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from samples.project import TinyProject, make_sources, open_project, put_roots

from rocwright.execution.progress import PlainProgress
from rocwright.home import Home
from rocwright.model.steps import FilePin, IndexOrigin
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import read_lock, write_lock
from rocwright.plan.resolve.model import LockedRoot
from rocwright.sandbox import probe_all
from rocwright.serving.prepare import prepare
from rocwright.serving.program import run_program
from rocwright.serving.wheels import built_lock, check_makes_wheels
from rocwright.sources.bases.roots import remove_tree
from rocwright.store.local import LocalStore
from rocwright.store.model import Output
from tests.engines import must_work
from tests.making import record_of
from tests.serving.wheel_stack import make_root, wheel

RECIPE: dict[str, dict[str, object]] = {
    "alpha": {
        "kind": "wheels",
        "release": [{"version": "1.0", "places": [{"wheels": ["alpha==1.0"]}], "source": "x"}],
        "system": {"run": ["shell"]},
    }
}

SAYS = "import helper, pathlib\npathlib.Path('said').write_text(helper.word)\n"


@dataclass(frozen=True, kw_only=True)
class Published:
    """A project whose wheels were fetched, and the root file system that its lock names."""

    project: TinyProject
    root: LockedRoot


@pytest.fixture(scope="module")
def published(probed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    folder = tmp_path_factory.mktemp("published")
    home = Home(folder / "home")
    home.path.mkdir()
    shutil.copy(probed, home.probes)
    must_work({one.engine: one for one in probe_all(home.probes)}["bubblewrap"])
    sources, store = folder / "sources", LocalStore(home.store)
    make_sources(sources, RECIPE)
    wheels = [wheel(folder, "alpha", SAYS, "helper>=1"), wheel(folder, "helper", "word = 'helped'\n")]
    pins, outputs = [], []
    for path in wheels:
        sha256, size = store.put_file(path)
        origin = IndexOrigin(project=path.name.partition("-")[0], version="1.0")
        pins.append(FilePin(filename=path.name, sha256=sha256, size=size, origin=origin))
        outputs.append(Output(name=path.name, filename=path.name, sha256=sha256, size=size))
    lock = read_lock(sources / "rocwright.lock")
    (alpha,) = lock.components
    alpha = alpha.model_copy(update={"files": tuple(pins), "pending": ""})
    (root,) = lock.roots
    write_lock(sources / "rocwright.lock", lock.model_copy(update={"components": (alpha,)}))
    project = open_project(sources, home.path)
    put_roots(project, make_root(folder))
    (step,) = [one for one in make_plan(project.locked, project.catalog).steps if one.name == "wheels/alpha"]
    store.put_record(record_of(step, *outputs))
    yield Published(project=project, root=root)
    remove_tree(home.path)


def test_programs_run_with_all_of_them(
    published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, said = published.project, list[str]()
    check_makes_wheels(project)
    lock = built_lock(project, None, PlainProgress(), said.append)
    made = prepare(project, lock, said.append)
    assert [one.filename for one in made.wheels] == [
        "alpha-1.0-py3-none-any.whl",
        "helper-1.0-py3-none-any.whl",
    ]
    monkeypatch.chdir(tmp_path)
    assert run_program(made, project.home, ["python", "-c", "import alpha"]) == 0
    assert (tmp_path / "said").read_text() == "helped"
