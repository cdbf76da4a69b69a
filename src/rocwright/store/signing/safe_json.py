"""JSON from strangers: bounded in bytes and depth, no name twice, no surprise."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from rocbase.errors import InputError
from rocbase.units import size

# Bytes of an SBOM; that of a whole root file system has some 10 MiB.
LARGEST_SBOM = 32 * 1024 * 1024


def read_bounded(path: Path, limit: int, label: str) -> bytes:
    """A file's bytes, which may be `limit`. Raises InputError where it is not there, or has more."""
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror or error}",
            cause="it does not exist, is a folder, or this user may not read it",
            next_step="check the path and its permissions",
        ) from error
    if len(data) > limit:
        raise too_large(str(path), label, limit)
    return data


def too_large(name: str, label: str, limit: int) -> InputError:
    """What is said of more bytes than anything honest has."""
    return InputError(
        f"{name} has more than {size(limit)}, too much for a valid {label}",
        cause="it is another kind of file, or was made to exhaust this machine's memory",
        next_step="check where the file came from, and name another one",
    )


def parse_json(data: bytes, label: str) -> Any:
    """What the JSON says. Raises InputError for what is none, repeats a name, or is too deep."""
    try:
        return json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        # JSONDecodeError and UnicodeDecodeError are ValueErrors, as is a number of more digits than are read
        raise InputError(
            f"this is not a valid {label}",
            cause=str(error)[:300] if isinstance(error, ValueError) else "it is nested too deeply",
            next_step="check the file: it may be truncated, or be something else",
        ) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"it has {twice[:80]!r} twice; JSON readers disagree on which one counts")
    return members


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
