"""`rocwright --help` against the bare import of its command-line library."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import paired, processor, seconds, timed
from benchmarks.place import BIN
from benchmarks.results import Measured


def measure(runs: int | None) -> Sequence[Measured]:
    """One row."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        pairs = paired(
            lambda: timed([BIN / "rocwright", "--help"], log=log),
            lambda: timed([sys.executable, "-c", "import click"], log=log),
            runs or 31,
            warm=2,
        )
    return [
        Measured(
            name="help",
            what='`rocwright --help` against a bare `python -c "import click"`',
            values=pairs.ratios,
            most=2,
            note=f"{seconds(pairs.a)} against {seconds(pairs.b)}; "
            f"processor time {processor(pairs.a)} against {processor(pairs.b)}",
        )
    ]
