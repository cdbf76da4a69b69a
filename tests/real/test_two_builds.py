"""Two `rocwright build` at once on one machine, with one home: real compilers in real sandboxes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from samples.project import make_sources, open_project, put_roots
from tests.real.standins import CMAKE

from rocwright.home import Home
from rocwright.plan.resolve.files import read_lock, write_lock, write_request
from rocwright.sandbox import cgroup, state
from rocwright.sandbox.cgroup import Cgroup
from rocwright.sources.bases.roots import remove_tree

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not CMAKE, reason="gcc, cmake or ninja is not installed"),
]

CORES = os.cpu_count() or 1
MIB = 1024**2

SOURCE = """#define A8 PART, PART, PART, PART, PART, PART, PART, PART,
#define A64 A8 A8 A8 A8 A8 A8 A8 A8
#define A512 A64 A64 A64 A64 A64 A64 A64 A64
#define A4K A512 A512 A512 A512 A512 A512 A512 A512
#define A32K A4K A4K A4K A4K A4K A4K A4K A4K
#define A256K A32K A32K A32K A32K A32K A32K A32K A32K
const int table[] = { SIZE };
"""
"""A table of so many numbers: a compiler takes some 1 s and 330 MiB for a million."""

MAKEFILE = """.PHONY: all
all: $(addsuffix .o,$(shell seq $(N)))
%.o: table.c
\t@gcc -ffreestanding -nostdinc -DPART=$* -DSIZE='$(SIZE)' -c $< -o $@
"""


def recipe(name: str, count: int, size: str) -> dict[str, dict[str, object]]:
    """A component of so many units of that size."""
    return {
        name: {
            "kind": "archive",
            "run": [f"make N={count} SIZE='{size}'", f"ar rcsD $OUT/{name}.a *.o"],
            "output": [{"name": "archive", "pattern": f"{name}.a"}],
        }
    }


@dataclass
class Compilers:
    """Looks at the compilers below some processes, again and again: each look has, for each of those, the
    ids of its compilers, without those that are stopped."""

    looks: list[dict[str, frozenset[int]]] = field(default_factory=list)
    builds: dict[str, int] = field(default_factory=dict)
    _over: Event = field(default_factory=Event)

    def watch(self) -> None:
        while not self._over.wait(0.03):
            self.looks.append(self._look())

    def end(self) -> None:
        self._over.set()

    def _look(self) -> dict[str, frozenset[int]]:
        parents: dict[int, int] = {}
        found: list[int] = []
        for entry in os.scandir("/proc"):
            if not entry.name.isdigit():
                continue
            try:
                name, _, rest = Path(entry.path, "stat").read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            words = rest.split()
            parents[int(entry.name)] = int(words[1])
            if name == "cc1" and words[0] not in "TZX":
                found.append(int(entry.name))
        return {
            name: frozenset(pid for pid in found if _is_below(pid, build, parents))
            for name, build in self.builds.items()
        }


def _is_below(pid: int, above: int, parents: dict[int, int]) -> bool:
    while pid not in (0, above):
        pid = parents.get(pid, 0)
    return pid == above


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where builds run: with one home, and within a cgroup where there is one."""

    home: Home
    engine: str
    root: Path
    folder: Path
    compilers: Compilers
    within: Cgroup | None = None

    def project(self, name: str, count: int, size: str) -> Path:
        """The folder of a project whose component is `name`."""
        sources, project = self.folder / f"{name}-sources", self.folder / name
        make_sources(sources, recipe(name, count, size), {"table.c": SOURCE, "Makefile": MAKEFILE})
        put_roots(open_project(sources, self.home.path), self.root)
        lock = read_lock(sources / "rocwright.lock")
        write_request(project / "rocwright.toml", lock.request)
        write_lock(project / "rocwright.lock", lock)
        return project

    def begin(self, project: Path) -> subprocess.Popen[str]:
        """`rocwright build` there."""
        command = [sys.executable, "-m", "rocwright", "build", "--json", "--no-compiler-cache"]
        inside = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self.within.procs)] if self.within else []
        build = subprocess.Popen(
            [*inside, *command, "--engine", self.engine],
            cwd=project,
            env=os.environ
            | {
                "ROCWRIGHT_HOME": str(self.home.path),
                "ROCWRIGHT_CATALOG": str(self.folder / f"{project.name}-sources/catalog"),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.compilers.builds[project.name] = build.pid
        return build


def ends(build: subprocess.Popen[str], name: str) -> dict[str, Any]:
    """Wait for a build; what it tells of the step that compiles."""
    out, err = build.communicate(timeout=600)
    assert build.returncode == 0, err[-4000:]
    steps = [one for one in json.loads(out)["run"]["steps"] if one["name"] == name]
    assert [one["outcome"] for one in steps] == ["built"], steps
    return dict(steps[0])


def until_it_compiles(compilers: Compilers, name: str) -> None:
    end = time.monotonic() + 300
    while not any(look.get(name) for look in compilers.looks[-1:]):
        assert time.monotonic() < end, "it never compiled"
        time.sleep(0.02)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setenv("ROCWRIGHT_RUNTIME_DIR", str(tmp_path / "run"))
    home = Home(tmp_path / "home")
    home.path.mkdir()
    yield home
    remove_tree(home.path)


@pytest.fixture
def compilers() -> Iterator[Compilers]:
    found = Compilers()
    watching = Thread(target=found.watch)
    watching.start()
    yield found
    found.end()
    watching.join()


@pytest.fixture
def machine(home: Home, engine: str, compiler_root: Path, tmp_path: Path, compilers: Compilers) -> Machine:
    return Machine(home=home, engine=engine, root=compiler_root, folder=tmp_path, compilers=compilers)


def test_two_builds_have_no_more_compilers_than_the_machine_has_processors(
    machine: Machine, compilers: Compilers
) -> None:
    """The second begins while the first has all: make takes a token again the moment that it gave it back."""
    # without real-time priority a token is not always taken away the first time
    many = 1 if os.geteuid() == 0 else 4
    counts = (("one", 24 * many * CORES), ("two", 8 * many * CORES))
    one, two = (machine.project(name, count, "A256K") for name, count in counts)
    first = machine.begin(one)
    until_it_compiles(compilers, "one")
    second = machine.begin(two)
    assert ends(second, "two")["most_jobs"] <= max(CORES - 1, 1)
    assert ends(first, "one")["least_jobs"] <= max(CORES // 2, 1)
    both = [look for look in compilers.looks if all(look.get(name) for name in ("one", "two"))]
    assert len(both) > 10
    # what the first ran when the second came ends, and is not begun again
    settled = both[len(both) // 2 :]
    assert max(sum(map(len, look.values())) for look in settled) <= CORES
    after = compilers.looks[compilers.looks.index(both[-1]) :]
    assert max(len(look["one"]) for look in after) == CORES


@pytest.mark.nightly
def test_when_the_first_build_is_killed_the_other_goes_on_with_all_jobs(
    machine: Machine, compilers: Compilers
) -> None:
    one, two = (machine.project(name, count * CORES, "A256K") for name, count in (("one", 99), ("two", 10)))
    first = machine.begin(one)
    until_it_compiles(compilers, "one")
    second = machine.begin(two)
    until_it_compiles(compilers, "two")
    first.send_signal(signal.SIGKILL)
    killed = len(compilers.looks)
    told = ends(second, "two")
    assert first.wait() == -signal.SIGKILL
    assert told["most_jobs"] == CORES
    assert max(len(look["two"]) for look in compilers.looks[killed:]) == CORES
    # nothing of the first is left: no compiler, no sandbox, nothing that it said
    assert [path.name for path in state.home().iterdir() if path.is_dir()] == []


@pytest.fixture
def short(machine: Machine) -> Iterator[Machine]:
    """A machine with room for what two builds are by themselves, and for a compiler and a half."""
    within = cgroup.create_above(f"rocwright-test-{os.getpid()}")
    if within is None:
        pytest.skip("no cgroup may be made here")
    within.limit(620 * MIB)
    # of version 2 none may have both processes and cgroups below
    builds = within.folder / "builds"
    builds.mkdir()
    yield replace(machine, within=replace(within, folder=builds))
    cgroup.remove(within.path)


@pytest.mark.nightly
def test_where_memory_is_short_for_both_together_no_try_is_lost(short: Machine) -> None:
    """A compiler takes 330 MiB. Alone, each build lets its oldest go on, and both together are killed."""
    assert short.within is not None
    one, two = (short.project(name, 3, "A256K A256K A256K A256K") for name in ("one", "two"))
    builds = {"one": short.begin(one), "two": short.begin(two)}
    told = [ends(build, name) for name, build in builds.items()]
    assert replace(short.within, folder=short.within.folder.parent).oom_kills() == 0
    assert sum(step["paused"] for step in told) > 0
