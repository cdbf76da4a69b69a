"""Break the modules that hold the promises, one small change at a time, and see what no test notices.

`make mutants` does the whole: mutmut makes the changes, a seed draws at most 300 of them for each module, and
the tests of the module's room run on each, those first that reach the changed line. What is broken may do
anything: it runs where only its own folder can be written. The results are written to .out/mutants.json and
.out/mutants.md; `--survivors` tries again what survived then, with the tests as they are now.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from coverage import CoverageData
from tools.draw_mutants import Mutant, drawn

from rocwright.sandbox import cgroup
from rocwright.sandbox.pids import limit

ROOT = Path(__file__).resolve().parents[1]
# Where modules lie, by the first part of their paths; others are below REST.
PACKAGES = {name: Path(f"packages/{name}/src") for name in ("rocbase", "rocwheel")}
REST = Path("src/rocwright")
TABLE, DATA = ROOT / "tools/mutants.toml", ROOT / ".out/mutants.json"
# What is broken can write to its own folder only, also at /tmp and /var/tmp; its processes end with it.
FENCE = r"""
mount --make-rprivate / && mount --bind "$1" "$1" && mount --bind "$1/tmp" /tmp \
    && mount --bind "$1/tmp" /var/tmp && mount -o remount,bind,ro / || exit 99
shift && exec "$@"
"""
# It starts in a cgroup: where the bounds of a sandbox are broken, a test of them would fill the machine.
JOIN = 'while test "$1" != --; do echo 0 > "$1" || exit 98; shift; done; shift; exec "$@"'
# That many processes, and bytes, has what is broken at most.
PROCESSES, MEMORY = 4000, 6 * 1024**3


def file_of(path: str) -> Path:
    """Where a module of the table lies."""
    return PACKAGES.get(path.partition("/")[0], REST) / path


@dataclass(frozen=True)
class Module:
    """A row of mutants.toml."""

    path: str
    promise: str
    tests: tuple[str, ...]

    @property
    def file(self) -> Path:
        return file_of(self.path)


@dataclass
class Tried:
    """What became of a module's mutants, of which there are `possible`; `source` is its text's sha256."""

    path: str
    source: str
    possible: int
    drawn: int
    ends: dict[str, int] = field(default_factory=dict)
    survivors: list[tuple[int, str, str]] = field(default_factory=list)

    def row(self, promise: str) -> str:
        tried = sum(self.ends.values())
        share = f"{1 - self.ends.get('survived', 0) / tried:.0%}" if tried else "-"
        ends = " | ".join(str(self.ends.get(one, 0)) for one in ("killed", "timeout", "survived"))
        left = self.drawn - tried
        return f"| `{self.path}` | {promise} | {self.possible} | {self.drawn} | {ends} | {left} | {share} |"


@dataclass
class Told:
    """The JSON file: how it was tried, and what became of each module."""

    seed: int
    most: int
    minutes: float = 0
    modules: list[Tried] = field(default_factory=list)


class Bench:
    """A copy of the package where mutants are tried one at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "tmp").mkdir(parents=True)
        for one in (Path("src"), *PACKAGES.values()):
            shutil.copytree(ROOT / one, folder / one)
        group = cgroup.create(f"mutants-{os.getpid()}-{folder.name}")
        bounds = limit(group, PROCESSES)
        if group is None or bounds is None:
            raise SystemExit("no cgroup can be made here that bounds processes: run it as root")
        group.limit(MEMORY)
        self.group = group.path
        self.enter = [str(path) for path in (group.procs, *bounds.procs)]

    def pytest(self, words: Sequence[str], timeout: float | None) -> int | None:
        """The exit code, None past the time."""
        asked = self.folder / "asked"
        asked.write_text("\n".join(words) + "\n")
        env = os.environ | {
            "PYTHONPATH": os.pathsep.join(
                str(self.folder / one) for one in (Path("src"), *PACKAGES.values())
            ),
            "PYTHONDONTWRITEBYTECODE": "1",
            "COVERAGE_FILE": str(self.folder / "coverage"),
            "ROCWRIGHT_RUNTIME_DIR": str(self.folder / "run"),
        }
        # all ends with this process, however that ends
        fence = [
            *("sh", "-c", JOIN, "sh", *self.enter, "--"),
            "setpriv",
            "--pdeathsig",
            "KILL",
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ]
        fence += ["sh", "-c", FENCE, "sh"]
        quiet = ["-q", "-x", "--no-header", "-m", "not real", "-p", "no:cacheprovider"]
        # one root for all packages: the names of tests that are told are then those that it is asked for
        config = ["-c", str(ROOT / "pyproject.toml")]
        pytest = [sys.executable, "-m", "pytest", *config, *quiet, f"@{asked}"]
        with (self.folder / "log").open("wb") as log:
            done = subprocess.Popen(
                [*fence, str(self.folder), *pytest], cwd=ROOT, env=env, stdout=log, stderr=subprocess.STDOUT
            )
            try:
                return done.wait(timeout)
            except subprocess.TimeoutExpired:
                done.kill()
                done.wait()
                return None
            finally:
                shutil.rmtree(self.folder / "tmp", ignore_errors=True)
                (self.folder / "tmp").mkdir(exist_ok=True)

    def reach(self, module: Module) -> tuple[dict[int, list[str]], float]:
        """The tests that reach each line of a module as it is, and the seconds that all of the room take."""
        begun = time.monotonic()
        measured = [
            *(f"--cov={self.folder / one}" for one in (REST, *PACKAGES.values())),
            "--cov-context=test",
            "--cov-report=",
        ]
        if (code := self.pytest([*measured, *module.tests], None)) != 0:
            raise RuntimeError(f"the tests of {module.path} fail as it is ({code}):\n{self.said()}")
        data = CoverageData(str(self.folder / "coverage"))
        data.read()
        contexts = data.contexts_by_lineno(str(self.folder / module.file))
        tests = {
            line: sorted({one.rpartition("|")[0] for one in names if one}) for line, names in contexts.items()
        }
        return tests, time.monotonic() - begun

    def said(self) -> str:
        """The end of what pytest printed last."""
        return (self.folder / "log").read_text(errors="replace")[-2000:]

    def try_one(
        self, module: Module, mutant: Mutant, runs: Sequence[Sequence[str]], seconds: float, quick: bool
    ) -> str:
        """How it ends: killed, timeout, or survived all of `runs`, if `quick` the first that can run."""
        file, limit = self.folder / module.file, 30 + 5 * seconds
        before = file.read_text()
        file.write_text(mutant.code)
        try:
            for words in filter(None, runs):
                code = self.pytest(words, limit)
                if code is None:
                    return "timeout"
                if code in (1, 2, 3) or (code == 4 and "ERROR: not found" not in self.said()):
                    return "killed"
                if code not in (0, 4, 5):  # 4 and 5: with it, those tests are not even there
                    raise SystemExit(f"pytest ended with {code}:\n{self.said()}")
                if quick and code == 0:
                    break
            return "survived"
        finally:
            file.write_text(before)


