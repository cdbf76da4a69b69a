"""The difference of two locks, as a person would say it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from rocbase.units import count
from rocwright.resolve.difference import LockDifference, PinChange

SHOWN = 3
"""How many packages of many are named."""

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
    found: LockDifference, *, ages: Mapping[str, int] | None = None, again: Collection[str] = ()
) -> list[str]:
    """Lines of text: what is asked for first, then ROCm and components, then packages, counted.

    `ages` are the days since the release of what is new, by the name of its component or Python package;
    `again` the steps that will run again.
    """
    ages = ages or {}
    lines = [_one(change, "request: ", ages) for change in found.of("request")]
    lines += [_one(change, "brought by the base: ", ages) for change in found.of("provided")]
    lines += [_one(change, "ROCm of ", ages) for change in found.of("rocm")]
    lines += [_one(change, "", ages) for change in found.of("component")]
    lines += _counted(found.of("python"), "Python package", ages)
    images = [one for one in found.of("package") if _is_image(one)]
    lines += [_one(change, "image ", ages) for change in dict.fromkeys(map(_anywhere, images))]
    lines += _counted([one for one in found.of("package") if not _is_image(one)], "package", ages)
    lines += [_one(change, "remedy for ", ages) for change in found.of("remedy")]
    if again:
        lines.append(f"{count(len(again), 'step')} will run again: {_some(tuple(again), 8)}")
    return lines or ["no difference"]


def _is_image(change: PinChange) -> bool:
    return (change.after or change.before).startswith("sha256:")


def _anywhere(change: PinChange) -> PinChange:
    return change.model_copy(update={"where": ""})


def _one(change: PinChange, before: str, ages: Mapping[str, int]) -> str:
    words = [] if change.part in ("request", "provided") and change.kind == "other" else [_WORDS[change.kind]]
    if change.name in ages and change.kind != "gone":
        words.append(days(ages[change.name]))
    told = f" ({', '.join(words)})" if words else ""
    return f"{before}{change.name} {_from_to(change)}{told}"


def days(age: int) -> str:
    """An age in words: released today, 1 day old, 12 days old."""
    return "released today" if age < 1 else f"{count(age, 'day')} old"


def _from_to(change: PinChange) -> str:
    if not change.before or not change.after:
        return change.after or change.before
    return f"{change.before} -> {_short(change.before, change.after)}"


def _short(before: str, after: str) -> str:
    """A revision alone, where upstream's version is the same: 14.2.0-16 -> -19."""
    old, dash, _ = before.rpartition("-")
    new, _, revision = after.rpartition("-")
    return f"-{revision}" if dash and old == new and revision.isascii() else after


def _counted(changes: Sequence[PinChange], noun: str, ages: Mapping[str, int]) -> Iterator[str]:
    """A line for each kind of change; what is the same in several roots is counted once."""
    kinds = {"newer": ("major", "minor", "patch", "build"), "older": ("older",), "changed": ("other",)}
    for word, among in (*kinds.items(), ("more", ("new",)), ("no longer there", ("gone",))):
        some = sorted((one for one in changes if one.kind in among), key=lambda one: not one.named)
        roles = " and ".join(dict.fromkeys(one.where for one in some if one.where))
        once = list(dict.fromkeys(map(_anywhere, some)))
        if not once:
            continue
        where = f" of the root{'s' if ' and ' in roles else ''} to {roles}" if roles else ""
        head = f"{count(len(once), noun)}{where} {word}"
        told = [
            f"{one.name} {_from_to(one)}{f' ({days(ages[one.name])})' if one.name in ages else ''}"
            for one in once
        ]
        yield f"{head}{': ' if len(once) <= SHOWN else ', of them '}{_some(told, SHOWN)}"


def _some(texts: Sequence[str], most: int) -> str:
    return ", ".join(texts[:most]) + (", ..." if len(texts) > most else "")
