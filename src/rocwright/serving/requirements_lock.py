"""The lock of what an environment takes from the package index, beside the lock of the stack."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from rocbase.errors import ConflictError, InputError
from rocbase.files.atomic import write_atomic
from rocwright.model.architecture import Architecture
from rocwright.resolve.model import LockedPython
from rocwright.store.model import Store

_FILE = TypeAdapter(tuple[LockedPython, ...])


def path_of(lock: Path) -> Path:
    """Where it lies."""
    return lock.with_name(f"{lock.stem}.run.json")


def locked_requirements(
    lock: Path,
    wanted: Sequence[str],
    python: str,
    architecture: Architecture,
    store: Store,
    say: Callable[[str], None],
) -> LockedPython:
    """The files for `wanted` and all that they require, for CPython `python`: as they were locked, or from
    the index, and locked from then on.

    Raises InputError for a file that cannot be read, ConflictError where something has no wheel,
    NetworkError.
    """
    path = path_of(lock)
    known = _read(path)
    asked = tuple(sorted(wanted))
    found = next((one for one in known if (one.version, one.wanted) == (python, asked)), None)
    if found is not None:
        return found
    from rocwright.sources import index  # here: it takes a while, and a lock that is there needs none of it

    say(f"lock: Python packages for {', '.join(asked)}")
    resolved = index.resolve(asked, python, architecture, store)
    if resolved.sdists:
        raise ConflictError(
            f"there are no wheels of {', '.join(one.pin.filename for one in resolved.sdists)}",
            cause="only wheels are installed into an environment, and the index has source distributions",
            next_step="build a wheel of it as a component of the stack",
        )
    made = LockedPython(version=python, wanted=asked, files=resolved.wheels)
    kept = [*(one for one in known if one.wanted != asked), made]
    text = json.dumps(_FILE.dump_python(tuple(kept), mode="json"), indent=2)
    write_atomic(path, text + "\n")
    say(f"lock: written to {path}")
    return made


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
