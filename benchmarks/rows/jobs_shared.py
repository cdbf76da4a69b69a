"""What the job server costs where there is memory enough, and what it is worth for two steps at once."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Took, paired, processor, seconds, timed
from benchmarks.own_steps import VARIABLE, lay_in
from benchmarks.place import ENGINE, TORCH, Scratch, bare, scratch
from benchmarks.results import Measured
from rocwright.model.steps import Step

FILES = 1500
SOURCE = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int f{0}(int x) {{ return printf("%d", x + {0}); }}
"""
MAKEFILE = "all: $(patsubst %.c,%.o,$(wildcard *.c))\n%.o: %.c\n\tgcc -O2 -c $< -o $@\n"
STEPS = ("torchvision", "torchaudio")


def overhead(runs: int | None) -> Sequence[Measured]:
    """One row: the same make with the server and with a number."""
    jobs = os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="rocwright-bench-") as place:
        folder, log = Path(place, "tree"), Path(place, "log")
        folder.mkdir()
        folder.parent.chmod(0o755)
        for number in range(FILES):
            (folder / f"f{number}.c").write_text(SOURCE.format(number))
        (folder / "Makefile").write_text(MAKEFILE)

        def build(how: str) -> Took:
            for built in folder.glob("*.o"):
                built.unlink()
            words: list[str | Path] = [sys.executable, "-m", "benchmarks.shared_make", folder, str(jobs), how]
            return timed(words, log=log)

        pairs = paired(lambda: build("server"), lambda: build("plain"), runs or 11, warm=1)
    work = sorted(one.cpu / other.cpu for one, other in zip(pairs.a, pairs.b, strict=True))
    return [
        Measured(
            name="jobs:overhead",
            what=f"{FILES} small compilations by make with the job server, against plain -j{jobs}, "
            "where memory is enough",
            values=pairs.ratios,
            most=1.01,
            note=f"{seconds(pairs.a)} with it, {seconds(pairs.b)} without; processor {processor(pairs.a)} "
            f"and {processor(pairs.b)}, {work[len(work) // 2]:.3f} times; with the probe of the tools "
            "(processor time of rocwright itself, without the compilers')",
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """The steps of a place, and what builds them all at once with a shared job server."""

    place: Scratch
    steps: Sequence[Step]
    together: Callable[[], Took]
    what: str


def at_once(runs: int | None) -> Sequence[Measured]:
    """One row: two steps of a real build, or those that $ROCWRIGHT_BENCH_STEPS holds."""
    named = os.environ.get(VARIABLE)
    with _own(Path(named).absolute()) if named else _stack() as both:
        # the first of all unpacks the root: it is no part of either
        pairs = paired(lambda: _apart(both), lambda: _together(both), runs or 2, warm=1)
    return [
        Measured(
            name="jobs:at-once",
            what=f"{both.what} one after the other, against both at once with the shared job "
            "server: times faster",
            values=pairs.ratios,
            least=1.15,
            note=f"{seconds(pairs.a)} one after the other, {seconds(pairs.b)} at once; processor "
            f"{processor(pairs.a)} and {processor(pairs.b)}; {os.cpu_count()} processors, no compiler cache",
        )
    ]


@contextmanager
def _stack() -> Iterator[Both]:
    with scratch(TORCH) as place:
        steps = [place.step(TORCH, name) for name in STEPS]
        yield Both(place=place, steps=steps, together=lambda: place.build(TORCH), what=" and ".join(STEPS))


@contextmanager
def _own(folder: Path) -> Iterator[Both]:
    with bare() as place:
        steps = lay_in(folder, place.home)
        words: list[str | Path] = [sys.executable, "-m", "benchmarks.own_steps", place.home.path]
        what = " and ".join(step.name for step in steps)
        yield Both(place=place, steps=steps, together=lambda: timed(words, log=place.log), what=what)


def _fresh(both: Both) -> None:
    both.place.empty_compiler_cache()
    for step in both.steps:
        both.place.unbuild(step)


def _apart(both: Both) -> Took:
    _fresh(both)
    url, jobs = both.place.store.url, str(os.cpu_count() or 1)
    words = ("--store", url, "--jobs", jobs, "--engine", ENGINE)
    took = Took(0, 0)
    for step in both.steps:
        took += both.place.rocwright("exec-step", step.key, *words)
    return took


def _together(both: Both) -> Took:
    _fresh(both)
    return both.together()
