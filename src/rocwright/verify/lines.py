"""The lines that a check script prints about what it found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rocwright.records.model import Finding

MARK = "ROCWRIGHT-CHECK "
"""A check script prints this and one JSON object for each thing that it found."""

FOLD = 4
"""More findings than so many that went well, of one group, are told together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLine:
    """What one line says; `absent`: what it would have tried is not there, so nothing is wrong."""

    name: str
    ok: bool
    detail: str = ""
    device: str = ""
    absent: bool = False


def read_line(line: str) -> CheckLine | None:
    """The finding in a line of a check's output; None for any other line. Raises ValueError."""
    if not line.startswith(MARK):
        return None
    try:
        data = json.loads(line.removeprefix(MARK))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(data, dict) or "name" not in data or "ok" not in data:
        raise ValueError("no name or no outcome")
    return CheckLine(
        name=_text(data["name"]),
        ok=data["ok"] is True,
        detail=_text(data.get("detail", "")),
        device=_text(data.get("device", "")),
        absent=data.get("state") == "absent",
    )


def _text(value: object) -> str:
    """A value in letters that a file, a database and a terminal take; JSON can tell others."""
    told = (one if one.isprintable() or one in "\n\t" else ascii(one)[1:-1] for one in str(value))
    return "".join(told)


def printable(finding: Finding) -> Finding:
    """A finding that somebody else wrote down, in letters that a file, a database and a terminal take."""
    texts = finding.model_dump(include={"name", "detail", "device", "machine", "engine", "artifact", "when"})
    return finding.model_copy(update={name: _text(value) for name, value in texts.items()})


def outcome_word(finding: Finding) -> str:
    """How it went, for people."""
    return "FAILED" if not finding.ok else "absent" if finding.absent else "ok"


def table_rows(findings: Sequence[Finding]) -> list[tuple[str, ...]]:
    """Component, check, outcome, device, detail; many of a group (`group/..`) that went well are one row."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for one in findings:
        group, slash, _ = one.name.partition("/")
        together = slash and one.ok
        key = (one.component, one.check, group if together else one.name, outcome_word(one), one.device)
        groups.setdefault(key, []).append(one)
    rows: list[tuple[str, ...]] = []
    for (component, _, name, word, device), found in groups.items():
        if len(found) > FOLD:
            names = ", ".join(one.name.partition("/")[2] for one in found)
            short = names if len(names) <= 60 else f"{names[:57]}..."
            rows.append((component, name, f"{len(found)} {word}", device or "-", short))
        else:
            rows += [(component, one.name, word, device or "-", one.detail) for one in found]
    return rows
