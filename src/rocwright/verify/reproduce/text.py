"""What was built again, in lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rocbase.units import duration, size
from rocwright.verify.reproduce.from_lock import FromLock
from rocwright.verify.reproduce.rebuild import OutputComparison, Reproduced


def lines(report: Reproduced, folder: Path | None) -> Iterator[str]:
    """Each output, what differs in it, a verdict, and how the two builds were made; `folder` is the folder of
    the second one, where it stays."""
    for output in report.outputs:
        word = "same" if output.same else "DIFFERS"
        otherwise = ", packed otherwise" if output.packed_otherwise else ""
        yield f"{word:<8} {output.step}  {output.filename}  {size(output.size)}  {_digest(output)}{otherwise}"
        yield from (f"         {line}" for line in output.says)
    yield _verdict(report)
    for name, place in (("first", 0), ("again", 1)):
        jobs = report.jobs[place]
        many = f"{jobs} job{'' if jobs == 1 else 's'}"
        when = report.started[place][:16].replace("T", " ")
        how = f"{many} in {report.engines[place]}, {duration(report.seconds[place])}"
        yield f"{name}    {when}  {how}{', in another folder, no compiler cache' if place else ''}"
    yield "sha256   of each file as built"
    if folder is not None:
        yield f"kept     {folder}"


def _digest(output: OutputComparison) -> str:
    return (
        output.after[:16]
        if output.before == output.after
        else f"{output.before[:16]} then {output.after[:16]}"
    )


def _verdict(report: Reproduced) -> str:
    wrong = [output for output in report.outputs if not output.same]
    if not wrong:
        return f"bit for bit the same: {len(report.outputs)} of {len(report.outputs)}"
    first = f"start with {wrong[0].step}" + ("; the others may follow from it" if wrong[1:] else "")
    return f"not the same: {len(wrong)} of {len(report.outputs)}; {first}"


def wheel_lines(comparison: FromLock) -> Iterator[str]:
    """A wheel of somebody else against what its lock gives here, theirs first: a verdict, each file that
    differs and why, and where both are from."""
    word = "same" if comparison.same else "DIFFERS"
    yield f"{word:<8} {comparison.component} {comparison.version}  {comparison.filename}"
    if not comparison.same:
        yield f"         {comparison.summary}"
    yield from (f"         {line}" for line in (*comparison.metadata, *comparison.written))
    for member in comparison.members:
        yield from (f"         {line}" for line in member.says)
        yield from (f"           why: {line}" for line in member.why)
    if comparison.more:
        yield f"         and {comparison.more:,} more files"
    yield f"theirs   {comparison.theirs}{' as laid out' if comparison.sbom else ''}"
    if comparison.sbom:
        yield f"ours     {comparison.ours} as laid out with their SBOM"
    yield f"ours     {comparison.as_built} as built"
    origin = comparison.origin or f"built here {comparison.built[:16].replace('T', ' ')}"
    yield f"from     {origin}{'' if comparison.ran else ', in the store already'}"
    yield (
        "bit for bit the same: this lock gives that wheel here too"
        if comparison.same
        else "not the same: this lock gives another wheel here"
    )