def near(tests: Mapping[int, list[str]], line: int) -> list[str]:
    """The tests that reach a line, or the statement that it goes on with; none where that is not known."""
    return next((tests[one] for one in range(line, max(0, line - 12), -1) if tests.get(one)), [])


def try_all(
    module: Module,
    benches: Sequence[Bench],
    asked: Told,
    until: float,
    only: Tried | None = None,
    *,
    quick: bool = False,
) -> Tried:
    """Try a module's mutants, or only those that survived before, each on a bench that is free, as long as
    there is time; `quick` leaves it at the tests that reach the changed line, where some are known to."""
    begun = time.monotonic()
    code = (ROOT / module.file).read_text()
    possible, picked = drawn(module.path, code, asked.seed, asked.most)
    found = Tried(module.path, hashlib.sha256(code.encode()).hexdigest(), possible, len(picked))
    ends: Counter[str] = Counter()
    if only is not None:
        picked = [one for one in picked if (one.line, one.was, one.now) in only.survivors]
        ends.update(only.ends)
        ends["survived"] -= len(picked)
    try:
        tests, seconds = benches[0].reach(module)
    except RuntimeError as error:
        print(error, flush=True)
        return only or found
    free: SimpleQueue[Bench] = SimpleQueue()
    for one in benches:
        free.put(one)

    def attempt(mutant: Mutant) -> str:
        bench = free.get()
        try:
            late = time.monotonic() > until
            close = near(tests, mutant.line)
            return "" if late else bench.try_one(module, mutant, [close, module.tests], seconds, quick)
        finally:
            free.put(bench)

    with ThreadPoolExecutor(len(benches)) as pool:
        for mutant, ended in zip(picked, pool.map(attempt, picked), strict=True):
            # what there was no time for survives as before
            end = ended or ("survived" if only else "")
            if end:
                ends[end] += 1
            if end == "survived":
                found.survivors.append((mutant.line, mutant.was, mutant.now))
                print(f"{module.path}:{mutant.line} survived\n{mutant.diff}", flush=True)
    found.ends = dict(ends)
    print(found.row(module.promise), f"{time.monotonic() - begun:.0f} s", flush=True)
    return found


