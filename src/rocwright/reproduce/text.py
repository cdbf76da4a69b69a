"""What was built again, in lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rocbase.units import duration, size
from rocwright.reproduce.from_lock import FromLock
from rocwright.reproduce.rebuild import OutputComparison, Reproduced


def lines(found: Reproduced, kept: Path | None) -> Iterator[str]:
    """Each output, what differs in it, a verdict, and how the two builds were made; `kept` is the folder of
    the second one, where it stays."""
    for one in found.outputs:
        word = "same" if one.same else "DIFFERS"
        otherwise = ", packed otherwise" if one.packed_otherwise else ""
        yield f"{word:<8} {one.step}  {one.filename}  {size(one.size)}  {_digest(one)}{otherwise}"
        yield from (f"         {line}" for line in one.says)
    yield _verdict(found)
    for name, place in (("first", 0), ("again", 1)):
        jobs = found.jobs[place]
        many = f"{jobs} job{'' if jobs == 1 else 's'}"
        when = found.started[place][:16].replace("T", " ")
        how = f"{many} in {found.engines[place]}, {duration(found.seconds[place])}"
        yield f"{name}    {when}  {how}{', in another folder, no compiler cache' if place else ''}"
    yield "sha256   of each file as built"
    if kept is not None:
        yield f"kept     {kept}"


def _digest(one: OutputComparison) -> str:
    return one.after[:16] if one.before == one.after else f"{one.before[:16]} then {one.after[:16]}"


def _verdict(found: Reproduced) -> str:
    wrong = [one for one in found.outputs if not one.same]
    if not wrong:
        return f"bit for bit the same: {len(found.outputs)} of {len(found.outputs)}"
    first = f"start with {wrong[0].step}" + ("; the others may follow from it" if wrong[1:] else "")
    return f"not the same: {len(wrong)} of {len(found.outputs)}; {first}"


def wheel_lines(found: FromLock) -> Iterator[str]:
    """A wheel of somebody else against what its lock gives here, theirs first: a verdict, each file that
    differs and why, and where both are from."""
    word = "same" if found.same else "DIFFERS"
    yield f"{word:<8} {found.component} {found.version}  {found.filename}"
    if not found.same:
        yield f"         {found.summary}"
    yield from (f"         {line}" for line in (*found.metadata, *found.written))
    for member in found.members:
        yield from (f"         {line}" for line in member.says)
        yield from (f"           why: {line}" for line in member.why)
    if found.more:
        yield f"         and {found.more:,} more files"
    yield f"theirs   {found.theirs}{' as laid out' if found.sbom else ''}"
    if found.sbom:
        yield f"ours     {found.ours} as laid out with their SBOM"
    yield f"ours     {found.as_built} as built"
    made = found.origin or f"built here {found.built[:16].replace('T', ' ')}"
    yield f"from     {made}{'' if found.ran else ', in the store already'}"
    yield (
        "bit for bit the same: this lock gives that wheel here too"
        if found.same
        else "not the same: this lock gives another wheel here"
    )
