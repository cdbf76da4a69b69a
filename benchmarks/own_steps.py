"""Steps of one's own: folders with sources and a `build.sh`, built in the machine's own root by the real
scheduler. For a machine without the stacks: no network, or little room.

`python -m benchmarks.own_steps HOME` builds those that `lay_in` put there, all at once.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import zstandard

from benchmarks.measure import BenchError
from benchmarks.place import ENGINE
from rocwright.execution.options import Options
from rocwright.execution.progress import PlainProgress
from rocwright.farm.executors import run_steps
from rocwright.home import Home
from rocwright.model.step_environment import EPOCH
from rocwright.model.steps import BaseAction, Input, OutputSpec, Plan, Resources, RunAction, Step, TreeAction
from rocwright.plan.decide import decide
from rocwright.sources.archive import pack
from rocwright.store.local import LocalStore
from rocwright.store.model import Output, Record

VARIABLE = "ROCWRIGHT_BENCH_STEPS"
"""The folder that holds them."""

SCRIPT = "build.sh"

SYSTEM = ("bin", "etc", "lib", "lib64", "sbin", "usr")
NEEDLESS = ("usr/local", "usr/src", "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/icons")

MOST = 64
"""Processes of one step."""


def lay_in(folder: Path, home: Home) -> Sequence[Step]:
    """Put a step for each folder in `folder` into a home, with its tree and root done. Raises BenchError."""
    store = LocalStore(home.store)
    sources = sorted(script.parent for script in folder.glob(f"*/{SCRIPT}"))
    if len(sources) < 2:
        raise BenchError(f"{VARIABLE}={folder} holds {len(sources)} folders with a {SCRIPT}, two are wanted")
    packed = home.path / "packed"
    _pack_own_root(packed)
    root = Step(name="root/build", component="root", action=BaseAction(suite="own", architecture="own"))
    _done(store, root, "root", packed)
    trees = [
        Step(name=f"tree/{source.name}", component=source.name, action=TreeAction(subdir=source.name))
        for source in sources
    ]
    for source, tree in zip(sources, trees, strict=True):
        pack(source, packed, epoch=EPOCH)
        _done(store, tree, "tree", packed)
    steps = [_step(root, tree) for tree in trees]
    for step in steps:
        store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    plan = Plan(steps=(root, *trees, *steps), artifacts=tuple(step.name for step in steps))
    _plan(home).write_text(plan.model_dump_json(by_alias=True))
    return steps


def main(home: Home) -> int:
    """Build them all at once."""
    plan = Plan.model_validate_json(_plan(home).read_bytes())
    store = LocalStore(home.store)
    options = Options(engine=ENGINE)
    logs = home.runs / "own"
    told = run_steps(decide(plan, store), store, home, options, logs, {}, PlainProgress())
    for name, error in told.failures:
        print(f"{name}: {error}\n{error.detail}", file=sys.stderr)
    return 1 if told.failures else 0


def _pack_own_root(target: Path) -> None:
    """The programs and settings of this machine, without what no compiler reads."""
    there = [name for name in SYSTEM if (Path("/") / name).exists()]
    words = ["tar", "--create", "--directory", "/", "--sort=name", "--format=posix", "--ignore-failed-read"]
    words += [f"--exclude={name}" for name in NEEDLESS]
    with (
        target.open("wb") as file,
        zstandard.ZstdCompressor(level=1, threads=-1).stream_writer(file) as packed,
        subprocess.Popen([*words, *there], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running,
    ):
        assert running.stdout is not None
        shutil.copyfileobj(running.stdout, packed, 2**20)


def _plan(home: Home) -> Path:
    return home.path / "own-plan.json"


def _done(store: LocalStore, step: Step, name: str, file: Path) -> str:
    """Store a file as what a step made; its sha256."""
    sha256, size = store.put_file(file, move=True)
    output = Output(name=name, filename=f"{name}.tar.zst", sha256=sha256, size=size)
    store.put_record(
        Record(
            key=step.key,
            content_key=step.key,
            step=step.name,
            kind=step.kind,
            outputs=(output,),
            started="2025-01-01T00:00:00Z",
            seconds=0,
        )
    )
    return sha256


def _step(root: Step, tree: Step) -> Step:
    name = tree.component
    commands = (f"sh -e ./{SCRIPT}", f"echo {name} > $OUT/built")
    inputs = (
        Input(name="root", key=root.key, output="root"),
        Input(name="src", key=tree.key, output="tree"),
    )
    action = RunAction(commands=commands, outputs=(OutputSpec(name="out", pattern="built"),))
    return Step(name=name, component=name, action=action, inputs=inputs, resources=Resources(cores=MOST))


if __name__ == "__main__":
    sys.exit(main(Home(Path(sys.argv[1]))))