def page(told: Told, promises: Mapping[str, str], reasons: Mapping[tuple[str, str, str], str]) -> str:
    """Render the table and the survivors."""
    lines = [f"Seed {told.seed}, at most {told.most} mutants a module, {told.minutes:.0f} minutes.", ""]
    lines += ["| module | promise | possible | drawn | killed | too slow | survived | not tried | noticed |"]
    lines += ["| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    lines += [one.row(promises[one.path]) for one in told.modules]
    for one in told.modules:
        for line, was, now in one.survivors:
            why = reasons.get((one.path, was.strip(), now.strip()), "No reason yet: a test is missing.")
            lines += ["", f"`{one.path}`, line {line}. {why}"]
            lines += ["", "```diff", Mutant("", line, was, now).diff, "```"]
    return "\n".join(lines) + "\n"


def read(path: Path) -> Told:
    """What an earlier run told."""
    said: dict[str, Any] = json.loads(path.read_text())
    modules = [Tried(**one) for one in said.pop("modules")]
    for one in modules:
        one.survivors = [(line, was, now) for line, was, now in one.survivors]
    return Told(modules=modules, **said)


def changed(told: Told, modules: Collection[str]) -> list[str]:
    """Which of the modules are no more what an earlier run tried."""
    return [
        one.path
        for one in told.modules
        if one.path in modules
        and hashlib.sha256((ROOT / file_of(one.path)).read_bytes()).hexdigest() != one.source
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Break the modules that hold the promises; see what no test notices."
    )
    parser.add_argument("only", nargs="*", help="modules as in the table; all of the table without one")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--most", type=int, default=300, help="mutants of each module")
    parser.add_argument("--hours", type=float, default=4)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--data", type=Path, default=DATA, help="the page is written beside it")
    parser.add_argument("--survivors", action="store_true", help="only what survived the run in --data")
    parser.add_argument("--quick", action="store_true", help="only tests that reach the changed line")
    asked = parser.parse_args()
    table = tomllib.loads(TABLE.read_text())
    modules = [Module(one["path"], one["promise"], tuple(one["tests"])) for one in table["module"]]
    promises = {one.path: one.promise for one in modules}
    reasons = {(one["path"], one["was"], one["now"]): one["why"] for one in table.get("reason", [])}
    modules = [one for one in modules if not asked.only or one.path in asked.only]
    begun = time.monotonic()

    def write(told: Told) -> None:
        asked.data.parent.mkdir(parents=True, exist_ok=True)
        asked.data.write_text(json.dumps(asdict(told), indent=1) + "\n")
        asked.data.with_suffix(".md").write_text(page(told, promises, reasons))

    before: dict[str, Tried] = {}
    if asked.survivors:
        told = read(asked.data)
        before = {one.path: one for one in told.modules if one.survivors}
        modules = [one for one in modules if one.path in before]
        if other := changed(told, [one.path for one in modules]):
            parser.error(f"{', '.join(other)} changed since: run it whole")
    else:
        told = Told(asked.seed, asked.most)
    print(f"seed {told.seed}, at most {told.most} mutants a module", flush=True)
    with tempfile.TemporaryDirectory(prefix="mutants-", dir=ROOT / ".venv") as folder:
        benches = [Bench(Path(folder, str(number))) for number in range(asked.jobs)]
        for left, one in zip(range(len(modules), 0, -1), modules, strict=True):
            now = time.monotonic()
            # what one leaves of its share is the others'
            until = now + (begun + 3600 * asked.hours - now) / left
            tried = try_all(one, benches, told, until, before.get(one.path), quick=asked.quick)
            rest = [other for other in told.modules if other.path != one.path]
            told.modules = sorted([*rest, tried], key=lambda other: list(promises).index(other.path))
            told.minutes = told.minutes if asked.survivors else (time.monotonic() - begun) / 60
            write(told)
        for bench in benches:
            cgroup.remove(bench.group)
    write(told)


if __name__ == "__main__":
    main()
