"""Wall times, taken side by side."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

# Bytes of a failed command's output that are shown.
TAIL = 3000


class BenchError(Exception):
    """A row cannot be measured; the words say why."""


@dataclass(frozen=True, slots=True)
class Took:
    """Wall seconds of a command, and processor seconds of it and all that it waited for."""

    wall: float
    cpu: float

    def __add__(self, other: Took) -> Took:
        return Took(self.wall + other.wall, self.cpu + other.cpu)


@dataclass(frozen=True, slots=True)
class Pairs:
    """A and B, run in turns: A B A B ..."""

    a: tuple[Took, ...]
    b: tuple[Took, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """Wall time of A over that of B, pair by pair."""
        return tuple(a.wall / b.wall for a, b in zip(self.a, self.b, strict=True))


def timed(
    argv: Sequence[str | Path],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Took:
    """Run a command, its output in `log`. Raises BenchError where it fails."""
    words = [str(word) for word in argv]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        before, begun = _children(), time.perf_counter()
        code = subprocess.run(
            words,
            env=_environment() | dict(env or {}),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
        took = Took(time.perf_counter() - begun, _children() - before)
    if code != 0:
        tail = log.read_bytes()[-TAIL:].decode(errors="replace")
        raise BenchError(f"{' '.join(words[:4])} ... ended with {code}:\n{tail}")
    return took


def paired(a: Callable[[], Took], b: Callable[[], Took], runs: int, *, warm: int = 0) -> Pairs:
    """`runs` pairs; each callable prepares, runs, and gives what the measured part took.

    `warm` pairs come before and are not counted.
    """
    found: list[tuple[Took, Took]] = [(a(), b()) for _ in range(warm + runs)]
    counted = found[warm:]
    return Pairs(tuple(one for one, _ in counted), tuple(other for _, other in counted))


def middle(values: Sequence[float]) -> float:
    """The median."""
    return float(median(values))


def seconds(values: Sequence[float] | Sequence[Took]) -> str:
    """The median of some wall times, for a note."""
    return _words(middle([value.wall if isinstance(value, Took) else value for value in values]))


def processor(values: Sequence[Took]) -> str:
    """The median of some processor times, for a note."""
    return _words(middle([value.cpu for value in values]))


def _environment() -> dict[str, str]:
    """As a user has it: where bytecode may be kept, as an installed package keeps it."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _words(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
