"""Run the tests that depend on time, signals or ports again and again beside busy processes: `make flaky`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
TABLE = ROOT / ".out" / "flaky.txt"
# Keeps a processor busy until its parent ends, even if the parent is killed.
BUSY = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    sum(range(10**6))
"""


@dataclass
class Tally:
    """The results of one test over all rounds."""

    runs: int = 0
    failures: int = 0
    slowest: float = 0.0


@contextmanager
def load(processes: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Keep that many processes busy meanwhile."""
    command = [sys.executable, "-c", BUSY, str(os.getpid())]
    busy = [subprocess.Popen(command) for _ in range(processes)]
    try:
        yield busy
    finally:
        for process in busy:
            process.kill()
            process.wait()


def count(report: Path, tallies: dict[str, Tally]) -> None:
    """Add a JUnit report to the tallies."""
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - pytest has just written it
        if case.find("skipped") is None:
            tally = tallies[f"{case.get('classname')}::{case.get('name')}"]
            tally.runs += 1
            tally.failures += case.find("failure") is not None or case.find("error") is not None
            tally.slowest = max(tally.slowest, float(case.get("time", 0)))


def table(tallies: Mapping[str, Tally]) -> str:
    """Return the tallies as a table, failing tests first, then the slowest."""
    rows = sorted(tallies.items(), key=lambda row: (-row[1].failures, -row[1].slowest, row[0]))
    lines = [f"{tally.runs:4} {tally.failures:8} {tally.slowest:9.1f}  {name}" for name, tally in rows]
    return "\n".join(["runs failures slowest/s  test", *lines, ""])


def run_rounds(rounds: int, command: list[str]) -> dict[str, Tally]:
    """Run pytest that many times; raise CalledProcessError if it could not run the tests."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        for number in range(1, rounds + 1):
            done = subprocess.run([*command, f"--junitxml={report}"], cwd=ROOT, check=False)
            if done.returncode not in (0, 1):
                done.check_returncode()
            count(report, tallies)
            failures = sum(tally.failures for tally in tallies.values())
            print(f"round {number} of {rounds}: {failures} failures so far", flush=True)
    return tallies


def main() -> int:
    """Run all rounds and report; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--load", type=int, default=8)
    options = parser.parse_args()
    with load(options.load):  # eight workers, for most of these tests wait
        tallies = run_rounds(options.rounds, ["tools/pytest", "-q", "-n", "8", "-m", "timing"])
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(table(tallies))
    print(TABLE.read_text(), end="")
    return 1 if any(tally.failures for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
