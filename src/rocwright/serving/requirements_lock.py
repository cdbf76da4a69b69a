"""The lock of what an environment takes from the package index, beside the lock of the stack."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from rocbase.errors import ConflictError, InputError
from rocbase.files.atomic import write_atomic
from rocwright.model.architecture import Architecture
from rocwright.plan.resolve.model import LockedPython
from rocwright.store.model import Store

_FILE = TypeAdapter(tuple[LockedPython, ...])


def path_of(lock: Path) -> Path:
    """Where it lies."""
    return lock.with_name(f"{lock.stem}.run.json")


def locked_requirements(
    lock: Path,
    requirements: Sequence[str],
    python: str,
    architecture: Architecture,
    store: Store,
    say: Callable[[str], None],
) -> LockedPython:
    """The files for `requirements` and all that they require, for CPython `python`: as they were locked, or
    from the index, and locked from then on.

    Raises InputError for a file that cannot be read, ConflictError where something has no wheel,
    NetworkError.
    """
    path = path_of(lock)
    entries = _read(path)
    ordered = tuple(sorted(requirements))
    locked = next((entry for entry in entries if (entry.version, entry.wanted) == (python, ordered)), None)
    if locked is not None:
        return locked
    from rocwright.sources import index  # here: it takes a while, and a lock that is there needs none of it

    say(f"lock: Python packages for {', '.join(ordered)}")
    resolved = index.resolve(ordered, python, architecture, store)
    if resolved.sdists:
        raise ConflictError(
            f"there are no wheels of {', '.join(sdist.pin.filename for sdist in resolved.sdists)}",
            cause="only wheels are installed into an environment, and the index has source distributions",
            next_step="build a wheel of it as a component of the stack",
        )
    new_entry = LockedPython(version=python, wanted=ordered, files=resolved.wheels)
    updated = [*(entry for entry in entries if entry.wanted != ordered), new_entry]
    text = json.dumps(_FILE.dump_python(tuple(updated), mode="json"), indent=2)
    write_atomic(path, text + "\n")
    say(f"lock: written to {path}")
    return new_entry


def _read(path: Path) -> tuple[LockedPython, ...]:
    if not path.exists():
        return ()
    try:
        return _FILE.validate_json(path.read_bytes())
    except ValidationError as error:
        raise InputError(
            f"{path} cannot be read",
            cause=f"{error.error_count()} faults, the first: {error.errors()[0]['msg']}",
            next_step="remove it: it is made anew from the package index",
        ) from error
