"""rocwright.toml and rocwright.lock on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import tomlkit

from rocbase.errors import InputError
from rocbase.files.atomic import write_atomic
from rocbase.model import SUM, Frozen, opened, sealed
from rocbase.toml.read import parse, read_toml
from rocwright.catalog.load import the_catalog
from rocwright.model.architecture import host, host_architecture
from rocwright.model.steps import FilePin
from rocwright.plan.resolve.difference import difference
from rocwright.plan.resolve.folder import PROJECT
from rocwright.plan.resolve.gpus import with_gpus
from rocwright.plan.resolve.model import LOCK_SCHEMA, Lock, Request
from rocwright.plan.resolve.settings import ProjectFile
from rocwright.plan.resolve.tell_difference import tell_difference

# The fields of a lock's parts that hold files: said always, said where there are any, and parts of parts.
PINS, MORE_PINS, SDISTS = ("files", "packages"), ("downloads", "requires"), "sdists"

HEADER = (
    "Written by `rocwright lock`. Every commit, package and hash of this stack; commit it, do not edit it."
)


def read_request(path: Path) -> Request:
    """What the project file asks for. Raises InputError that says what is wrong in it."""
    return read_project(path).request


def read_project(path: Path) -> ProjectFile:
    """The project file whole, settings too. Raises InputError that says what is wrong in it."""
    if not path.exists():
        raise InputError(
            f"there is no {path.name} in {path.parent}",
            cause="without it, the stack, the GPU and the base have to be named",
            next_step="rocwright init --stack STACK --gpu GPU writes one, or name the stack here: "
            "rocwright build STACK --gpu GPU; rocwright stacks lists them",
        )
    data = read_toml(path)
    if "architecture" not in data:
        data["architecture"] = host_architecture()
    project = parse(ProjectFile, data, path)
    try:
        return with_gpus(project, the_catalog())
    except InputError as error:
        error.detail = error.detail or f"it stands in {path}"
        raise


def write_request(path: Path, request: Request) -> None:
    """Write the project file."""
    document = tomlkit.document()
    document.add(
        tomlkit.comment("What rocwright builds here; `rocwright lock` answers it with exact versions.")
    )
    document["stack"] = request.stack
    document["gpu"] = list(request.gpu)
    document["base"] = request.base
    if request.architecture is not host():
        document["architecture"] = request.architecture.value
    if request.provider:
        document["provider"] = request.provider
    if request.extra:
        document["extra"] = list(request.extra)
    if request.accept_missing:
        document["accept_missing"] = list(request.accept_missing)
    if request.allow_untested:
        document["allow_untested"] = True
    if request.versions:
        document["versions"] = dict(request.versions)
    else:
        document.add(tomlkit.nl())
        document.add(tomlkit.comment("[versions]"))
        document.add(
            tomlkit.comment(
                'torchvision = "0.21.0"     # pins; the rest is as known good, else the newest that fits'
            )
        )
    write_atomic(path, tomlkit.dumps(document))


def change_request(path: Path, changes: Mapping[str, object]) -> None:
    """Write changes into a project file; the rest of it, comments too, stays. Versions are added to its own,
    and an empty version removes one.

    Raises InputError where the file would not be a request then.
    """
    read_project(path)
    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    for name, value in changes.items():
        if isinstance(value, Mapping):
            table = document.setdefault(name, tomlkit.table())
            table.update({key: part for key, part in value.items() if part})
            for key in [key for key, part in value.items() if not part and key in table]:
                del table[key]
        else:
            document[name] = list(value) if isinstance(value, tuple) else value
    text = tomlkit.dumps(document)
    parse(ProjectFile, tomlkit.parse(text).unwrap(), path)
    write_atomic(path, text)


def read_lock(path: Path, request: Request | None = None, *, edited: bool = False) -> Lock:
    """The lock, which must fit the request. It may have been `edited` by hand where that is wanted.

    Raises InputError for another schema, a damaged file, another request.
    """
    again = "rocwright lock writes it again"
    data = read_toml(path, again)
    schema = data.get("schema")
    if isinstance(schema, int) and schema != LOCK_SCHEMA:
        raise InputError(
            f"{path} has the schema {schema}; this rocwright reads schema {LOCK_SCHEMA}",
            cause="another version of rocwright wrote it",
            next_step="use that version, or lock again with this one: rocwright lock",
        )
    lock = parse(Lock, {name: value for name, value in data.items() if name != SUM}, path, again)
    if not edited:
        _check_sum(data, path)
    if request is not None and lock.request != request:
        changed = tell_difference(difference(lock, lock.model_copy(update={"request": request})))
        raise InputError(
            f"{path.name} does not match {PROJECT}",
            cause="changed since it was locked: "
            + "; ".join(line.removeprefix("request: ") for line in changed),
            next_step="rocwright lock",
        )
    return lock


def _check_sum(data: Mapping[str, object], path: Path) -> None:
    """Raise InputError where a lock's sha256 is not of what it says."""
    try:
        opened(data)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{path} was changed after it was written",
            cause=f"edited by hand or damaged: {error}",
            next_step="rocwright lock writes it again; rocwright lock --accept keeps the edit",
        ) from error


