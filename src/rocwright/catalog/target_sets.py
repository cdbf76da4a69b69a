"""Facts of several targets that stand once: sets of targets by a name, and what targets have alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

from rocbase.toml.read import Reader

TARGETS = "targets.toml"


def shared_facts(reader: Reader, path: Path) -> defaultdict[str, dict[str, Any]]:
    """Return what the tables [[shared]] of a file say of each target that they name."""
    facts: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    names = {row.get("name") for row in reader.rows(path, reader.data(path), "target")}
    for number, row in enumerate(reader.rows(path, reader.data(path), "shared")):
        for name in row_with_sets(reader, row).get("targets", [""]):
            if name not in names:
                reader.fault(path, f"shared.{number}.targets", f"{name} is not known")
            facts[name] = merged(facts[name], {key: row[key] for key in row if key != "targets"})
    return facts


def merged(first: Mapping[str, Any], second: Mapping[str, Any], *, add: bool = True) -> dict[str, Any]:
    """Return the facts of both: tables are merged, lists added with `add`, else the second's holds."""
    facts = dict(first)
    for key, value in second.items():
        if isinstance(value, dict) and isinstance(facts.get(key), dict):
            facts[key] = merged(facts[key], value, add=add)
        elif add and isinstance(value, list) and isinstance(facts.get(key), list):
            facts[key] = [*facts[key], *value]
        else:
            facts[key] = value
    return facts


def over(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of the first with those of the second in their place: tables are merged, and rows of
    tables of one version or name; the second's rows of others come first."""
    facts = dict(first)
    for key, value in second.items():
        before = facts.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            facts[key] = over(before, value)
        elif _is_named(value) and _is_named(before):
            rows = {_row_name(row): row for row in value}
            merged_rows = [over(row, rows.pop(_row_name(row), {})) for row in before]
            facts[key] = [*rows.values(), *merged_rows]
        else:
            facts[key] = value
    return facts


def _row_name(row: Mapping[str, Any]) -> Any:
    return row.get("version", row.get("name"))


def _is_named(rows: object) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(rows, list) and all(isinstance(row, dict) and _row_name(row) for row in rows)


def _targets_of(reader: Reader, names: list[Any]) -> list[Any]:
    """Return the targets that names stand for: each may be a set of targets.toml in place of its targets."""
    sets: dict[str, object] = {}
    for path in filter(Path.exists, reader.layers(TARGETS)):
        table = reader.data(path).get("set", {})
        sets |= table if isinstance(table, dict) else {}
    return _expanded(names, sets)


def _expanded(names: list[Any], sets: Mapping[str, Any]) -> list[Any]:
    """Return targets in place of sets, each set once: sets of sets would double with each level."""
    targets: list[Any] = []
    opened, within = set[str](), set[str]()
    pending = [(name, False) for name in reversed(names)]
    while pending:
        name, ends = pending.pop()
        members = sets.get(name) if isinstance(name, str) else None
        if ends:
            within.remove(name)
        elif not isinstance(members, list) or name in within:
            targets.append(name)
        elif name not in opened:
            opened.add(name)
            within.add(name)
            pending += [(name, True), *((member, False) for member in reversed(members))]
    return targets


def with_sets(reader: Reader, data: dict[str, object], rows: str) -> dict[str, object]:
    """Return a file's data whose rows name targets in place of sets of them."""
    listed = data.get(rows)
    if not isinstance(listed, list):
        return data
    return data | {rows: [row_with_sets(reader, row) if isinstance(row, dict) else row for row in listed]}


def row_with_sets(reader: Reader, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row that names targets in place of sets of them."""
    names = row.get("targets")
    return row | {"targets": _targets_of(reader, names)} if isinstance(names, list) else row
