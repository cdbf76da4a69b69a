"""Wall times, taken side by side."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

TAIL = 3000
"""Bytes of a failed command's output that are shown."""


class BenchError(Exception):
    """A row cannot be measured; the words say why."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Wall seconds of A and B, run in turns: A B A B ..."""

    a: tuple[float, ...]
    b: tuple[float, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """A over B, pair by pair."""
        return tuple(a / b for a, b in zip(self.a, self.b, strict=True))


def timed(
    argv: Sequence[str | Path],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> float:
    """Wall seconds of a command, its output in `log`. Raises BenchError where it fails."""
    words = [str(word) for word in argv]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        begun = time.perf_counter()
        code = subprocess.run(
            words,
            env=None if env is None else dict(os.environ) | dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
        seconds = time.perf_counter() - begun
    if code != 0:
        tail = log.read_bytes()[-TAIL:].decode(errors="replace")
        raise BenchError(f"{' '.join(words[:4])} ... ended with {code}:\n{tail}")
    return seconds


def paired(a: Callable[[], float], b: Callable[[], float], runs: int, *, warm: int = 0) -> Pairs:
    """`runs` pairs; each callable prepares, runs, and gives the seconds of what it measures.

    `warm` pairs come before and are not counted.
    """
    found: list[tuple[float, float]] = [(a(), b()) for _ in range(warm + runs)]
    counted = found[warm:]
    return Pairs(tuple(one for one, _ in counted), tuple(other for _, other in counted))


def middle(values: Sequence[float]) -> float:
    """The median."""
    return float(median(values))


def seconds(values: Sequence[float]) -> str:
    """The median of some times, for a note."""
    value = middle(values)
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"
