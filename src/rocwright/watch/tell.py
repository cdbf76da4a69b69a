"""A report of watch in words: alarms first, in capitals; then what does not stand; then what is new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rocbase.units import count, duration
from rocwright.resolve.tell_difference import days
from rocwright.watch.model import Alarm, Caution, News, Silent, WatchReport

KEPT = {
    "whole": "the store keeps a copy",
    "no": "the store keeps NO copy of it",
    "unknown": "the lock does not name a file of it yet",
}


def tell_report(report: WatchReport, *, quiet: bool = False) -> list[str]:
    """Lines of text; `quiet` leaves out all that is no news: silence means that nothing happened."""
    told: list[Alarm | Caution | News] = [*report.alarms, *report.cautions, *report.news]
    several = len({one.lock for one in told}) > 1
    lines = [line for one in report.alarms for line in _alarm(one, several)]
    lines += [line for one in report.cautions for line in _caution(one, several)]
    admitted = [one for one in report.news if one.admitted]
    held = [one for one in report.news if not one.admitted]
    lines += _news("new, allowed", admitted, several)
    lines += _news("new, held back", held, several)
    lines += _silent(report.silent)
    if quiet:
        return lines
    if not report.asked:
        lines.append("the lock names nothing that can be checked: rocwright lock fills in what is missing")
    elif not told:
        lines.append("nothing new" + (" from those that answered" if report.silent else ""))
    lines += [
        f"{base}: packages of this image are only seen through its digest; rocwright lock records their lists"
        for base in report.unseen
    ]
    lines.append(f"{count(report.asked, 'question')} asked in {duration(report.seconds)}")
    if admitted:
        lines.append("rocwright bump writes a candidate lock with the allowed updates")
    return lines


def _alarm(one: Alarm, several: bool) -> Iterator[str]:
    yield f"ALARM: {one.what.upper()}"
    yield f"  {_who(one, several)}   the lock has {one.had}, upstream has {one.now}"
    yield f"  {KEPT[one.kept]}; find out why before you trust it. The lock still builds what it names"


def _caution(one: Caution, several: bool) -> Iterator[str]:
    yield f"caution: {one.what}{f' ({one.why})' if one.why else ''}"
    yield f"  {_who(one, several)}   {KEPT[one.kept]}"


def _who(one: Alarm | Caution | News, several: bool) -> str:
    return f"{one.lock}: {one.name}" if several else one.name


def _news(title: str, news: Sequence[News], several: bool) -> Iterator[str]:
    if not news:
        return
    yield f"{title}:"
    for one in news:
        aged = days(one.age) if one.age is not None else "its age is unknown"
        words = [_STEPS.get(one.step, one.step), aged]
        if one.step == "packages":
            yield f"  {_who(one, several)}: {one.new}"
        else:
            yield f"  {_who(one, several)} {one.has} -> {one.new} ({', '.join(words)})"
        if one.why:
            yield f"    held back: {one.why}"
        if one.moves:
            yield f"    moves {', '.join(one.moves)}"
        if one.notes:
            yield f"    notes {one.notes}"
        yield from (f"    no longer needed then: {line}" for line in one.needless)


_STEPS = {
    "major": "another major version",
    "minor": "another minor version",
    "build": "rebuilt",
    "digest": "the tag has moved, as expected",
    "commit": "the branch has new commits",
}


def _silent(silent: Sequence[Silent]) -> Iterator[str]:
    for one in silent:
        yield f"no answer: {one.source} ({', '.join(one.names)}): {one.cause or one.what}"
