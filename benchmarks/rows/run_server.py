"""`rocwright run llama-vulkan --model tiny` to its first answer, against the same command typed by hand."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import BenchError, Took, paired, processor, seconds, timed
from benchmarks.place import BIN, bench_home
from benchmarks.place import LLAMA as STACK
from benchmarks.results import Measured
from rocwheel.errors import RocwrightError
from rocwright import api
from rocwright.api.serving import Running

NAME, MODEL = "bench", "tiny"
LONGEST = 60.0
"""Seconds that a server by hand may take to answer."""


def measure(runs: int | None) -> Sequence[Measured]:
    """One row."""
    home = bench_home()
    with tempfile.TemporaryDirectory() as folder, _typed(home.path) as typed:
        log = Path(folder) / "log"
        env = {"ROCWRIGHT_HOME": str(home.path)}
        words: list[str | Path] = [BIN / "rocwright", "run", *STACK.words, "--model", MODEL, "--name", NAME]
        words += ["--detach", "--try"]

        def ours() -> Took:
            took = timed(words, log=log, env=env, cwd=Path(folder))
            api.stop_server(NAME, home=home.path)
            return took

        pairs = paired(ours, lambda: _by_hand(typed, log), runs or 11, warm=2)
    more = [a.wall - b.wall for a, b in zip(pairs.a, pairs.b, strict=True)]
    return [
        Measured(
            name="run-server",
            what=f"`rocwright run {STACK.name} --model {MODEL}` to the first answer: more than typed by hand",
            values=more,
            unit="s",
            most=0.6,
            note=f"{seconds(pairs.a)} against {seconds(pairs.b)}; processor time {processor(pairs.a)}",
        )
    ]


@contextmanager
def _typed(home: Path) -> Iterator[Running]:
    """The command that a person would type."""
    running = api.run_server(
        STACK.name,
        gpu=",".join(STACK.gpu),
        base=STACK.base,
        model=MODEL,
        name=f"{NAME}.typed",
        dry=True,
        home=home,
    )
    try:
        yield running
    finally:
        api.stop_server(running.server.name, home=home)


def _by_hand(typed: Running, log: Path) -> Took:
    """Start it, and ask until it answers; as quick as anybody could be."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(typed.server.command, stdout=out, stderr=out, start_new_session=True)
    try:
        _until_it_answers(typed, begun + LONGEST)
        wall = time.monotonic() - begun
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Took(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _until_it_answers(typed: Running, end: float) -> None:
    while time.monotonic() < end:
        try:
            api.ask_server(typed)
        except RocwrightError:
            time.sleep(0.02)
        else:
            return
    raise BenchError(f"{typed.server.name} did not answer within {LONGEST:.0f} s")
