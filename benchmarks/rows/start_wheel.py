"""`rocwheel --help` against the bare import of its command-line library; `inspect` of a small wheel."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Pairs, paired, processor, seconds, timed
from benchmarks.place import BIN
from benchmarks.results import Measured
from rocwheel_samples.wheel import make_wheel


def measure(runs: int | None) -> Sequence[Measured]:
    """Two rows."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        wheel = make_wheel(Path(folder), "small", targets=("gfx1030", "gfx1151"))
        shown = _paired(["--help"], log, runs or 31)
        looked = _paired(["inspect", wheel], log, runs or 31)
    return [
        Measured(
            name="rocwheel:help",
            what='`rocwheel --help` against a bare `python -c "import click"`',
            values=shown.ratios,
            most=1.3,
            note=f"{seconds(shown.a)} against {seconds(shown.b)}; "
            f"processor time {processor(shown.a)} against {processor(shown.b)}",
        ),
        Measured(
            name="rocwheel:inspect",
            what="`rocwheel inspect` of a wheel with one library, from the start of the process to its end",
            values=[one.wall for one in looked.a],
            unit="s",
            most=0.15,
            note=f"processor time {processor(looked.a)}; a bare `import click` {seconds(looked.b)}",
        ),
    ]


def _paired(words: Sequence[str | Path], log: Path, runs: int) -> Pairs:
    bare = [sys.executable, "-c", "import click"]
    return paired(
        lambda: timed([BIN / "rocwheel", *words], log=log), lambda: timed(bare, log=log), runs, warm=2
    )
