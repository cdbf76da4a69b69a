"""JSON schema of the catalog's files, for editors."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from rocbase.model import Frozen
from rocwright.catalog.address import Download
from rocwright.catalog.base import Base, PackageManager
from rocwright.catalog.issue import ErrorLines, IssuesFile
from rocwright.catalog.model import Component, Likeness, Stack
from rocwright.catalog.provider import Provider
from rocwright.catalog.target import Quirk, RunOnly, Target
from rocwright.catalog.watchlist import WatchlistFile
from rocwright.model.edits import Edit


class Launcher(Frozen):
    """How a compiler of a system package, by the catalog's name, is run through the compiler cache: shell
    commands before those of the recipes that ask for the package."""

    package: str
    setup: tuple[str, ...]
    source: str


class TargetRow(Target):
    """A target as its row says it: its names may lie in gpu_names.toml instead."""

    products: tuple[str, ...] = ()


class SharedFacts(Frozen):
    """What several targets, or those of a set, have alike: any fact of a target."""

    model_config = ConfigDict(extra="allow")

    targets: Annotated[tuple[str, ...], Field(min_length=1)]


class TargetsFile(Frozen):
    """targets.toml: targets, sets of them, quirks of every target, and variables that no build may see."""

    set: dict[str, tuple[str, ...]] = {}
    shared: tuple[SharedFacts, ...] = ()
    target: tuple[TargetRow, ...] = ()
    every: tuple[Quirk, ...] = ()
    run_only: tuple[RunOnly, ...] = ()


class ComponentFile(Component):
    """components/*.toml: a recipe, with the one that it is like, or what it changes of one below (`over`)."""

    like: Likeness | None = None
    over: bool = False


class ManagersFile(Frozen):
    """package_managers.toml."""

    manager: tuple[PackageManager, ...] = ()


class LaunchersFile(Frozen):
    """launchers.toml."""

    launcher: tuple[Launcher, ...] = ()


class EditsFile(Frozen):
    """edits/*.toml."""

    edit: tuple[Edit, ...] = ()


class DownloadsFile(Frozen):
    """downloads/*.toml."""

    download: tuple[Download, ...] = ()


# Kind -> the files of it, as a glob in the catalog's folder, and what they say.
FILES: dict[str, tuple[str, type[Frozen]]] = {
    "base": ("bases/*.toml", Base),
    "component": ("components/*.toml", ComponentFile),
    "download": ("downloads/*.toml", DownloadsFile),
    "edit": ("edits/*.toml", EditsFile),
    "error_line": ("error_lines.toml", ErrorLines),
    "issue": ("issues/*.toml", IssuesFile),
    "launcher": ("launchers.toml", LaunchersFile),
    "manager": ("package_managers.toml", ManagersFile),
    "provider": ("providers/*.toml", Provider),
    "stack": ("stacks/*.toml", Stack),
    "target": ("targets.toml", TargetsFile),
    "watchlist": ("watchlist.toml", WatchlistFile),
}


# What every file may say once for its rows.
ONCE = {
    "default": "what all rows of a name say, unless they say it",
    "sources": "texts that a row's source cites as {name}",
}


def schema(model: type[Frozen]) -> dict[str, Any]:
    """Return the JSON schema of files that say what a model says, or say once for all their rows.

    Where a file says so, nothing is known to be missing in a row.
    """
    whole = model.model_json_schema()
    partial = _without_required(json.loads(json.dumps(whole).replace('"#/$defs/', '"#/$defs/partial ')))
    for name, field in partial["properties"].items():
        if "$ref" in field.get("items", {}):
            rows = {"type": "object", "additionalProperties": field["items"]}
            partial["properties"][name] = {"anyOf": [field, rows]}
    partial["properties"] |= {name: {"type": "object", "description": text} for name, text in ONCE.items()}
    definitions = {f"partial {name}": row for name, row in partial.pop("$defs", {}).items()}
    required = {} if "like" in whole["properties"] else {"required": whole.get("required", [])}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **partial,
        **required,
        "if": {"anyOf": [{"required": [name]} for name in ("default", "like", "shared")]},
        "else": {name: whole[name] for name in ("properties", "required") if name in whole},
        "$defs": whole.get("$defs", {}) | definitions,
    }


def _without_required(node: Any) -> Any:
    """Return a schema in which nothing must be there; a field may be called `required` all the same."""
    if isinstance(node, list):
        return [_without_required(part) for part in node]
    if not isinstance(node, dict):
        return node
    return {
        name: _without_required(part)
        for name, part in node.items()
        if not (name == "required" and isinstance(part, list))
    }
