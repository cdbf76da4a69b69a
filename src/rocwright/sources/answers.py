"""Keeps answers on disk, each by its question."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from rocbase.files.atomic import sha256_bytes, write_atomic
from rocbase.model import Frozen, canonical_json

Answer = TypeVar("Answer", bound=Frozen)


def remembered(
    folder: Path, model: type[Answer], question: Any, find: Callable[[], Answer], *, again: bool = False
) -> Answer:
    """Return the last answer to a question (JSON), or what `find` returns, which is kept in `folder`.

    With `again` the last answer does not count.
    """
    path = folder / f"{model.__name__.lower()}-{sha256_bytes(canonical_json(question))[:16]}.json"
    if not again:
        try:
            return model.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            pass  # the question is new, or another version of rocwright wrote the file
    answer = find()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, answer.model_dump_json(by_alias=True))
    return answer


def answers_about(lists: Path) -> Path:
    """Return the folder of answers about the package lists in apt's folder `lists`, and remove older answers.

    The signed Release files have the hash of each list.
    """
    digest = sha256()
    for path in sorted(lists.glob("var/lib/apt/lists/*Release")):
        digest.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    current = lists / "answers" / digest.hexdigest()[:16]
    for path in current.parent.glob("*"):
        if path != current:
            shutil.rmtree(path, ignore_errors=True)
    return current
