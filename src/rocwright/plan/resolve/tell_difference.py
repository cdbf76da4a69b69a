"""The difference of two locks, as a person would say it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from rocbase.units import count
from rocwright.plan.resolve.difference import LockDifference, PinChange

# How many packages of many are named.
SHOWN = 3

_WORDS = {
    "major": "another major version",
    "minor": "another minor version",
    "patch": "patch",
    "build": "rebuilt",
    "older": "OLDER",
    "other": "same version, another source",
    "new": "new",
    "gone": "no longer there",
}


def tell_difference(
    difference: LockDifference, *, ages: Mapping[str, int] | None = None, again: Collection[str] = ()
) -> list[str]:
    """Lines of text: what is asked for first, then ROCm and components, then packages, counted.

    `ages` are the days since the release of what is new, by the name of its component or Python package;
    `again` the steps that will run again.
    """
    ages = ages or {}
    lines = [_line(change, "request: ", ages) for change in difference.of("request")]
    lines += [_line(change, "brought by the base: ", ages) for change in difference.of("provided")]
    lines += [_line(change, "ROCm of ", ages) for change in difference.of("rocm")]
    lines += [_line(change, "", ages) for change in difference.of("component")]
    lines += _counted(difference.of("python"), "Python package", ages)
    images = [change for change in difference.of("package") if _is_image(change)]
    lines += [_line(change, "image ", ages) for change in dict.fromkeys(map(_anywhere, images))]
    lines += _counted(
        [change for change in difference.of("package") if not _is_image(change)], "package", ages
    )
    lines += [_line(change, "remedy for ", ages) for change in difference.of("remedy")]
    if again:
        lines.append(f"{count(len(again), 'step')} will run again: {_some(tuple(again), 8)}")
    return lines or ["no difference"]


def _is_image(change: PinChange) -> bool:
    return (change.after or change.before).startswith("sha256:")


def _anywhere(change: PinChange) -> PinChange:
    return change.model_copy(update={"where": ""})


def _line(change: PinChange, prefix: str, ages: Mapping[str, int]) -> str:
    words = [] if change.part in ("request", "provided") and change.kind == "other" else [_WORDS[change.kind]]
    if change.name in ages and change.kind != "gone":
        words.append(days(ages[change.name]))
    note = f" ({', '.join(words)})" if words else ""
    return f"{prefix}{change.name} {_from_to(change)}{note}"


def days(age: int) -> str:
    """An age in words: released today, 1 day old, 12 days old."""
    return "released today" if age < 1 else f"{count(age, 'day')} old"


def _from_to(change: PinChange) -> str:
    if not change.before or not change.after:
        return change.after or change.before
    return f"{change.before} -> {_short(change.before, change.after)}"


def _short(old_version: str, new_version: str) -> str:
    """A revision alone, where upstream's version is the same: 14.2.0-16 -> -19."""
    old, dash, _ = old_version.rpartition("-")
    new, _, revision = new_version.rpartition("-")
    return f"-{revision}" if dash and old == new and revision.isascii() else new_version


def _counted(changes: Sequence[PinChange], noun: str, ages: Mapping[str, int]) -> Iterator[str]:
    """A line for each kind of change; what is the same in several roots is counted once."""
    kinds = {"newer": ("major", "minor", "patch", "build"), "older": ("older",), "changed": ("other",)}
    for word, among in (*kinds.items(), ("more", ("new",)), ("no longer there", ("gone",))):
        some = sorted(
            (change for change in changes if change.kind in among), key=lambda change: not change.named
        )
        roles = " and ".join(dict.fromkeys(change.where for change in some if change.where))
        once = list(dict.fromkeys(map(_anywhere, some)))
        if not once:
            continue
        place = f" of the root{'s' if ' and ' in roles else ''} to {roles}" if roles else ""
        head = f"{count(len(once), noun)}{place} {word}"
        entries = [
            f"{change.name} {_from_to(change)}"
            + (f" ({days(ages[change.name])})" if change.name in ages else "")
            for change in once
        ]
        yield f"{head}{': ' if len(once) <= SHOWN else ', of them '}{_some(entries, SHOWN)}"


def _some(texts: Sequence[str], limit: int) -> str:
    return ", ".join(texts[:limit]) + (", ..." if len(texts) > limit else "")
