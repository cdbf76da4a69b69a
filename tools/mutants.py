"""Break the modules that hold the promises, one small change at a time, and see what no test notices.

`make mutants` does the whole: mutmut makes the changes, a seed draws at most 300 of them for each module, and
the tests of the module's room run on each, those first that reach the changed line. What is broken may do
anything: it runs where only its own folder can be written. What was found is written to docs/mutants.md.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue

from coverage import CoverageData
from tools.draw_mutants import Mutant, drawn

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/rocwright")
TABLE, PAGE = ROOT / "tools/mutants.toml", ROOT / "docs/mutants.md"
FENCE = r"""
mount --make-rprivate / && mount --bind "$1" "$1" && mount --bind "$1/tmp" /tmp \
    && mount --bind "$1/tmp" /var/tmp && mount -o remount,bind,ro / || exit 99
shift && exec "$@"
"""
"""What is broken can write to its own folder only, also at /tmp and /var/tmp; its processes end with it."""


@dataclass(frozen=True)
class Module:
    """A row of mutants.toml."""

    path: str
    promise: str
    tests: tuple[str, ...]

    @property
    def file(self) -> Path:
        return PACKAGE / self.path


@dataclass
class Tried:
    """What became of a module's mutants; `possible` is how many there are."""

    module: Module
    possible: int
    drawn: int
    ends: Counter[str] = field(default_factory=Counter)
    survivors: list[Mutant] = field(default_factory=list)
    seconds: float = 0

    def row(self) -> str:
        tried = self.ends.total()
        share = f"{(tried - self.ends['survived']) / tried:.0%}" if tried else "-"
        ends = " | ".join(str(self.ends[one]) for one in ("killed", "timeout", "survived"))
        left = self.drawn - tried
        return (
            f"| `{self.module.path}` | {self.module.promise} | {self.possible} | {self.drawn} | {ends} "
            f"| {left} | {share} |"
        )


class Bench:
    """A copy of the package where mutants are tried one at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "tmp").mkdir(parents=True)
        shutil.copytree(ROOT / "src", folder / "src")

    def pytest(self, words: Sequence[str], timeout: float | None) -> int | None:
        """The exit code, None past the time."""
        asked = self.folder / "asked"
        asked.write_text("\n".join(words) + "\n")
        env = os.environ | {
            "PYTHONPATH": str(self.folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "COVERAGE_FILE": str(self.folder / "coverage"),
            "ROCWRIGHT_RUNTIME_DIR": str(self.folder / "run"),
        }
        # all ends with this process, however that ends
        fence = [
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
        pytest = [sys.executable, "-m", "pytest", *quiet, f"@{asked}"]
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
        measured = [f"--cov={self.folder / 'src/rocwright'}", "--cov-context=test", "--cov-report="]
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

    def try_one(self, module: Module, mutant: Mutant, near: Sequence[str], seconds: float) -> str:
        """How it ends: killed, timeout, or survived, then by all tests of the room."""
        file, limit = self.folder / module.file, 30 + 5 * seconds
        before = file.read_text()
        file.write_text(mutant.code)
        try:
            for words in filter(None, (near, module.tests)):
                code = self.pytest(words, limit)
                if code is None:
                    return "timeout"
                if code in (1, 2, 3):
                    return "killed"
                if code not in (0, 4, 5):  # 4 and 5: with it, those tests are not even there
                    raise SystemExit(f"pytest ended with {code}:\n{self.said()}")
            return "survived"
        finally:
            file.write_text(before)


def near(tests: Mapping[int, list[str]], line: int) -> list[str]:
    """The tests that reach a line, or the statement that it goes on with; none where that is not known."""
    return next((tests[one] for one in range(line, max(0, line - 12), -1) if tests.get(one)), [])


def try_all(module: Module, benches: Sequence[Bench], seed: int, most: int, until: float) -> Tried:
    """Try a module's mutants, each on a bench that is free, as long as there is time."""
    begun = time.monotonic()
    possible, picked = drawn(module.path, (ROOT / module.file).read_text(), seed, most)
    found = Tried(module, possible, len(picked))
    try:
        tests, seconds = benches[0].reach(module)
    except RuntimeError as error:
        print(error, flush=True)
        return found
    free: SimpleQueue[Bench] = SimpleQueue()
    for one in benches:
        free.put(one)

    def attempt(mutant: Mutant) -> str:
        bench = free.get()
        try:
            late = time.monotonic() > until
            return "" if late else bench.try_one(module, mutant, near(tests, mutant.line), seconds)
        finally:
            free.put(bench)

    with ThreadPoolExecutor(len(benches)) as pool:
        for mutant, end in zip(picked, pool.map(attempt, picked), strict=True):
            if end:
                found.ends[end] += 1
            if end == "survived":
                found.survivors.append(mutant)
                print(f"{module.path}:{mutant.line} survived\n{mutant.diff}", flush=True)
    found.seconds = time.monotonic() - begun
    print(found.row(), f"{found.seconds:.0f} s", flush=True)
    return found


def page(tried: Sequence[Tried], reasons: Mapping[tuple[str, str, str], str], told: str) -> str:
    """docs/mutants.md."""
    lines = ["# Broken on purpose", "", (ROOT / "tools/mutants_page.md").read_text().strip(), "", told, ""]
    lines += ["| module | promise | possible | drawn | killed | too slow | survived | not tried | noticed |"]
    lines += ["| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", *(one.row() for one in tried)]
    lines += ["", "## Survivors"]
    for one in tried:
        for mutant in one.survivors:
            key = (one.module.path, mutant.was.strip(), mutant.now.strip())
            why = reasons.get(key, "No reason yet: a test is missing.")
            lines += [
                "",
                f"`{one.module.path}`, line {mutant.line}. {why}",
                "",
                "```diff",
                mutant.diff,
                "```",
            ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Break the modules that hold the promises; see what no test notices."
    )
    parser.add_argument("only", nargs="*", help="modules below src/rocwright; all of the table without one")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--most", type=int, default=300, help="mutants of each module")
    parser.add_argument("--hours", type=float, default=4)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args()
    table = tomllib.loads(TABLE.read_text())
    modules = [Module(one["path"], one["promise"], tuple(one["tests"])) for one in table["module"]]
    modules = [one for one in modules if not asked.only or one.path in asked.only]
    reasons = {(one["path"], one["was"], one["now"]): one["why"] for one in table.get("reason", [])}
    print(f"seed {asked.seed}, at most {asked.most} mutants a module", flush=True)
    begun = time.monotonic()
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, check=True)
    commit = head.stdout.decode().strip()
    with tempfile.TemporaryDirectory(prefix="mutants-", dir=ROOT / ".venv") as folder:
        benches = [Bench(Path(folder, str(number))) for number in range(asked.jobs)]
        tried = []
        for left, one in zip(range(len(modules), 0, -1), modules, strict=True):
            now = time.monotonic()
            # what one leaves of its share is the others'
            until = now + (begun + 3600 * asked.hours - now) / left
            tried.append(try_all(one, benches, asked.seed, asked.most, until))
            told = (
                f"This run: seed {asked.seed}, at most {asked.most} mutants a module, {asked.jobs} at once, "
                f"{(time.monotonic() - begun) / 60:.0f} minutes, {datetime.now(UTC):%Y-%m-%d}, "
                f"commit {commit}."
            )
            asked.page.write_text(page(tried, reasons, told))


if __name__ == "__main__":
    main()
