"""What steps took in the builds that docs/builds tells of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from rocwright.execution.history import Took

FOLDER = Path(__file__).parents[1] / "docs" / "builds"

_STACK = re.compile(r"^# (\S+) for ")
_UNITS = {"h": 3600.0, "min": 60.0, "s": 1.0}


def took() -> Iterator[Took]:
    """Every step that was built there, what it took in earlier tries counted in."""
    for page in sorted(FOLDER.glob("*.md")):
        lines = page.read_text().splitlines()
        stack = _STACK.match(lines[0])
        assert stack is not None, page
        begin = next(
            at for at, line in enumerate(lines) if line.startswith("| step | key | outcome | time |")
        )
        for line in lines[begin + 2 :]:
            if not line.startswith("|"):
                break
            name, _, outcome, time, tries, jobs, _, cache, engine = (
                one.strip() for one in line[1:-1].split("|")
            )
            # of one that went on, the time before may not be on record
            if outcome == "built" or (outcome == "built, resumed" and tries):
                had, _, of = cache.partition(" of ")
                yield Took(
                    name=name,
                    stack=stack[1],
                    seconds=_seconds(time) + _seconds(tries.partition(", ")[2]),
                    jobs=int(jobs) if engine else 1,
                    cached=_number(had) / _number(of) if of else 0,
                )


def _seconds(words: str) -> float:
    """What `rocwheel.units.duration` says, as a number."""
    return sum(float(one) * _UNITS[unit] for one, unit in re.findall(r"([\d.]+) (h|min|s)\b", words))


def _number(words: str) -> int:
    return int(words.replace(",", ""))
