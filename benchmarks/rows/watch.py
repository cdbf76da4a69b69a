"""`rocwright watch` over 200 sources on servers of this machine, one of them slow."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from samples.registry import Registry, serving_registry

from benchmarks.place import bench_home
from benchmarks.results import Measured
from rocwright.bases.roots import remove_tree
from rocwright.catalog.load import Catalog, builtin_catalog
from rocwright.catalog.model import Component
from rocwright.home import Home
from rocwright.model.steps import FilePin, ImageOrigin, IndexOrigin
from rocwright.resolve.model import Lock, LockedComponent, LockedPython, Request
from rocwright.resolve.settings import WatchSettings
from rocwright.watch.look import watch
from rocwright.watch.memory import Memory
from rocwright.watch.model import Alarm, Caution, Report, Silent

REPOSITORIES, PROJECTS, IMAGES = 110, 80, 10
SLOW = 1.5
"""Seconds before each answer of one repository; a repository is asked twice."""

MOST = 0.08
"""The others take up to so many seconds."""


def measure(runs: int | None) -> Sequence[Measured]:
    """Two rows: a first look, and one that knows from the last which source is slow."""
    folder = bench_home().path / "bench" / "watch"
    remove_tree(folder)
    folder.mkdir(parents=True)
    (folder / "registry").mkdir()
    try:
        with serving_registry(folder / "registry") as registry, _served(folder / "web") as address:
            return _measure(folder, registry, address, runs or 5)
    finally:
        remove_tree(folder)


def _measure(folder: Path, registry: Registry, address: str, runs: int) -> list[Measured]:
    catalog, lock = _field(folder, registry, address)
    os.environ["PIP_INDEX_URL"] = f"{address}/simple"
    alone = lock.model_copy(update={"components": lock.components[:1], "python": None})
    home = Home(folder / "home")
    kept = home.path / "watch.json"
    first: list[float] = []
    again: list[float] = []
    for _ in range(runs):
        _look(alone, catalog, home, 1)
        slowest = max(Memory.load(kept).seconds.values())
        kept.unlink()
        first.append(_look(lock, catalog, home, 200).seconds / slowest)
        again.append(_look(lock, catalog, home, 200).seconds / slowest)
        kept.unlink()
    note = (
        f"{REPOSITORIES} git repositories over HTTP, {PROJECTS} projects of a package index, {IMAGES} images "
        f"of docker-registry by skopeo, sixteen at a time; one repository answers after {2 * SLOW:.0f} s, "
        f"the others after up to {2 * MOST:.2f} s; against the slow one asked alone"
    )
    return [
        Measured(
            name="watch",
            what="`watch` over 200 sources on local servers, against the slowest single answer",
            values=first,
            most=1.5,
            note=f"{note}; nothing is known of earlier looks, and the slow one stands in the middle",
        ),
        Measured(
            name="watch:again",
            what="the same once more: the slow one is known, and begins",
            values=again,
            most=1.5,
            note=note,
        ),
    ]


def _look(lock: Lock, catalog: Catalog, home: Home, sources: int) -> Report:
    report = watch({"bench": lock}, WatchSettings(take="patch"), catalog, home)
    findings: tuple[Silent | Alarm | Caution, ...] = (*report.silent, *report.alarms, *report.cautions)
    wrong = [one.what for one in findings]
    assert (report.asked, wrong) == (sources, []), (report.asked, wrong[:3])
    return report


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    folder.mkdir()
    dice = random.Random(7)
    names = [f"r{number}" for number in range(REPOSITORIES)]
    delays = {name: dice.uniform(0, MOST) for name in names} | {"simple": MOST}
    (folder / "delays.json").write_text(json.dumps(delays | {"r0": SLOW}))
    _repositories(folder, names)
    for number in range(PROJECTS):
        place = folder / "simple" / f"p{number}"
        place.mkdir(parents=True)
        (place / "index.json").write_text(json.dumps(_page(f"p{number}")))
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.slow_server", folder], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.terminate()


def _repositories(folder: Path, names: Sequence[str]) -> None:
    who = {f"GIT_{one}_{what}": "bench" for one in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    first = folder / names[0]

    def git(*words: str) -> None:
        subprocess.run(["git", *words], env=os.environ | who, check=True, capture_output=True)

    git("init", "--quiet", "--bare", str(first))
    tree = subprocess.run(
        ["git", "-C", first, "mktree"], input="", check=True, capture_output=True, text=True
    ).stdout.strip()
    commit = subprocess.run(
        ["git", "-C", first, "commit-tree", tree, "-m", "one"],
        env=os.environ | who,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    for number in range(50):
        git("-C", str(first), "update-ref", f"refs/tags/v0.{number}.0", commit)
    git("-C", str(first), "update-server-info")
    for name in names[1:]:
        shutil.copytree(first, folder / name)


def _files(project: str) -> dict[str, str]:
    return {
        f"{project}-1.{number}-py3-none-any.whl": sha256(f"{project} {number}".encode()).hexdigest()
        for number in range(40)
    }


def _page(project: str) -> dict[str, object]:
    files = [
        {"filename": name, "url": f"/files/{name}", "hashes": {"sha256": digest}, "size": 1}
        for name, digest in _files(project).items()
    ]
    return {"meta": {"api-version": "1.1"}, "name": project, "versions": [], "files": files}


def _field(folder: Path, registry: Registry, address: str) -> tuple[Catalog, Lock]:
    commit = (folder / "web" / "r0" / "info" / "refs").read_text().split()[0]
    locked = [
        LockedComponent(
            name=f"r{number}",
            version="0.49.0",
            kind="git",
            place=f"git {address}/r{number} v0.49.0",
            commit=commit,
        )
        for number in range(REPOSITORIES)
    ]
    places: list[dict[str, object]] = [{"git": f"{address}/{one.name}", "tag": "v0.49.0"} for one in locked]
    root = folder / "root"
    root.mkdir()
    for number in range(IMAGES):
        (root / "number").write_text(f"{number}\n")
        digest = registry.push(f"i{number}", root)
        reference = f"127.0.0.1:{registry.port}/team/debian:i{number}"
        origin = ImageOrigin(reference=reference, digest=digest)
        pin = FilePin(filename="i.tar.zst", sha256=digest[7:], size=1, origin=origin)
        locked.append(
            LockedComponent(
                name=f"i{number}", version="999", kind="image", place=reference, commit=digest, files=(pin,)
            )
        )
        places.append({"image": reference})
    os.environ["ROCWRIGHT_MIRRORS"] = f"127.0.0.1:{registry.port}/=http://127.0.0.1:{registry.port}/"
    components = {
        one.name: Component.model_validate(
            {
                "name": one.name,
                "summary": "x",
                "license": "x",
                "kind": "file",
                "release": [{"version": one.version, "source": "x", "places": [place]}],
            }
        )
        for one, place in zip(locked, places, strict=True)
    }
    pins = tuple(
        FilePin(
            filename=name, sha256=digest, size=1, origin=IndexOrigin(project=f"p{number}", version="1.39")
        )
        for number in range(PROJECTS)
        for name, digest in list(_files(f"p{number}").items())[-1:]
    )
    # the slow one in the middle: alone it is the first
    half = REPOSITORIES // 2
    lock = Lock(
        rocwright="0.1.0",
        created="2026-01-01T00:00:00Z",
        request=Request(stack="gfx-smoke", gpu=("gfx1151",), base="debian:trixie"),
        python=LockedPython(version="3.13", files=pins),
        roots=(),
        components=(*locked[:1], *locked[1:half], *locked[half:]),
    )
    catalog = builtin_catalog()
    return replace(catalog, components={**catalog.components, **components}), lock
