"""`rocwright doctor`, whole, on this machine, without trying sandbox engines."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Took, processor, timed
from benchmarks.place import BIN
from benchmarks.results import Measured

ENDS_WELL = '"$@" || [ $? = 12 ]'
"""A machine with something wrong is read all the same: 12 says so."""


def measure(runs: int | None) -> Sequence[Measured]:
    """One row."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"

        def once() -> Took:
            return timed(["sh", "-c", ENDS_WELL, "sh", BIN / "rocwright", "doctor", "--no-engines"], log=log)

        found = [once() for _ in range((runs or 15) + 2)][2:]
        lines = len(log.read_text().splitlines())
    return [
        Measured(
            name="doctor",
            what="`rocwright doctor --no-engines`: the whole machine read and judged for every stack",
            values=[one.wall for one in found],
            unit="s",
            most=1,
            note=f"processor time {processor(found)}; {lines} lines are said; "
            "versions of the host's tools are asked, which takes a process each",
        )
    ]
