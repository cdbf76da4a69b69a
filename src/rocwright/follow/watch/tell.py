"""A report of watch in words: alarms first, in capitals; then what does not stand; then what is new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rocbase.units import count, duration
from rocwright.follow.watch.model import Alarm, Caution, News, Silent, WatchReport
from rocwright.plan.resolve.tell_difference import days

KEPT = {
    "whole": "the store keeps a copy",
    "no": "the store keeps NO copy of it",
    "unknown": "the lock does not name a file of it yet",
}


def tell_report(report: WatchReport, *, quiet: bool = False) -> list[str]:
    """Lines of text; `quiet` leaves out all that is no news: silence means that nothing happened."""
    entries: list[Alarm | Caution | News] = [*report.alarms, *report.cautions, *report.news]
    several = len({entry.lock for entry in entries}) > 1
    lines = [line for alarm in report.alarms for line in _alarm(alarm, several)]
    lines += [line for caution in report.cautions for line in _caution(caution, several)]
    admitted = [update for update in report.news if update.admitted]
    held_back = [update for update in report.news if not update.admitted]
    lines += _news("new, allowed", admitted, several)
    lines += _news("new, held back", held_back, several)
    lines += _silent(report.silent)
    if quiet:
        return lines
    if not report.asked:
        lines.append("the lock names nothing that can be checked: rocwright lock fills in what is missing")
    elif not entries:
        lines.append("nothing new" + (" from those that answered" if report.silent else ""))
    if report.unasked:
        lines.append(f"not asked: {', '.join(report.unasked)} (no place of theirs lists versions)")
    lines += [
        f"{base}: packages of this image are only seen through its digest; rocwright lock records their lists"
        for base in report.unseen
    ]
    lines.append(f"{count(report.asked, 'question')} asked in {duration(report.seconds)}")
    if admitted:
        lines.append("rocwright bump writes a candidate lock with the allowed updates")
    return lines


def _alarm(alarm: Alarm, several: bool) -> Iterator[str]:
    yield f"ALARM: {alarm.what.upper()}"
    yield f"  {_label(alarm, several)}   the lock has {alarm.had}, upstream has {alarm.now}"
    yield f"  {KEPT[alarm.kept]}; find out why before you trust it. The lock still builds what it names"


def _caution(caution: Caution, several: bool) -> Iterator[str]:
    yield f"caution: {caution.what}{f' ({caution.why})' if caution.why else ''}"
    yield f"  {_label(caution, several)}   {KEPT[caution.kept]}"


def _label(entry: Alarm | Caution | News, several: bool) -> str:
    return f"{entry.lock}: {entry.name}" if several else entry.name


def _news(title: str, news: Sequence[News], several: bool) -> Iterator[str]:
    if not news:
        return
    yield f"{title}:"
    for update in news:
        aged = days(update.age) if update.age is not None else "its age is unknown"
        words = [_STEPS.get(update.step, update.step), aged]
        if update.step == "packages":
            yield f"  {_label(update, several)}: {update.new}"
        else:
            yield f"  {_label(update, several)} {update.has} -> {update.new} ({', '.join(words)})"
        if update.why:
            yield f"    held back: {update.why}"
        if update.moves:
            yield f"    moves {', '.join(update.moves)}"
        if update.notes:
            yield f"    notes {update.notes}"
        yield from (f"    no longer needed then: {line}" for line in update.needless)


_STEPS = {
    "major": "another major version",
    "minor": "another minor version",
    "build": "rebuilt",
    "digest": "the tag has moved, as expected",
    "commit": "the branch has new commits",
}


def _silent(silent: Sequence[Silent]) -> Iterator[str]:
    for silence in silent:
        yield f"no answer: {silence.source} ({', '.join(silence.names)}): {silence.cause or silence.what}"
