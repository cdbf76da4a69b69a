"""Formats by name, and an export written to a folder: whole, and never over what it did not write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from rocbase.errors import FetchError, InputError
from rocbase.files.atomic import sha256_bytes, write_atomic
from rocbase.folders.links import through_no_link
from rocbase.folders.temporary import temporary_folder
from rocwright.catalog.load import Catalog
from rocwright.export.compose import compose
from rocwright.export.containerfile import containerfile
from rocwright.export.github import github
from rocwright.export.model import ExportSubject, Files
from rocwright.export.nspawn import nspawn
from rocwright.export.pipeline import pipeline
from rocwright.export.powershell import powershell_scripts
from rocwright.export.quadlet import quadlet
from rocwright.export.requirements import requirements
from rocwright.export.run import run_scripts
from rocwright.export.timer import timer
from rocwright.export.tutorial import tutorial
from rocwright.model.step_environment import EPOCH
from rocwright.model.steps import BuiltinOrigin
from rocwright.plan.resolve.model import Lock, LockedPython
from rocwright.sources.archive import pack

FORMATS: Mapping[str, Callable[[ExportSubject], Files]] = {
    "containerfile": containerfile,
    "pipeline": pipeline,
    "nspawn": nspawn,
    "run": run_scripts,
    "quadlet": quadlet,
    "compose": compose,
    "powershell": powershell_scripts,
    "github": github,
    "requirements": requirements,
    "timer": timer,
    "tutorial": tutorial,
}


def export(lock: Lock, catalog: Catalog, format_: str, required: LockedPython | None = None) -> Files:
    """The files of one format, or of all of them, each format in a folder of its own; `required` are the
    packages that the wheels require besides those of the lock.

    Raises InputError for a format that there is not, and for a stack that it says nothing of.
    """
    subject = ExportSubject.of(lock, catalog, carried_sources(lock, catalog), required)
    if format_ == "all":
        exports = {name: make(subject) for name, make in FORMATS.items()}
        return {f"{name}/{path}": file for name, files in exports.items() for path, file in files.items()}
    if format_ not in FORMATS:
        raise InputError(
            f"there is no format {format_!r}",
            cause=f"known: {', '.join(FORMATS)}, all",
            next_step="use one of them; rocwright export --help describes each",
        )
    files = FORMATS[format_](subject)
    if not files:
        raise InputError(
            f"the stack {lock.request.stack} has nothing to export as {format_}",
            cause="no recipe of it says how it is run in a container"
            + (", or how it is built on Windows" if format_ == "powershell" else ""),
            next_step=f"rocwright export containerfile {lock.request.stack}",
        )
    return files


def carried_sources(lock: Lock, catalog: Catalog) -> dict[str, bytes]:
    """The packed trees that rocwright carries, by name. Raises FetchError where one is not the lock's."""
    digests: dict[str, str] = {}
    for locked in lock.components:
        for pin in locked.files:
            if isinstance(pin.origin, BuiltinOrigin):
                digests[pin.origin.name] = pin.sha256
        if locked.kind == "builtin" and not locked.files:
            for place in catalog.component(locked.name).released(locked.version).places:
                name = getattr(place, "builtin", "")
                if name:
                    digests.setdefault(name, "")
    archives = {}
    for name, sha256 in digests.items():
        archives[name] = _packed(catalog.source(name))
        if sha256 and sha256_bytes(archives[name]) != sha256:
            raise FetchError(
                f"the source of {name} does not match the lock",
                cause="this rocwright ships another version of it than the one that made the lock",
                next_step="rocwright lock",
            )
    return archives


def _packed(tree: Path) -> bytes:
    import shutil

    with temporary_folder("export") as folder:
        copy, packed = Path(folder) / "tree", Path(folder) / "tree.tar.zst"
        shutil.copytree(tree, copy, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True)
        pack(copy, packed, epoch=EPOCH)
        return packed.read_bytes()


def write(files: Files, folder: Path, *, top: Path | None = None, force: bool = False) -> list[Path]:
    """Write the files below `folder`; gives their paths.

    Raises InputError, with nothing written, if a file is there already with other content, unless `force`, or
    if a folder below `top`, which is `folder` unless given, is a link.
    """
    paths = {folder / PurePosixPath(name): file for name, file in files.items()}
    for path in paths:
        through_no_link(path.parent, folder if top is None else top)
    conflicts = [
        path
        for path, file in paths.items()
        if path.exists() and (not path.is_file() or path.read_bytes() != file.data)
    ]
    if conflicts and not force:
        raise InputError(
            f"{folder} already has {', '.join(path.name for path in conflicts[:5])}",
            cause=f"{len(conflicts)} existing files differ from what would be written",
            next_step="use another --out, or --force to overwrite them",
        )
    for path, file in paths.items():
        write_atomic(path, file.data)
        if file.executable:
            path.chmod(0o755)
    return list(paths)