def lock_text(lock: Lock) -> str:
    """The lock as its file says it: one line a file, so that a change reads well in a diff.

    Its sha256 is over what it says, as data: comments and spaces may be anything.
    """
    document = _document(lock)
    content = sealed(document.unwrap())
    above = tomlkit.document()
    above.add(tomlkit.comment(HEADER))
    above[SUM] = content[SUM]
    return tomlkit.dumps(above) + tomlkit.dumps(document)


def _document(lock: Lock) -> tomlkit.TOMLDocument:
    document = tomlkit.document()
    _say(lock, document)
    return document


def _say(lock: Lock, document: tomlkit.TOMLDocument | tomlkit.items.Table) -> None:
    """Say a lock in a document, or in a table of that of the lock above it."""
    document["schema"] = lock.schema_version
    document["rocwright"] = lock.rocwright
    document["created"] = lock.created
    document["request"] = _plain(lock.request.model_dump(exclude_defaults=True))
    if lock.provided:
        document["provided"] = dict(lock.provided)
    if lock.rocm:
        document["rocm"] = _row(lock.rocm)
    if lock.python:
        document["python"] = _row(lock.python)
    if lock.python_run:
        document["python_run"] = _row(lock.python_run)
    document["components"] = _rows(lock.components)
    document["roots"] = _rows(lock.roots)
    if lock.remedies:
        remedies = tomlkit.aot()
        for remedy in lock.remedies:
            row = tomlkit.table()
            row.update(remedy.model_dump(mode="json", by_alias=True, exclude_defaults=True))
            remedies.append(row)
        document["remedies"] = remedies
    if lock.on is not None:
        document["on"] = tomlkit.table()
        _say(lock.on, document["on"])


def write_lock(path: Path, lock: Lock) -> None:
    """Write the lock."""
    write_atomic(path, lock_text(lock))


def _rows(parts: Iterable[Frozen]) -> tomlkit.items.AoT:
    array = tomlkit.aot()
    for part in parts:
        array.append(_row(part))
    return array


def _row(part: Frozen) -> tomlkit.items.Table:
    """A part of the lock as a table: what it says, without what is empty, then its files."""
    data = part.model_dump(exclude={*PINS, *MORE_PINS, SDISTS}, exclude_defaults=True)
    row = tomlkit.table()
    row.update(_plain(data))
    for name in (*PINS, *MORE_PINS):
        pins = getattr(part, name, None)
        if pins or (pins is not None and name in PINS):
            row[name] = _lines(pins)
    if sdists := getattr(part, SDISTS, ()):
        row[SDISTS] = _rows(sdists)
    return row


def _lines(pins: Iterable[FilePin]) -> tomlkit.items.Array:
    array = tomlkit.array()
    for pin in pins:
        table = tomlkit.inline_table()
        table.update({"filename": pin.filename, "sha256": pin.sha256, "size": pin.size})
        origin = tomlkit.inline_table()
        origin.update({"kind": pin.origin.kind} | pin.origin.model_dump(exclude_defaults=True))
        table["origin"] = origin
        array.append(table)
    return array.multiline(True)


def _plain(data: dict[str, object]) -> dict[str, object]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in data.items()}
