"""Builds over a farm to which something happens: a real S3 server, coordinator and workers, a bad network.

`python -m tests.farm.faults [COUNT [SEED [SECONDS]]]` tries so many, in turn of each kind, and prints what
became of each; a worker that is stopped is stopped for so many seconds.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from samples.making import make_tiny_root
from samples.project import TinyProject, make_sources, open_project, put_roots
from tests.farm.machines import Running, make_homes, running, until
from tests.farm.proxy import Proxy, proxied
from tests.store.servers import s3

from rocwright.store.bucket import Bucket

LONGEST = 180.0
ORPHANS = 5.0
WORKERS = ("one", "two")
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)

MARK = "rocwright-fault-"
"""What the commands of steps have in their words, by which their processes are known."""

TAR = "tar --sort=name --mtime=@$SOURCE_DATE_EPOCH --owner=0 --group=0 -czf"


def recipes(seed: int) -> dict[str, dict[str, object]]:
    """Four components: two alone, one that takes both in, one that takes that; each takes a second or so."""
    moments = random.Random(seed)

    def recipe(name: str, *needs: str) -> dict[str, object]:
        seconds = round(moments.uniform(0.3, 1.5), 2)
        parts = " ".join(f"$IN/{one}/*.gz" for one in needs)
        return {
            "kind": "archive",
            "run": [
                f"sleep {seconds} # {MARK}{seed}",
                f"mkdir {name}-1 && echo {seed} {name} > {name}-1/said",
                *([f"cat {parts} | wc -c >> {name}-1/said"] if needs else []),
                f"{TAR} $OUT/{name}-1.0.tar.gz {name}-1",
            ],
            "output": [{"name": "archive", "pattern": f"{name}-*.tar.gz"}],
            "uses": dict.fromkeys(needs, ">=1"),
        }

    return {
        "alpha": recipe("alpha"),
        "beta": recipe("beta"),
        "gamma": recipe("gamma", "alpha", "beta"),
        "delta": recipe("delta", "gamma"),
    }


@dataclass
class Machine:
    """A process of the farm, and how it is started again."""

    start: Callable[[ExitStack], Running]
    stack: ExitStack = field(default_factory=ExitStack)
    running: Running | None = None

    def up(self) -> Running:
        """It runs, started again if it has ended."""
        if self.running is None or self.running.process.poll() is not None:
            self.stack.close()
            self.running = self.start(self.stack)
        return self.running

    def signal(self, number: int) -> None:
        assert self.running is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.running.process.pid, number)
        if number == signal.SIGKILL:
            # it takes some 15 ms to end; who looks sooner finds it running, and does not start it again
            self.running.process.wait()


@dataclass
class Told:
    """What became of a build to which something happened."""

    kind: str
    seed: int
    right: bool
    seconds: float
    builds: int
    why: str = ""


class Scene:
    """A farm in a folder: who asks, the coordinator, two workers, each with its own way to the bucket."""

    def __init__(self, folder: Path, stack: ExitStack, stop_for: float) -> None:
        self.folder, self.stop_for = folder, stop_for
        self.homes = make_homes(folder / "homes")
        port = int(stack.enter_context(s3()).rpartition(":")[2])
        self.ways: dict[str, Proxy] = {
            name: stack.enter_context(proxied(port)) for name in (*self.homes, "free")
        }
        self.root = folder / "root.tar.zst"
        make_tiny_root(self.root, folder)
        self.machines = {"up": Machine(lambda stack: self._start(stack, "asks", "farm", "up", "--port", "0"))}
        self.address = self.machines["up"].up().wait_for("coordinator at").split()[-1]
        again = ("farm", "up", "--port", self.address.rpartition(":")[2])
        self.machines["up"].start = lambda stack: self._start(stack, "asks", *again)
        for name in WORKERS:
            self.machines[name] = Machine(self._worker(name))
        stack.callback(self._end)
        self.ready()

    def _end(self) -> None:
        for one in self.machines.values():
            one.stack.close()

    def _worker(self, name: str, **env: str) -> Callable[[ExitStack], Running]:
        words = ("farm", "worker", self.address, "--name", name)
        return lambda stack: self._start(stack, name, *words, **env)

    def _start(self, stack: ExitStack, name: str, *words: str, **env: str) -> Running:
        with self._reaching(name, env):
            return stack.enter_context(running(self.homes[name], *words))

    @contextlib.contextmanager
    def _reaching(self, name: str, more: dict[str, str]) -> Iterator[None]:
        """The environment of a machine, for what is started meanwhile."""
        before = dict(os.environ)
        os.environ.update(self.env(name) | more)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    def env(self, name: str) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.ways[name].url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "a-key",
            "AWS_SECRET_ACCESS_KEY": "a-secret",
        }

    def ready(self) -> None:
        """Everybody is there, and the network is well."""
        for way in self.ways.values():
            way.mood = "well"
        for one in self.machines.values():
            if one.running is not None:
                one.signal(signal.SIGCONT)
        self.machines["up"].up()
        for name in WORKERS:
            self.machines[name].up()
        words = (sys.executable, "-m", "rocwright", "farm", "status", self.address, "--json")

        def there() -> bool:
            env = os.environ | self.env("free") | {"ROCWRIGHT_HOME": str(self.homes["asks"])}
            told = subprocess.run(words, capture_output=True, text=True, env=env, timeout=60, check=False)
            return told.returncode == 0 and len(json.loads(told.stdout)) == len(WORKERS)

        until(there, 60)

    def project(self, seed: int) -> tuple[TinyProject, str]:
        sources, url = self.folder / f"sources-{seed}", f"s3://lab/fault-{seed}"
        make_sources(sources, recipes(seed))
        home = self.homes["asks"]
        (home / "config.toml").write_text(f'store = "{url}"\n\n[farm]\nscheduler = "{self.address}"\n')
        project = open_project(sources, home)
        put_roots(project, self.root)
        return project, url

    def build(self, seed: int) -> subprocess.Popen[str]:
        """`build` of the project of that seed, in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(self.folder / f"sources-{seed}"), str(self.homes["asks"])],
            cwd=Path(__file__).parents[2],
            env=os.environ | self.env("asks") | {"ROCWRIGHT_HOME": str(self.homes["asks"])},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def bucket(self, url: str) -> Bucket:
        with self._reaching("free", {}):
            bucket = Bucket(url)
            bucket.get("format.json", 2**20)
        return bucket

    def try_(self, kind: str, seed: int) -> Told:
        """A build to which that happens, at a moment of the seed; if it failed, the same command again."""
        moments = random.Random(f"{kind}-{seed}")
        self.ready()
        project, url = self.project(seed)
        begun, builds = time.monotonic(), 0
        victim = moments.choice(WORKERS)
        said = ""
        mends: list[threading.Timer] = []
        try:
            while builds < 3:
                builds += 1
                child = self.build(seed)
                if builds == 1:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        child.wait(moments.uniform(0.5, 4))
                    mends = [*getattr(self, f"_{kind}")(victim, url, moments)]
                try:
                    said, _ = child.communicate(timeout=LONGEST - (time.monotonic() - begun))
                except subprocess.TimeoutExpired:
                    os.killpg(child.pid, signal.SIGKILL)
                    said, _ = child.communicate()
                    return self._told(kind, seed, begun, builds, f"it waits for too long: {said[-600:]}")
                if child.returncode == 0:
                    break
                for one in mends:
                    one.join()
                self.ready()
            else:
                return self._told(kind, seed, begun, builds, f"no build succeeds: {said[-600:]}")
            why = self._wrong(project, seed, said)
            return self._told(kind, seed, begun, builds, why)
        finally:
            for one in mends:
                one.join()
            shutil.rmtree(self.folder / f"sources-{seed}", ignore_errors=True)

    def _told(self, kind: str, seed: int, begun: float, builds: int, why: str) -> Told:
        return Told(kind, seed, not why, round(time.monotonic() - begun, 1), builds, why)

    def _wrong(self, project: TinyProject, seed: int, said: str) -> str:
        """What is not as it should be after a build that succeeded; "" where all is."""
        time_out = time.monotonic() + ORPHANS
        while left := [one for one in psutil.process_iter(["cmdline"]) if _is_step(one, seed)]:
            if time.monotonic() > time_out:
                return f"{len(left)} processes of its steps run still"
            time.sleep(0.1)
        told = json.loads(said.splitlines()[-1])
        alone = self._alone(seed)
        return "" if told == alone else f"other bytes: {told}, not {alone}"

    def _alone(self, seed: int) -> dict[str, str]:
        """The artifacts of a build on one machine, which nothing happens to."""
        home = self.folder / f"alone-{seed}"
        project = open_project(self.folder / f"sources-{seed}", home)
        put_roots(project, self.root)
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, str(self.folder / f"sources-{seed}"), str(home), "local"],
            cwd=Path(__file__).parents[2],
            env=os.environ | {"ROCWRIGHT_HOME": str(home)},
            capture_output=True,
            text=True,
            check=True,
        )
        shutil.rmtree(home, ignore_errors=True)
        found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
        return found

    # what happens; each gives what mends it later

    def _kill_worker(self, victim: str, url: str, moments: random.Random) -> Iterator[threading.Timer]:
        self.machines[victim].signal(signal.SIGKILL)
        yield from ()

    def _kill_both(self, victim: str, url: str, moments: random.Random) -> Iterator[threading.Timer]:
        for name in WORKERS:
            self.machines[name].signal(signal.SIGKILL)
            time.sleep(moments.uniform(0, 1))
            self.machines[name].up()
        yield from ()

    def _stop_worker(self, victim: str, url: str, moments: random.Random) -> Iterator[threading.Timer]:
        machine = self.machines[victim]
        machine.signal(signal.SIGSTOP)
        yield _later(self.stop_for, lambda: machine.signal(signal.SIGCONT))

    def _kill_coordinator(self, victim: str, url: str, moments: random.Random) -> Iterator[threading.Timer]:
        self.machines["up"].signal(signal.SIGKILL)
        yield from ()

    def _store_fails(self, victim: str, url: str, moments: random.Random) -> Iterator[threading.Timer]:
        yield from self._network("failing", [*self.ways], moments)

    def _store_is_slow(self, victim: str, url: str, moments: random.Random) -> Iterator[threading.Timer]:
        yield from self._network("slow", [*self.ways], moments)

    def _partition(self, victim: str, url: str, moments: random.Random) -> Iterator[threading.Timer]:
        yield from self._network("cut", [victim], moments)

    def _network(self, mood: str, names: list[str], moments: random.Random) -> Iterator[threading.Timer]:
        def all_(now: str) -> None:
            for name in names:
                if name != "free":
                    self.ways[name].mood = now  # type: ignore[assignment]

        all_(mood)
        yield _later(moments.uniform(2, 10), lambda: all_("well"))

    def _truncate_blob(self, victim: str, url: str, moments: random.Random) -> Iterator[threading.Timer]:
        """Some file in the bucket loses its end, and nobody has another copy."""
        bucket = self.bucket(url)
        names = sorted(one.name for one in bucket.list("blobs"))
        if names:
            name = moments.choice(names)
            data = bucket.get(name, 2**30) or b""
            bucket.replace(name, data[: len(data) // 2])
            sha256 = name.rpartition("/")[2]
            for worker in WORKERS:
                for copy in (self.homes[worker] / "store/blobs").glob(f"*/{sha256}"):
                    copy.unlink()
        yield from ()

    def _clock(self, victim: str, url: str, moments: random.Random) -> Iterator[threading.Timer]:
        """A worker whose clock is an hour off takes the place of one."""
        hours = moments.choice(("+1h", "-1h"))
        machine, usual = self.machines[victim], self.machines[victim].start
        faked = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": hours, "DONT_FAKE_MONOTONIC": "1"}
        machine.signal(signal.SIGKILL)
        machine.start = self._worker(victim, **faked)
        machine.up()
        machine.start = usual

        def mend() -> None:
            machine.signal(signal.SIGKILL)

        yield _later(20, mend)

    def _kill_step(self, victim: str, url: str, moments: random.Random) -> Iterator[threading.Timer]:
        """The process of a step on its worker."""
        running = self.machines[victim].running
        assert running is not None
        for one in psutil.Process(running.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if "exec-step" in one.cmdline():
                    one.kill()
                    break
        yield from ()


KINDS = tuple(
    name.removeprefix("_")
    for name in (
        "_kill_worker",
        "_kill_both",
        "_stop_worker",
        "_kill_coordinator",
        "_store_fails",
        "_store_is_slow",
        "_partition",
        "_truncate_blob",
        "_clock",
        "_kill_step",
    )
)

DRIVER = """
import json, sys
from pathlib import Path
from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import PlainProgress
from rocwright.flow import build
from rocbase.errors import ExplainedError
from samples.project import open_project

project = open_project(Path(sys.argv[1]), Path(sys.argv[2]))
executor = sys.argv[3] if len(sys.argv) > 3 else "dask"
try:
    with PlainProgress() as progress:
        options = BuildOptions(jobs=2, engine="bubblewrap", executor=executor)
        built = build(project, project.locked, options, progress)
except ExplainedError as error:
    print("raised", error.failure, error.message, error.cause)
    sys.exit(3)
for name, error in built.failures:
    print("failed", name, error.failure, error.message, error.cause)
print(json.dumps({one.output.filename: one.output.sha256 for one in built.artifacts}))
sys.exit(1 if built.failures else 0)
"""


def _later(seconds: float, do: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(seconds, do)
    timer.start()
    return timer


def _is_step(one: psutil.Process, seed: int) -> bool:
    return any(f"{MARK}{seed}" in word for word in one.info["cmdline"] or ())


def main(words: list[str]) -> int:
    """Try so many, in turn of each kind, and print a table; 1 where one did not end right."""
    count, first, stop_for = (int(word) for word in (*words, *("200", "1", "60")[len(words) :]))
    # each request to the S3 server
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    ends: Counter[str] = Counter()
    longest: dict[str, float] = {}
    wrong = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="faults-")))
        scene = Scene(folder, stack, stop_for)
        for seed in range(first, first + count):
            told = scene.try_(KINDS[seed % len(KINDS)], seed)
            ends[told.kind] += told.right
            longest[told.kind] = max(longest.get(told.kind, 0), told.seconds)
            how = "right" if told.right else "WRONG"
            print(f"{told.seed:4} {told.kind:17} {how}, {told.seconds} s, {told.builds} builds {told.why}")
            sys.stdout.flush()
            wrong += [] if told.right else [told]
    for kind in KINDS:
        print(f"{kind:17} {ends[kind]} right, longest {longest.get(kind, 0)} s")
    print(f"{count - len(wrong)} of {count} ended right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
