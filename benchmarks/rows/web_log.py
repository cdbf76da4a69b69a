"""A live log with many clients: how late a line is, and what a client costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.clients import elsewhere, first_byte, get, place_of, serve
from benchmarks.listeners import asking, listeners
from benchmarks.measure import BenchError, middle
from benchmarks.place import bench_home
from benchmarks.results import Measured
from rocwheel.http.server import room_for
from rocwright.bases.roots import remove_tree
from rocwright.home import Home
from rocwright.records.model import Run, StepRun
from rocwright.records.opening import open_records

CLIENTS, LINES = 200, 40
MANY, FEWER_LINES = 1000, 20
LOST = 50
"""Clients that do not read, and as many that have gone, beside a thousand."""


def measure(runs: int | None) -> Sequence[Measured]:
    """Three rows."""
    folder = bench_home().path / "bench" / "web-log"
    remove_tree(folder)
    room_for(MANY)
    try:
        late, memory = _listen(folder / "some", CLIENTS, LINES, 0)
        many, each = _listen(folder / "many", MANY, FEWER_LINES, LOST)
    finally:
        remove_tree(folder)
    return [
        Measured(
            name="web:live-log",
            what=f"a new line of a log until the last of {CLIENTS} clients has it",
            values=[max(late)],
            unit="s",
            most=0.2,
            note=_spread(late, LINES),
        ),
        Measured(
            name="web:live-memory",
            what="memory of the server for one client of a live log",
            values=[memory / 2**10],
            unit="KiB",
            most=1024,
            note=f"{CLIENTS} clients; {each / 2**10:.0f} KiB with {MANY:,}",
        ),
        Measured(
            name="web:live-thousand",
            what=f"a new line of a log until the last of {MANY:,} clients has it, beside {LOST} who do not "
            f"read and {LOST} who went",
            values=[max(many)],
            unit="s",
            note=_spread(many, FEWER_LINES),
        ),
    ]


def _spread(late: Sequence[float], lines: int) -> str:
    last = sorted(late)[int(len(late) * 0.99)]
    return f"{lines} lines; the middle client {middle(late) * 1000:.0f} ms, 99 of 100 {last * 1000:.0f} ms"


def _listen(folder: Path, clients: int, lines: int, lost: int) -> tuple[list[float], float]:
    """How late each line was at each client, in seconds, and bytes of the server for one."""
    home = Home(folder / "home")
    step = StepRun(name="torch", key="k", outcome="", state="running", log="torch.log")
    run = Run(
        id="run", command="build", started="2026-01-01T00:00:00Z", seconds=0, stack="s", gpu=("g",), base="b",
        outcome="", state="running", steps=(step,),
    )  # fmt: skip
    with open_records(home) as records:
        records.put(run)
    path = home.runs / run.id / step.log
    path.parent.mkdir(parents=True)
    path.touch()
    with serve(folder) as (link, child), elsewhere():
        place, host = place_of(link)
        request = get(host, f"/runs/{run.id}/log/{step.name}/live")
        first_byte(place, get(host, "/runs"))
        before = child.memory_info().rss
        deaf = [asking(place, request) for _ in range(lost)]
        gone = [asking(place, request) for _ in range(lost)]
        with listeners(place, request, clients) as every:
            # every answer has begun
            _until(lambda: all(one.begun or one.events for one in every))
            for one in gone:
                one.close()
            with path.open("a") as file:
                for _ in range(lines):
                    file.write(f"{time.time()} a line of a compiler, as long as such lines are {'x' * 100}\n")
                    file.flush()
                    time.sleep(0.25)
            time.sleep(1)
            memory = child.memory_info().rss - before
        for one in deaf:
            one.close()
    late = [seconds for one in every for seconds in one.late()]
    if len(late) != clients * lines:
        raise BenchError(f"{len(late)} of {clients * lines} lines came")
    return late, memory / clients


def _until(holds: Callable[[], bool]) -> None:
    for _ in range(600):
        if holds():
            return
        time.sleep(0.05)
    raise BenchError("not every client was answered")
