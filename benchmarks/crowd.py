"""A crowd of processes that take memory, run by make or ninja in a sandbox: under the job server, or with a
number of jobs and a limit that the kernel enforces."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.measure import BenchError
from rocwright import process, sandbox
from rocwright.build.jobs.forms import FIFO, Wanted
from rocwright.build.jobs.join import join
from rocwright.build.jobs.server import JobServer
from rocwright.build.jobs.tokens import NAME as TOKENS
from rocwright.home import Home
from rocwright.plan.model import FetchAction, Needs, Step
from rocwright.sandbox.model import Ended, Job, Mount

WORK = "/work"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """Takes `seconds` of a processor and `peak` MiB, most of it after the share `late` of its time."""

    peak: int
    seconds: float
    late: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How it went: wall seconds, whether all was built, whether something was killed for memory; the seconds
    that processes were paused, all together, and the fewest and most that were allowed."""

    wall: float
    ok: bool
    killed: bool
    paused: float = 0
    least: int = 0
    most: int = 0
    lines: Sequence[str] = ()


def compilers(seed: int, count: int, least: int, most: int, pace: float) -> list[Compiler]:
    """As many small as large by the logarithm of their peak, in MiB; a third swells only at the end.

    `pace` is the seconds of a processor for a GiB; each takes 0.8 to 2 times that, and a little more.
    """
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        peak = round(least * (most / least) ** chance.random())
        seconds = peak / 1024 * chance.uniform(0.8, 2.0) * pace + chance.uniform(0.1, 0.3)
        found.append(Compiler(peak=peak, seconds=round(seconds, 3), late=chance.choice((0.0, 0.0, 0.7))))
    return found


def lay_out(folder: Path, crowd: Sequence[Compiler]) -> None:
    """The compiler's program, a Makefile and a build.ninja that call it for each of the crowd."""
    folder.mkdir(parents=True)
    source = Path(__file__).with_name("compiler.c")
    made = process.run(["cc", "-O2", "-o", folder / "cc1plus", source])
    if not made.ok:
        raise BenchError(f"cc: {made.stderr}")
    calls = [f"./cc1plus {one.peak} {one.seconds} {one.late} {at}.o" for at, one in enumerate(crowd)]
    rules = "".join(f"{at}.o:\n\t@{call}\n" for at, call in enumerate(calls))
    every = " ".join(f"{at}.o" for at in range(len(calls)))
    (folder / "Makefile").write_text(f"all: {every}\n{rules}")
    edges = "".join(f"build {at}.o: run\n  call = {call}\n" for at, call in enumerate(calls))
    (folder / "build.ninja").write_text(f"rule run\n  command = $call\n{edges}")
    sandbox.make_writable(folder)


def clean(folder: Path) -> None:
    """Forget what was built."""
    for made in (*folder.glob("*.o"), *folder.glob(".ninja*")):
        made.unlink()


def with_number(engine: sandbox.Engine, folder: Path, words: str, limit: int) -> Ran:
    """Run a command in the folder, in a sandbox with that many bytes."""
    return _run(engine, replace(_job(engine, folder, words), memory=limit))


def under_server(
    engine: sandbox.Engine, folder: Path, words: str, limit: int, *, jobs: int, reckoned: int, home: Home
) -> Ran:
    """Run it under a job server of at most `jobs` processes and so many bytes; a job is `reckoned` with."""
    step = Step(
        name="crowd",
        component="crowd",
        action=FetchAction(files=()),
        needs=Needs(cores=jobs, memory=reckoned),
    )
    with JobServer(home, jobs=jobs, memory=limit) as server, _variables(server.environment):
        seat = server.seat(step)
        assert seat is not None
        seat.started(os.getpid())
        fifo = Mount(source=server.folder / TOKENS, target=FIFO, writable=True)
        job = _job(engine, folder, words, *((fifo,) if engine.isolates else ()))
        lines: list[str] = []
        form = join(engine, job, server.folder, Wanted(jobs=seat.jobs, memory=limit), lines.append)
        script = "\n".join(part for part in (form.opens, words) if part)
        job = replace(job, env={**job.env, **form.env}, argv=("/bin/sh", "-ec", script))
        ran = _run(engine, job)
        held = seat.close()
    told = replace(ran, paused=held.paused_seconds, least=held.least, most=held.most)
    return replace(told, lines=[*lines, *ran.lines])


def _job(engine: sandbox.Engine, folder: Path, words: str, *mounts: Mount) -> Job:
    env = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LC_ALL": "C"}
    if not engine.isolates:
        return Job(root=Path("/"), argv=("/bin/sh", "-ec", words), env=env, workdir=str(folder))
    root = folder.parent / "root"
    if not root.exists():
        for name in ("usr", "etc", "opt"):
            (root / name).mkdir(parents=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            (root / name).symlink_to(f"usr/{name}")
    usr = Mount(source=Path("/usr"), target="/usr")
    work = Mount(source=folder, target=WORK, writable=True)
    return Job(root=root, argv=("/bin/sh", "-ec", words), env=env, workdir=WORK, mounts=(usr, work, *mounts))


def _run(engine: sandbox.Engine, job: Job) -> Ran:
    lines: list[str] = []
    begun = time.monotonic()
    outcome = sandbox.run(engine, job, lines.append)
    wall = time.monotonic() - begun
    return Ran(wall=wall, ok=outcome.ok, killed=outcome.ended is Ended.OUT_OF_MEMORY, lines=lines)


@contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    """With these in the environment, as the server's steps have them."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
