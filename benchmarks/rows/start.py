"""Short commands, from the start of the process to its end."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import paired, processor, seconds, timed
from benchmarks.place import BIN
from benchmarks.results import Measured


def measure(runs: int | None) -> Sequence[Measured]:
    """Measure `--help` against the import of its command-line library, and `targets`."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        pairs = paired(
            lambda: timed([BIN / "rocwright", "--help"], log=log),
            lambda: timed([sys.executable, "-c", "import click"], log=log),
            runs or 31,
            warm=2,
        )
        home = {"ROCWRIGHT_HOME": folder}
        targets = [timed([BIN / "rocwright", "targets"], log=log, env=home) for _ in range((runs or 11) + 1)]
    return [
        Measured(
            name="help",
            what='`rocwright --help` against a bare `python -c "import click"`',
            values=pairs.ratios,
            most=2,
            note=f"{seconds(pairs.a)} against {seconds(pairs.b)}; "
            f"processor time {processor(pairs.a)} against {processor(pairs.b)}",
        ),
        Measured(
            name="targets",
            what="`rocwright targets`",
            values=[took.wall for took in targets[1:]],
            unit="s",
            most=0.5,
            note=f"processor time {processor(targets[1:])}",
        ),
    ]
