"""versions.env -> the versions of a project file. Lines are NAME=VALUE; nothing in them is ever executed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from rocbase.errors import InputError
from rocwright.catalog.load import Catalog
from rocwright.catalog.place import GitPlace
from rocwright.export.arguments import TARGETS
from rocwright.export.model import variable
from rocwright.export.pipeline import VALUE
from rocwright.plan.resolve.gpus import target_named
from rocwright.plan.resolve.model import Request

_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
_FURTHER = re.compile(r"(PACKAGES|IMAGE)_[A-Z0-9_]+|[A-Z0-9_]+_(IMAGE|SHA256)")
# Bytes that a file of versions may have.
LONGEST = 1_000_000


def read_versions(path: Path) -> dict[str, str]:
    """Names and values of a versions.env. Raises InputError for all that is not plain NAME=VALUE."""
    try:
        data = path.read_bytes() if path.stat().st_size <= LONGEST else None
        text = data.decode() if data is not None else None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} cannot be read as versions",
            cause=str(error),
            next_step="name a versions.env that `rocwright export pipeline` wrote",
        ) from error
    if text is None:
        raise InputError(
            f"{path} is not a versions.env",
            cause=f"it has more than {LONGEST} bytes",
            next_step="name a versions.env that `rocwright export pipeline` wrote",
        )
    values: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line and not line.startswith("#"):
            name, value = _pair(line, f"{path.name}:{number}")
            if name in values:
                raise _refused(f"{path.name}:{number}", f"{name} is defined twice")
            values[name] = value
    return values


def _pair(line: str, place: str) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals or not _NAME.fullmatch(name):
        raise _refused(place, f"{line[:60]!r} is not NAME=VALUE")
    for quote in ("'", '"'):
        if len(value) >= 2 and value[0] == value[-1] == quote:
            value = value[1:-1]
            break
    if not VALUE.fullmatch(value):
        bad = sorted({sign for sign in value if not VALUE.fullmatch(sign)})
        raise _refused(place, f"the value of {name} holds {' '.join(map(repr, bad))}")
    if ".." in value:
        raise _refused(place, f"the value of {name} holds '..'")
    return name, value


def _refused(place: str, cause: str) -> InputError:
    return InputError(
        f"{place} is not a plain NAME=VALUE line",
        cause=f"{cause}; the file is read, never executed",
        next_step="write plain values: letters, digits and ._,:/@+~=^-",
    )


def with_versions(request: Request, values: Mapping[str, str], catalog: Catalog) -> Request:
    """The request with the versions, commits and GPUs of `values`. Raises InputError for an unknown name.

    Hashes and images are the lock's, and are left out.
    """
    names = {variable(name, "version"): name for name in catalog.components}
    commits = {variable(name, "commit"): name for name in catalog.components}
    versions = dict(request.versions)
    gpu = request.gpu
    for name, value in values.items():
        if not value:
            continue
        if name == TARGETS:
            gpu = tuple(target_named(gpu_name, catalog).name for gpu_name in value.split(","))
        elif name in names:
            versions[names[name]] = value
        elif name not in commits and not _FURTHER.fullmatch(name):
            raise InputError(
                f"{name} does not name anything in the catalog",
                cause="names are COMPONENT_VERSION, COMPONENT_COMMIT and TARGETS",
                next_step="remove the line, or correct the name; rocwright export pipeline writes a "
                "versions.env with all names of a stack",
            )
    for name, value in values.items():
        component = commits.get(name)
        if (
            component is not None
            and value
            and not _of_release(catalog, component, versions.get(component, ""), value)
        ):
            versions[component] = f"@{value}"
    return request.model_copy(update={"gpu": gpu, "versions": dict(sorted(versions.items()))})


def _of_release(catalog: Catalog, name: str, version: str, commit: str) -> bool:
    """Whether the commit is the one that the recipe knows for that version."""
    return any(
        isinstance(place, GitPlace) and place.commit == commit
        for release in catalog.component(name).release
        if release.version == version
        for place in release.every_place
    )
