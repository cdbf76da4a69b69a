"""A difference told to people: a summary first, then as much as fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rocwheel.wheels.diff.model import (
    CodeDifference,
    FileDifference,
    KernelChange,
    Names,
    ValueChange,
    WheelDifference,
)

SHOWN = 8
"""Names of one kind that are listed where not all are asked for."""
_LONGEST = 100


def summary(difference: WheelDifference) -> str:
    """The difference in one line."""
    if difference.same_bytes:
        return "the same bytes" + (", another name" if difference.metadata else "")
    if difference.same:
        return f"the same content, written differently: {', '.join(difference.written)}"
    added = sum(file.before is None for file in difference.files)
    removed = sum(file.after is None for file in difference.files)
    files = (
        (len(difference.files) - added - removed, "changed"),
        (added, "added"),
        (removed, "removed"),
        (len(difference.moved), "moved"),
    )
    code = [change for file in difference.files for change in file.code]
    kernels = (
        (sum(len(change.changed) for change in code), "changed"),
        (sum(len(change.added) for change in code), "added"),
        (sum(len(change.removed) for change in code), "removed"),
    )
    parts = (
        ("metadata", f"{len(difference.metadata)} changed" if difference.metadata else ""),
        ("files", _counts(files)),
        ("GPU code", ", ".join(sorted({change.target for change in code}))),
        ("kernels", _counts(kernels)),
    )
    return "; ".join(f"{label}: {text}" for label, text in parts if text)


def lines(difference: WheelDifference, *, every: bool = False) -> Iterator[str]:
    """All of it; of long lists the beginning, unless `every`."""
    shown = 0 if every else SHOWN
    for change in difference.metadata:
        yield _change(change)
    for change in difference.moved:
        yield f"moved {change.before} -> {change.after}"
    for file in difference.files:
        yield from _file(file, shown)


def _counts(counted: Sequence[tuple[int, str]]) -> str:
    return ", ".join(f"{count:,} {label}" for count, label in counted if count)


def _file(file: FileDifference, shown: int) -> Iterator[str]:
    if file.before is None:
        yield f"added {file.path} ({file.after:,} bytes)"
    elif file.after is None:
        yield f"removed {file.path} ({file.before:,} bytes)"
    else:
        size = f"{file.before:,} bytes" + (f" -> {file.after:,}" if file.before != file.after else "")
        yield f"changed {file.path} ({size})"
    for change in file.changes:
        yield f"  {_change(change)}"
    if file.sections:
        yield f"  sections: {len(file.sections):,} changed"
        yield from _some([_change(change) for change in file.sections], shown, "    ")
    for names in file.names:
        yield from _names(names, shown)
    for code in file.code:
        yield from _code(code, shown)


def _names(names: Names, shown: int) -> Iterator[str]:
    yield f"  {names.what}: {len(names.removed):,} removed, {len(names.added):,} added"
    yield from _some([f"- {name}" for name in names.removed], shown, "    ")
    yield from _some([f"+ {name}" for name in names.added], shown, "    ")


def _code(code: CodeDifference, shown: int) -> Iterator[str]:
    yield f"  {code.target}: code objects {code.before:,} -> {code.after:,}, {code.same:,} of them the same"
    if code.silent:
        yield f"    {code.silent:,} code objects do not name their kernels (SPIR-V)"
    yield from _some([f"- {name}" for name in code.removed], shown, "    kernel ")
    yield from _some([f"+ {name}" for name in code.added], shown, "    kernel ")
    yield from _some([_kernel(change) for change in code.changed], shown, "    kernel ")


def _kernel(change: KernelChange) -> str:
    parts = ["instructions"] if change.instructions else []
    parts += [f"{number.what} {number.before} -> {number.after}" for number in change.numbers]
    return f"~ {change.name[:_LONGEST]}: {', '.join(parts)}"


def _some(texts: Sequence[str], shown: int, indent: str) -> Iterator[str]:
    for text in texts[:shown] if shown else texts:
        yield f"{indent}{text}"
    if shown and len(texts) > shown:
        yield f"{indent}... and {len(texts) - shown:,} more (--all)"


def _change(change: ValueChange) -> str:
    if not change.before or not change.after:
        return f"{'+' if change.after else '-'} {change.what}: {_short(change.after or change.before)}"
    return f"{change.what}: {_short(change.before)} -> {_short(change.after)}"


def _short(text: str) -> str:
    joined = ", ".join(text.splitlines())
    return joined if len(joined) <= _LONGEST else f"{joined[: _LONGEST - 3]}..."
