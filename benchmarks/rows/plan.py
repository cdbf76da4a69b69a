"""A plan of 2,000 steps: keys, order, and the look-up of each in a store that has half of them."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from benchmarks.measure import Took, processor, seconds, timed
from benchmarks.place import bench_home
from benchmarks.results import Measured
from rocwright.bases.roots import remove_tree
from rocwright.catalog.load import Catalog, builtin_catalog
from rocwright.catalog.model import Component, Release, Stack
from rocwright.catalog.place import BuiltinPlace
from rocwright.flow import Project, planned
from rocwright.home import Home
from rocwright.plan.decide import State, decide
from rocwright.plan.make import make_plan
from rocwright.plan.model import DebianOrigin, FilePin, GitOrigin, OutputSpec, Plan
from rocwright.resolve.fits import wanted_packages
from rocwright.resolve.model import Lock, LockedComponent, LockedRoot, Request
from rocwright.store.local import LocalStore
from rocwright.store.model import Output, Record

COMPONENTS = 666
PACKAGES = 400
STACK = "made-up"
STEPS = 3 * COMPONENTS + 2
"""Three steps a component, two for the root file system."""

ENVIRONMENT = 20
"""Variables in each step's environment."""


def measure(runs: int | None) -> Sequence[Measured]:
    """Two rows: in this process from a lock, and a process of its own from a plan on disk."""
    folder = bench_home().path / "bench" / "plan"
    remove_tree(folder)
    try:
        return _measure(folder, runs or 11)
    finally:
        remove_tree(folder)


def _measure(folder: Path, runs: int) -> list[Measured]:
    catalog = _catalog()
    lock = _lock(catalog)
    project = Project(
        request=lock.request,
        lock_path=folder / "lock",
        output=folder / "out",
        home=Home(folder / "home"),
        catalog=catalog,
    )
    plan = make_plan(lock, catalog)
    assert len(plan.steps) == STEPS
    _record_half(project.store, plan)
    project.last_plan.parent.mkdir(parents=True)
    project.last_plan.write_text(plan.model_dump_json(by_alias=True))
    inside: list[Took] = []
    for _ in range(runs + 1):
        begun, before = time.perf_counter(), time.process_time()
        _, decisions = planned(project, lock)
        inside.append(Took(time.perf_counter() - begun, time.process_time() - before))
        assert sum(one.state is State.RUN for one in decisions) >= COMPONENTS // 2
    making, deciding = _parts(project, lock, plan)
    log = folder / "log"
    argv: list[str | Path] = [
        sys.executable,
        "-m",
        "benchmarks.decide_alone",
        project.last_plan,
        project.home.store,
    ]
    outside = [timed(argv, log=log) for _ in range(runs + 1)]
    told = json.loads(log.read_text())
    what = f"a plan of {STEPS:,} steps, half of them in the store"
    return [
        Measured(
            name="plan",
            what=f"{what}: keys, order and look-up, from a lock",
            values=[one.wall for one in inside[1:]],
            unit="s",
            most=1,
            note=f"`flow.planned`: {seconds(making)} to make the plan with its keys, "
            f"{seconds(deciding)} to decide, the rest to read the plan built last; "
            f"processor time {processor(inside)}; "
            f"{PACKAGES} packages in the root, {ENVIRONMENT} variables a step",
        ),
        Measured(
            name="plan:process",
            what=f"{what}: a process of its own, from the plan's JSON",
            values=[one.wall for one in outside[1:]],
            unit="s",
            most=1,
            note=f"from the start of the interpreter to its end; imports {told['imports']:.2f} s, "
            f"reading {told['read']:.2f} s, deciding {told['decide']:.2f} s; "
            f"processor time {processor(outside)}",
        ),
    ]


def _parts(project: Project, lock: Lock, before: Plan) -> tuple[list[float], list[float]]:
    making, deciding = [], []
    for _ in range(5):
        begun = time.perf_counter()
        plan = make_plan(lock, project.catalog)
        middle = time.perf_counter()
        decide(plan, project.store, before)
        making.append(middle - begun)
        deciding.append(time.perf_counter() - middle)
    return making, deciding


def _record_half(store: LocalStore, plan: Plan) -> None:
    data = store.path / "tmp" / "data"
    for count, step in enumerate(plan.steps):
        if count % 2:
            continue
        data.write_text(step.name)
        digest, size = store.put_file(data, move=True)
        output = Output(name="output", filename="output", sha256=digest, size=size)
        started = "2025-01-01T00:00:00Z"
        store.put_record(
            Record(
                key=step.key,
                content_key=step.key,
                step=step.name,
                kind=step.kind,
                outputs=(output,),
                started=started,
                seconds=1,
            )
        )


def _catalog() -> Catalog:
    release = Release(version="1.0", places=(BuiltinPlace(builtin="it"),), source="made up")
    components = {
        f"component-{count}": Component(
            name=f"component-{count}",
            summary="made up",
            license="MIT",
            kind="archive",
            release=(release,),
            env={f"VARIABLE_{each}": f"{{version}} {{targets}} {each}" for each in range(ENVIRONMENT)},
            run=("cmake -S . -B build -G Ninja", "cmake --build build", "cmake --install build"),
            output=(OutputSpec(name="archive", pattern="*.tar.gz"),),
        )
        for count in range(COMPONENTS)
    }
    base = next(one for one in builtin_catalog().bases.values() if one.made == "packages")
    stack = Stack(
        name=STACK,
        summary="made up",
        components=tuple(components),
        bases=(base.names[0],),
        source="made up",
    )
    return dataclasses.replace(builtin_catalog(), components=components, stacks={STACK: stack})


def _lock(catalog: Catalog) -> Lock:
    base, release = catalog.base(catalog.stacks[STACK].bases[0])
    packages = tuple(
        FilePin(
            filename=f"package-{count}.deb",
            sha256=_digest(f"package {count}"),
            size=100_000,
            origin=DebianOrigin(
                suite=release.name, package=f"package-{count}", version="1.0-1", architecture="amd64"
            ),
        )
        for count in range(PACKAGES)
    )
    components = tuple(
        LockedComponent(
            name=f"component-{count}",
            version="1.0",
            kind="git",
            place="git",
            files=(
                FilePin(
                    filename=f"component-{count}.tar.zst",
                    sha256=_digest(f"component {count}"),
                    size=1_000_000,
                    origin=GitOrigin(url="https://example.org/it.git", commit=_digest(str(count))[:40]),
                ),
            ),
        )
        for count in range(COMPONENTS)
    )
    root = LockedRoot(
        role="build",
        base=base.name,
        manager=base.manager,
        suite=release.name,
        architecture="amd64",
        wanted=wanted_packages(catalog, tuple(catalog.components.values()), base, release, (), False)[
            "build"
        ],
        packages=packages,
    )
    return Lock(
        rocwright="0",
        created="2025-01-01T00:00:00Z",
        request=Request(stack=STACK, gpu=("gfx1151",), base=f"{base.name}:{release.name}"),
        roots=(root,),
        components=components,
    )


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
