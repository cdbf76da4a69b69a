"""Which of twelve changed libraries breaks a product: builds that are not cached, one at fault and two."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from samples.making import make_tiny_root
from samples.world import World

from benchmarks.place import bench_home
from benchmarks.results import Measured
from rocwright.bases.roots import remove_tree
from rocwright.bisection.run import bisect
from rocwright.sandbox import probe_all

LIBRARIES = tuple(f"library{number:02}" for number in range(1, 13))
ONE = ((0,), (3,), (6,), (11,))
TWO = ((0, 1), (2, 7), (5, 10), (10, 11))


def measure(runs: int | None) -> Sequence[Measured]:
    """Two rows: builds beyond those of the two locks themselves."""
    folder = bench_home().path / "bench" / "bisect"
    remove_tree(folder)
    folder.mkdir(parents=True)
    try:
        make_tiny_root(folder / "root.tar.zst", folder)
        probe_all(folder / "sandboxes.json")
        return [
            _row("one at fault", ONE[:runs], 5, folder),
            _row("two that break only together", TWO[:runs], 9, folder),
        ]
    finally:
        remove_tree(folder)


def _row(what: str, cases: Sequence[tuple[int, ...]], most: int, folder: Path) -> Measured:
    return Measured(
        name=f"bisect:{'one' if most == 5 else 'two'}",
        what=f"`bisect` over 12 changed pins, {what}: builds that are not cached",
        values=[_builds(culprits, folder / f"world{'-'.join(map(str, culprits))}") for culprits in cases],
        unit="builds",
        most=most,
        note="a product of twelve libraries, each with a repository of its own, really built; culprits: "
        f"{', '.join('+'.join(str(one + 1) for one in each) for each in cases)}; the two locks themselves "
        "are not counted; the tests prove the bound for every place",
    )


def _builds(culprits: tuple[int, ...], folder: Path) -> float:
    words = tuple(f"word{number:02}" for number in culprits)
    home = folder.with_name(f"{folder.name}.home")
    home.mkdir()
    shutil.copy(folder.with_name("sandboxes.json"), home)
    world = World(folder, home, "bubblewrap", folder.with_name("root.tar.zst"), LIBRARIES, words)
    good = world.lock({})
    for number, name in enumerate(LIBRARIES):
        world.commits(name, f"word{number:02}")
    report = bisect(good, world.lock({}), world.trials(), narrow=False)
    found = {one.name for block in report.culprits for one in block}
    assert found == {LIBRARIES[number] for number in culprits}, found
    return sum(one.built for one in report.tries) - 1  # the first is the good lock
