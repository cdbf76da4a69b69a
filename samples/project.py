"""A small project with its own catalog, git sources and a tiny root: built for real in some seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from rocwheel_samples.trees import write_tree
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import Catalog, load_catalog
from rocwright.home import Home
from rocwright.model.steps import FilePin, GitOrigin
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import read_lock, write_lock
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project
from rocwright.sources.git import pack_commit
from rocwright.store.local import LocalStore
from rocwright.store.model import Output
from samples.making import lock_of, record_of
from samples.repository import make_repository

DRIVER = """
import json, sys
from pathlib import Path
from rocwright.execution.progress import PlainProgress
from rocwright.execution.options import BuildOptions
from rocbase.errors import ExplainedError
from rocwright.flow import build
from samples.project import open_project

project = open_project(Path(sys.argv[1]), Path(sys.argv[2]))
print("begun", flush=True)
try:
    with PlainProgress() as progress:
        built = build(project, project.locked, BuildOptions(jobs=2, engine="bubblewrap"), progress)
except ExplainedError as error:
    print(json.dumps({"raised": error.as_dict()}))
    sys.exit(error.failure.exit_code)
print(json.dumps({
    "steps": {one.name: one.outcome for one in built.run.steps},
    "failures": {name: error.as_dict() for name, error in built.failures},
    "artifacts": {one.output.filename: one.output.sha256 for one in built.artifacts},
}))
sys.exit(1 if built.failures else 0)
"""
"""What `rocwright build` does, with a catalog of our own."""

TAR = "tar --sort=name --mtime=@$SOURCE_DATE_EPOCH --owner=0 --group=0 -czf"

COMPONENTS: dict[str, dict[str, object]] = {
    "alpha": {
        "run": ["sleep 0.2", "mkdir alpha-1", "cp file alpha-1/", f"{TAR} $OUT/alpha-1.0.tar.gz alpha-1"],
        "kind": "archive",
        "output": [{"name": "archive", "pattern": "alpha-*.tar.gz"}],
        "image": {"prefix": "/opt/alpha"},
        "edit": [{"file": "file", "regex": r"\Athe", "with": "The", "why": "a sentence begins so"}],
    },
    "beta": {
        "run": ["sleep 0.2", "cat file file > $OUT/beta-1.0-py3-none-any.whl"],
        "kind": "wheel",
        "output": [{"name": "wheel", "pattern": "beta-*.whl"}],
    },
}  # fmt: skip


def wheel_recipe(wheel: Path) -> dict[str, object]:
    """A component whose build gives the bytes of that wheel: a shell is all that it needs."""
    text = "".join(f"\\{one:03o}" for one in wheel.read_bytes())
    return {
        "kind": "wheel",
        "run": [f"printf '{text}' > $OUT/{wheel.name}"],
        "output": [{"name": "wheel", "pattern": f"{wheel.name.partition('-')[0]}-*.whl"}],
    }


def write_catalog(folder: Path, components: Mapping[str, Mapping[str, object]]) -> Catalog:
    """A catalog with one stack of these components on one base."""
    write_tree(
        folder,
        {
            "targets.toml": '[[target]]\nname = "gfx1151"\nkfd_version = 110501\ngeneration = "x"\n'
            'products = ["x"]\nsource = ["x"]\n',
            "system.toml": '"shell" = { apt = ["dash"] }\n',
            "package_managers.toml": (DATA / "package_managers.toml").read_text(),
            "launchers.toml": "",
            "bases/debian.toml": 'name = "debian"\nmanager = "apt"\nmade = "packages"\nsummary = "x"\n'
            'architecture = { x86_64 = "amd64", aarch64 = "arm64" }\nsource = "x"\n'
            '[[release]]\nname = "sid"\nsource = "x"\n',
            "stacks/tiny.toml": f'name = "tiny"\nsummary = "x"\ncomponents = {json.dumps(list(components))}\n'
            'bases = ["debian:sid"]\nsource = "x"\n',
        },
    )
    (folder / "components").mkdir(exist_ok=True)
    for name, recipe in components.items():
        said = {
            "name": name,
            "summary": "x",
            "license": "MIT",
            "system": {"build": ["shell"], "run": ["shell"]},
            "resources": {"memory_per_job": "1 MiB", "disk": "1 MiB"},
            "release": [{"version": "1.0", "places": [{"builtin": name}], "source": "x"}],
        } | dict(recipe)
        lines = [f"{key} = {_inline(value)}" for key, value in said.items()]
        (folder / "components" / f"{name}.toml").write_text("\n".join([*lines, ""]))
    return load_catalog(folder)


def _inline(value: object) -> str:
    match value:
        case dict():
            return "{ " + ", ".join(f"{key} = {_inline(one)}" for key, one in value.items()) + " }"
        case list():
            return "[" + ", ".join(_inline(one) for one in value) + "]"
        case _:
            return json.dumps(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyProject(Project):
    """A project with its lock."""

    locked: Lock


def make_sources(
    folder: Path,
    components: Mapping[str, Mapping[str, object]] = COMPONENTS,
    files: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """The catalog, the git repositories of its components, each with these `files` too, and the lock, in
    `folder`."""
    catalog = write_catalog(folder / "catalog", components)
    lock = lock_of("tiny", catalog=catalog)
    pins: dict[str, FilePin] = {}
    for name in components:
        repository = make_repository(folder / f"{name}.git")
        repository.commit("file", f"the source of {name}\n" * 1000)
        for path, text in files.items():
            repository.commit(path, text)
        pins[name] = pack_commit(
            GitOrigin(url=repository.url, commit=repository.git("rev-parse", "HEAD")), folder
        )
    found = tuple(one.model_copy(update={"files": (pins[one.name],)}) for one in lock.components)
    write_lock(folder / "rocwright.lock", lock.model_copy(update={"components": found}))


def open_project(folder: Path, home: Path) -> TinyProject:
    """The project whose sources were made in `folder`."""
    lock = read_lock(folder / "rocwright.lock")
    return TinyProject(
        request=lock.request,
        lock_path=folder / "rocwright.lock",
        output=home.parent / f"{home.name}-out",
        home=Home(home),
        catalog=load_catalog(folder / "catalog"),
        locked=lock,
    )


def put_roots(project: TinyProject, archive: Path) -> None:
    """Keep the tiny root as what the steps of root file systems gave."""
    store = LocalStore(project.home.store)
    sha256, size = store.put_file(archive)
    for step in make_plan(project.locked, project.catalog).steps:
        if step.kind == "base":
            output = Output(name="root", filename="root.tar.zst", sha256=sha256, size=size)
            store.put_record(record_of(step, output))


def start(folder: Path, home: Path, runtime: Path, *python: str) -> subprocess.Popen[str]:
    """Build in a process of its own, as the command does; `python` are words for the interpreter."""
    return subprocess.Popen(
        [sys.executable, *python, "-c", DRIVER, str(folder), str(home)],
        cwd=Path(__file__).parents[1],
        env=os.environ | {"ROCWRIGHT_HOME": str(home), "ROCWRIGHT_RUNTIME_DIR": str(runtime)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
