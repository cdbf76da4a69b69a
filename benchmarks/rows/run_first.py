"""`rocwright run llama-vulkan` in an empty home, from a bucket whose key is trusted, to its first answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from benchmarks.measure import BenchError, Took, middle, seconds, timed
from benchmarks.place import BIN, Scratch, scratch
from benchmarks.place import LLAMA as STACK
from benchmarks.results import Measured
from benchmarks.rows.second_machine import URL, bucket

NAME = "bench-first"
_READY = re.compile(r"runs: .*, after ([\d.]+) s")


def measure(runs: int | None) -> Sequence[Measured]:
    """Two rows: the whole, and what of it rocwright computed."""
    with scratch(STACK) as first, bucket(first, first.path / "answers") as env:
        (first.path / "answers").touch()
        log = first.log
        timed([BIN / "rocwright", "attest", "key"], log=log, env=env, cwd=first.folder)
        words = ["store", "push", *STACK.words, "--to", URL, "--name", "lab"]
        timed([BIN / "rocwright", *words], log=log, env=env, cwd=first.folder)
        found = [_first(first, env) for _ in range(runs or 3)]
    took = [one for one, _ in found]
    what = f"filled store, empty home: `rocwright run {STACK.name} --model tiny`"
    loads = middle([loaded for _, loaded in found])
    return [
        Measured(
            name="run-first",
            what=f"{what} to the first answer",
            values=[one.wall for one in took],
            unit="s",
            most=60,
            note="fetched from a bucket on this machine, with the root that it runs on; the server "
            f"loads for {loads:.1f} s of it",
        ),
        Measured(
            name="run-first:rocwright",
            what=f"{what}: processor time of rocwright and what it runs, without the server",
            values=[one.cpu for one in took],
            unit="s",
            most=5,
            note=f"{seconds(took)} in all; the unpacking is counted",
        ),
    ]


def _first(first: Scratch, env: Mapping[str, str]) -> tuple[Took, float]:
    """What it took in a home that has nothing, and how long the server loaded."""
    home, folder = first.path / "second", first.path / "second-project"
    for one in (home, folder):
        first.drop(one)
        one.mkdir()
    there = {**env, "ROCWRIGHT_HOME": str(home)}
    timed([BIN / "rocwright", "trust", "add", URL, "--yes"], log=first.log, env=there, cwd=folder)
    words = ["run", *STACK.words, "--model", "tiny", "--name", NAME, "--detach", "--try"]
    took = timed([BIN / "rocwright", *words], log=first.log, env=there, cwd=folder)
    ready = _READY.search(first.log.read_text())
    timed([BIN / "rocwright", "stop", NAME], log=first.log, env=there, cwd=folder)
    if ready is None:
        raise BenchError("it did not say how long the server loaded")
    return took, float(ready[1])
