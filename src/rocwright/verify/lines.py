"""The lines that a check script prints about what it found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rocwheel.wheels.gpu_names import maker_of
from rocwheel.wheels.gpu_table import gpu_table
from rocwright.records.model import FOREIGN, Finding, is_gpu

# A check script prints this and one JSON object for each thing that it found.
MARK = "ROCWRIGHT-CHECK "

# More findings than so many that went well, of one group, are told together.
FOLD = 4


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


def device_name(device: str) -> str:
    """What evidence calls a device that a check names: of a GPU of another maker it says so."""
    return f"{FOREIGN} {device}" if is_gpu(device) and maker_of(device, gpu_table()) else device


def _text(value: object) -> str:
    """A value in letters that a file, a database and a terminal take; JSON can tell others."""
    characters = (
        character if character.isprintable() or character in "\n\t" else ascii(character)[1:-1]
        for character in str(value)
    )
    return "".join(characters)


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
    for finding in findings:
        group, slash, _ = finding.name.partition("/")
        together = slash and finding.ok
        key = (
            finding.component,
            finding.check,
            group if together else finding.name,
            outcome_word(finding),
            finding.device,
        )
        groups.setdefault(key, []).append(finding)
    rows: list[tuple[str, ...]] = []
    for (component, _, name, word, device), alike in groups.items():
        if len(alike) > FOLD:
            names = ", ".join(finding.name.partition("/")[2] for finding in alike)
            short = names if len(names) <= 60 else f"{names[:57]}..."
            rows.append((component, name, f"{len(alike)} {word}", device or "-", short))
        else:
            rows += [(component, finding.name, word, device or "-", finding.detail) for finding in alike]
    return rows
