"""A workshop: a store with a tiny root and trees in it, where steps are really run in a sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.making import EPOCH, put_output, record_of

from rocwheel_samples.trees import write_tree
from rocwright.execution.exec_step import execute
from rocwright.execution.options import StepOptions
from rocwright.home import Home
from rocwright.model.steps import BaseAction, Input, OutputSpec, Resources, RunAction, Step, TreeAction
from rocwright.sources.archive import pack
from rocwright.sources.bases.roots import remove_tree
from rocwright.store.local import LocalStore
from rocwright.store.model import Output, Record, Store, verified

DOMAIN = "d" * 64
"""The trust domain of a workshop's steps: what one leaves in the compiler cache, the others find."""


@dataclass
class Workshop:
    """Makes steps whose root and tree are in the store already, and runs them."""

    home: Home
    store: Store
    engine: str
    folder: Path
    root: Step
    lines: list[str] = field(default_factory=list)
    trees: dict[str, Step] = field(default_factory=dict)

    def tree(self, name: str = "hello", **files: str) -> Step:
        """A step that gave a tree of these files."""
        step = Step(name=f"tree/{name}", component=name, action=TreeAction(subdir=name))
        folder = write_tree(self.folder / f"tree-{name}", {"file": "text\n"} | files)
        packed = self.folder / f"{name}.tree.tar.zst"
        pack(folder, packed, epoch=EPOCH)
        remove_tree(folder)
        put_output(self.store, step, "tree", packed.read_bytes(), self.folder)
        self.trees[name] = step
        return step

    def step(
        self,
        *commands: str,
        name: str = "hello",
        output: str = "result",
        env: Mapping[str, str] | None = None,
        tree: Step | None = None,
        inputs: Mapping[str, Step] | None = None,
        guard: tuple[str, ...] = (),
        python: str = "",
        resources: Resources | None = None,
        domain: str = DOMAIN,
        resume: int = 0,
    ) -> Step:
        """A step that runs commands; it is in the store, ready to be executed."""
        found = [Input(name="root", key=self.root.key, output="root")]
        found.append(Input(name="src", key=(tree or self.tree(name)).key, output="tree"))
        found += [Input(name=one, key=step.key, output="out") for one, step in (inputs or {}).items()]
        action = RunAction(
            commands=commands,
            env=dict(env or {}),
            outputs=(OutputSpec(name="out", pattern=output),),
            guard=guard,
            python=python,
            resume=resume,
        )
        step = Step(
            name=name,
            component=name,
            action=action,
            inputs=tuple(found),
            resources=resources or Resources(limit=60),
            domain=domain,
        )
        self.store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
        return step

    def run(self, step: Step, *, jobs: int = 1, memory: int | None = None, **options: bool) -> Record:
        """Execute a step as `rocwright exec-step` does."""
        steps = StepOptions(engine=self.engine, **options)
        say = self.lines.append
        return execute(step.key, self.store, self.home, say, jobs=jobs, memory=memory, options=steps)

    def text(self, record: Record) -> str:
        """The text of a record's one output."""
        [output] = record.outputs
        return verified(self.store, output.sha256).read_text()


def put_root(store: Store, archive: Path, suite: str = "tiny") -> Step:
    """A step that gave this root file system; another `suite` is another step."""
    step = Step(name="root/build", component="tiny", action=BaseAction(suite=suite, architecture="amd64"))
    sha256, size = store.put_file(archive)
    store.put_record(record_of(step, Output(name="root", filename="root.tar.zst", sha256=sha256, size=size)))
    return step


@pytest.fixture
def workshop(home: Home, store: LocalStore, engine: str, tiny_root: Path, tmp_path: Path) -> Workshop:
    return Workshop(home, store, engine, tmp_path, put_root(store, tiny_root))
