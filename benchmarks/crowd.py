"""A crowd of processes that take memory, run by make or ninja in a sandbox: under the job server, or with a
number of jobs and a limit that the kernel enforces."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.measure import BenchError, middle
from rocbase.processes import run as process
from rocwright import sandbox
from rocwright.execution.jobs.forms import FIFO, JobsRequest
from rocwright.execution.jobs.join import join
from rocwright.execution.jobs.server import JobServer
from rocwright.execution.jobs.tokens import NAME as TOKENS
from rocwright.home import Home
from rocwright.model.steps import FetchAction, Resources, Step
from rocwright.sandbox.model import Ended, Mount, SandboxJob

WORK = "/work"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """Takes `seconds` of a processor and `peak` MiB, most of it after the share `late` of its time."""

    peak: int
    seconds: float
    late: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How it went: wall seconds, whether all was built, whether something was killed for memory, the most
    bytes at once; the seconds that processes were paused, all together, and the fewest and most allowed."""

    wall: float
    ok: bool
    killed: bool
    peak: int = 0
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """Where commands are run: the folder, writable, and the root of the engine's sandbox (None: one that has
    the host's /usr)."""

    engine: sandbox.Engine
    folder: Path
    root: Path | None = None

    def with_number(self, words: str, limit: int) -> Ran:
        """Run a command in the folder, in a sandbox with that many bytes."""
        return _run(self.engine, replace(self._job(words), memory=limit))

    def under_server(self, words: str, limit: int, *, jobs: int, reckoned: int, home: Home) -> Ran:
        """Run it under a job server of at most `jobs` processes and so many bytes; one is `reckoned` with."""
        needs = Resources(cores=jobs, memory=reckoned)
        step = Step(name="crowd", component="crowd", action=FetchAction(files=()), resources=needs)
        told: list[str] = []
        with (
            JobServer(home, jobs=jobs, memory=limit, say=told.append) as server,
            _variables(server.environment),
        ):
            seat = server.seat(step)
            assert seat is not None
            seat.started(os.getpid())
            fifo = Mount(source=server.folder / TOKENS, target=FIFO, writable=True)
            job = self._job(words, *((fifo,) if self.engine.isolates else ()))
            wanted = JobsRequest(jobs=seat.jobs, memory=limit)
            form = join(self.engine, job, server.folder, wanted, told.append)
            script = "\n".join(part for part in (form.opens, words) if part)
            job = replace(job, env={**job.env, **form.env}, argv=("/bin/sh", "-ec", script))
            ran = _run(self.engine, job)
            held = seat.close()
        seen = replace(ran, paused=held.paused_seconds, least=held.least, most=held.most)
        return replace(seen, lines=[*told, *ran.lines])

    def _job(self, words: str, *mounts: Mount) -> SandboxJob:
        env = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LC_ALL": "C"}
        argv = ("/bin/sh", "-ec", words)
        if not self.engine.isolates:
            return SandboxJob(root=Path("/"), argv=argv, env=env, workdir=str(self.folder))
        usr = () if self.root else (Mount(source=Path("/usr"), target="/usr"),)
        work = Mount(source=self.folder, target=WORK, writable=True)
        root = self.root or _bare_root(self.folder.parent / "root")
        return SandboxJob(root=root, argv=argv, env=env, workdir=WORK, mounts=(*usr, work, *mounts))


def _bare_root(root: Path) -> Path:
    """A root whose /usr comes as a mount."""
    if not root.exists():
        for name in ("usr", "etc", "opt"):
            (root / name).mkdir(parents=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            (root / name).symlink_to(f"usr/{name}")
    return root


def _run(engine: sandbox.Engine, job: SandboxJob) -> Ran:
    lines: list[str] = []
    begun = time.monotonic()
    outcome = sandbox.run(engine, job, lines.append)
    wall = time.monotonic() - begun
    killed = outcome.ended is Ended.OUT_OF_MEMORY
    return Ran(wall=wall, ok=outcome.ok, killed=killed, peak=outcome.peak_memory or 0, lines=lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Ratios of the job server's walls to the best number's, kills under it, and the words about both."""

    ratios: Sequence[float]
    kills: Sequence[float]
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """The job server with up to `most` jobs against fixed numbers, under `limit` bytes.

    `clean` comes first. `fixed_words` run with a number, `served_words` under the server.
    """

    shop: Shop
    home: Home
    clean: Callable[[], None]
    limit: int
    reckoned: int
    most: int
    fixed_words: str = "make -j{jobs}"
    served_words: str = "make"

    def run(self, numbers: Iterable[int], runs: int) -> Told:
        """Try all numbers, then the server and the best of them in turns. Raises BenchError: none lives."""
        tried = {jobs: self.fixed(self.fixed_words.format(jobs=jobs)) for jobs in numbers}
        alive = {jobs: ran.wall for jobs, ran in tried.items() if ran.ok}
        if not alive:
            raise BenchError("every fixed number of jobs was killed: too little memory for this")
        best = min(alive, key=lambda jobs: alive[jobs])
        # measured again in turns: the quickest of many is quick by luck too
        again_words = self.fixed_words.format(jobs=best)
        pairs = [(self.served(), self.fixed(again_words)) for _ in range(runs)]
        served, again = [ran for ran, _ in pairs], [ran.wall for _, ran in pairs if ran.ok]
        wall = middle(again) if again else alive[best]
        unlucky = f", killed in {runs - len(again)} of {runs} more runs" if len(again) < runs else ""
        ends = {True: "", False: " (killed)"}
        walls = ", ".join(f"-j{jobs} {ran.wall:.1f} s{ends[ran.ok]}" for jobs, ran in tried.items())
        ours = middle([ran.wall for ran in served])
        least, most = min(ran.least for ran in served), max(ran.most for ran in served)
        waited = middle([ran.paused for ran in served])
        return Told(
            ratios=[ran.wall / wall for ran in served],
            kills=[float(not ran.ok) for ran in served],
            note=f"best -j{best} with {wall:.1f} s{unlucky}, the server {ours:.1f} s; numbers: {walls}; "
            f"under the server {least} to {most} jobs were allowed, and processes waited {waited:.1f} s",
        )

    def fixed(self, words: str) -> Ran:
        """A command as it is, with the limit."""
        self.clean()
        ran = self.shop.with_number(words, self.limit)
        print(f"    {words}: {_said(ran)}", flush=True)
        return ran

    def served(self) -> Ran:
        """Under the server, with nothing learnt."""
        self.clean()
        self.home.job_memory.unlink(missing_ok=True)
        ran = self.shop.under_server(
            self.served_words, self.limit, jobs=self.most, reckoned=self.reckoned, home=self.home
        )
        print(f"    the job server: {_said(ran)}, waited {ran.paused:.1f} s", flush=True)
        return ran


def _said(ran: Ran) -> str:
    return f"{ran.wall:.1f} s, " + ("built" if ran.ok else "killed for memory" if ran.killed else "FAILED")


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
