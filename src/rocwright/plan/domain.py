"""Trust domains: which steps may read what another has left in a compiler cache.

What a step leaves there may be forged, so a cache is shared only by steps that run the same strangers' code:
the same component, sources, commands, edits and environment as the recipe has them for all GPUs, the same
things installed, and the same root file system, whose compiler writes the objects. The GPUs, the number of
jobs and the step's key are not part of it: a build for a second GPU finds what the first has compiled for the
host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rocbase.files.atomic import sha256_bytes
from rocbase.model import canonical_json
from rocwright.model.edits import Edit
from rocwright.model.steps import FilePin

# Raised when the meaning of a domain changes; every compiler cache begins anew with it.
SCHEMA = 2


def domain_of(
    component: str,
    *,
    root: str,
    sources: Iterable[str],
    commands: Sequence[str],
    tree: Sequence[str] = (),
    edits: Iterable[Edit] = (),
    env: Mapping[str, str] | None = None,
    installed: Iterable[str] = (),
) -> str:
    """The sha256 that stands for a trust domain.

    `root` is the key of the step that makes the root. `sources` and `installed` are the names and sha256s of
    what was fetched and the domains of what was built. `tree` says which part of the sources is taken and
    which of their patches.
    """
    material: dict[str, Any] = {
        "schema": SCHEMA,
        "component": component,
        "root": root,
        "sources": sorted(sources),
        "tree": list(tree),
        "edits": [edit.material() | {"targets": edit.targets} for edit in edits],
        "commands": list(commands),
        "env": dict(env or {}),
        "installed": sorted(installed),
    }
    return sha256_bytes(canonical_json(material))


def digests(*files: Iterable[FilePin]) -> tuple[str, ...]:
    """Return the names and sha256s of fetched files: a name decides how a file is read."""
    return tuple(f"{pin.filename} {pin.sha256}" for part in files for pin in part)
