"""What `diagnose` finds in failures of public threads: the first error, and its cause."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.results import Measured
from rocwright.catalog.issue import bare, plain, stamps, the_issues
from rocwright.diagnosis.diagnose import Diagnosis, LogLocation, diagnose

THREADS = Path(__file__).parents[1] / "threads.toml"
BLIND = Path(__file__).parents[1] / "blind.toml"
HALVES = (
    "written",
    "once",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
)


@dataclass(frozen=True)
class Judged:
    """What was found in a thread's lines: its first error, that among the three likeliest lines, its cause;
    or a wrong cause. `knows` is whether any issue names the cause."""

    source: str
    first: bool
    three: bool
    knows: bool
    right: bool
    wrong: bool


def threads(half: str) -> list[Judged]:
    """The threads of a half, judged."""
    return [_judge(one) for one in _read()["thread"] if one["half"] == half]


def false_alarms() -> list[str]:
    """The clean parts in which an error or a cause was found."""
    found = ((str(one["source"]), _found(one["lines"])) for one in _read()["clean"])
    return [source for source, told in found if told.first is not None or told.cause is not None]


def first_look(half: str) -> str:
    """What was found in a half that was unseen until then; "" where it never was."""
    all_of_it = _read()
    look, old = all_of_it["first_look"].get(half), all_of_it["old"].get(half)
    if look is None:
        return ""
    said = (
        f"; at the first look, {look['day']}, it was unseen: first error {look['first']} of "
        f"{look['of']}, right cause {look['right']} (of {look['known']} that the catalog knew), "
        f"wrong {look['wrong']}; it was read since"
    )
    if old is not None:
        said += f"; knowledge before {old['before']} found {old['first']}, {old['right']} and {old['wrong']}"
    return said


def measure(runs: int | None) -> Sequence[Measured]:
    """Two rows a half: the true first error, and the right cause, in percent; and four of the blind looks."""
    rows = []
    for half in HALVES:
        judged = threads(half)
        knows, wrong = sum(one.knows for one in judged), sum(one.wrong for one in judged)
        three = sum(one.three for one in judged)
        rows += [
            Measured(
                name=f"diagnose:first-{half}",
                what=f"`diagnose` of failures of public threads ({half}): the true first error is named",
                values=[_percent(one.first for one in judged)],
                unit="%",
                note=f"of {len(judged)}; among three lines in {three}; false alarms on clean parts: "
                f"{len(false_alarms())}",
            ),
            Measured(
                name=f"diagnose:cause-{half}",
                what=f"`diagnose` of failures of public threads ({half}): the right cause is named",
                values=[_percent(one.right for one in judged)],
                unit="%",
                note=f"of {len(judged)}; the catalog knows the cause of {knows}; a wrong one in {wrong}"
                + first_look(half),
            ),
        ]
    return [*rows, *blind()]


def blind() -> list[Measured]:
    """What was found at the blind looks, in percent of each half's threads.

    It cannot be measured anew: a look is blind once, and the threads' lines are not kept.
    """
    looks = tomllib.loads(BLIND.read_text())["look"]
    found = zip(*(look["look"] for look in looks), strict=True)
    before = zip(*(look["before"] for look in looks), strict=True)
    of, known = sum(look["of"] for look in looks), sum(look["known"] for look in looks)
    return [
        Measured(
            name=f"diagnose:blind-{name}",
            what=f"`diagnose` of failures of public threads, looked at blind: {what}",
            values=[100 * one / look["of"] for one, look in zip(each, looks, strict=True)],
            unit="%",
            least=None if name == "wrong" else goal,
            most=goal if name == "wrong" else None,
            note=f"each value is of one half: of {of} in all {sum(each)}, with the knowledge of the day's "
            f"begin {sum(old)}; the catalog knows the cause of {known}; written down on {looks[-1]['day']}",
        )
        for (name, what, goal), each, old in zip(_BLIND, found, before, strict=True)
    ]


_BLIND = (
    ("first", "the true first error is named", 95),
    ("three", "it is among three lines", 98),
    ("cause", "the right cause is named", 65),
    ("wrong", "a wrong cause is named", 2),
)


def _read() -> dict[str, Any]:
    return tomllib.loads(THREADS.read_text())


def _found(lines: Iterable[str]) -> Diagnosis:
    return diagnose([b"".join(plain(line) + b"\n" for line in lines)])


def _judge(thread: dict[str, Any]) -> Judged:
    found = _found(thread["lines"])
    named_lines = [found.first] if found.first else []
    named_lines += [one.place for one in found.known]
    shown = [*named_lines, *found.others]

    def is_first(place: LogLocation) -> bool:
        whole = _unstamped(thread["lines"][place.line - 1])
        return any(_unstamped(true) in text for true in thread["first"] for text in (place.text, whole))

    named = found.cause.issue.name if found.cause else ""
    right = bool(named) and named in thread["causes"]
    return Judged(
        source=str(thread["source"]),
        first=bool(named_lines) and is_first(named_lines[0]),
        three=any(is_first(place) for place in shown[:3]),
        knows=bool(thread["causes"]),
        right=right,
        wrong=bool(named) and not right,
    )


def _unstamped(true: str) -> str:
    """A piece of the true line as `diagnose` shows it: without what stands before a line."""
    _, lines = the_issues()
    return (bare(plain(true), stamps(lines.before)).strip() or plain(true)).decode()


def _percent(hits: Iterable[bool]) -> float:
    each = list(hits)
    return 100 * sum(each) / len(each)
