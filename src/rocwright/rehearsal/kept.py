"""What was found out for a rehearsal, kept on this machine: a second one asks no network for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from rocbase.files.atomic import sha256_bytes, write_atomic
from rocbase.model import Frozen, canonical_json

Kept = TypeVar("Kept", bound=Frozen)


def kept(
    folder: Path, model: type[Kept], question: Any, find: Callable[[], Kept], *, anew: bool = False
) -> Kept:
    """The answer of before to a question (JSON), or what `find` gives, which is kept; `anew` asks again."""
    path = folder / f"{model.__name__.lower()}-{sha256_bytes(canonical_json(question))[:16]}.json"
    if not anew:
        try:
            return model.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            pass  # nobody asked before, or another version of rocwright did
    answer = find()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, answer.model_dump_json(by_alias=True))
    return answer
