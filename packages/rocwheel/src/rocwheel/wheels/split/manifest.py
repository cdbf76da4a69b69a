"""What the pieces of a wheel say of themselves, to be put together again: a JSON file in *.dist-info."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

from pydantic import ConfigDict, Field, ValidationError

from rocbase.errors import InputError
from rocbase.model import Frozen
from rocwheel.wheels.metadata import RecordRow, record_bytes
from rocwheel.wheels.write import check_path

NAME = "rocwright-split.json"
LARGEST = 16 * 1024**2
"""Bytes of a manifest: it takes 16 times as much memory when it is read."""
NEUTRAL = "neutral"
"""The local version of the neutral wheel, and what stands for its target."""

KEPT_HEAD = b"rocwright: bytes of a library\n"
"""What stands before kept bytes, which else may look like the library that they are of."""

STRICT = ConfigDict(extra="forbid")
"""For the many small parts, which are no models: one of those takes 700 bytes."""

Count = Annotated[int, Field(ge=0, lt=1 << 62)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


@dataclass(frozen=True, slots=True)
class Span:
    """`size` bytes at `offset` of the original file; `at` in the neutral one, None for the kept bytes."""

    offset: Count
    size: Count
    at: Count | None = None

    __pydantic_config__ = STRICT


@dataclass(frozen=True, slots=True)
class SplitEntry:
    """An entry of a bundle, at `offset` of it unpacked; `target` is empty for the host's."""

    id: str
    target: str
    offset: Count
    size: Count
    sha256: str = ""

    __pydantic_config__ = STRICT


class Bundle(Frozen):
    """A bundle of the original file; packed as offload.Bundle says."""

    offset: Count
    size: Count
    compression: Literal["", "zlib", "zstd"]
    version: Annotated[int, Field(ge=0, le=3)]
    entries: tuple[SplitEntry, ...]


class SplitLibrary(Frozen):
    """A file with bundles: what it was, and where its bytes that are no GPU code are now, in order.

    Bytes that are not those of the neutral file follow one another in the file `kept`, behind KEPT_HEAD.
    """

    path: str
    size: Count
    sha256: Sha256
    kept: str
    spans: tuple[Span, ...]
    bundles: tuple[Bundle, ...]


@dataclass(frozen=True, slots=True)
class Whole:
    """A file that is for one target as a whole."""

    path: str
    target: str

    __pydantic_config__ = STRICT


class Neutral(Frozen):
    """The manifest of the neutral wheel.

    `record` is the sha256 of the original's RECORD in its one form and names what the pieces are of; `epoch`
    is the time of all files, `wheel` the original's file name, `folder` its *.dist-info.
    """

    schema_version: Annotated[Literal[1], Field(alias="schema")] = 1
    record: Sha256
    epoch: int
    wheel: str
    folder: str
    targets: tuple[str, ...]
    libraries: tuple[SplitLibrary, ...]
    whole: tuple[Whole, ...]


class CodeManifest(Frozen):
    """The manifest of a wheel with the code of one target; `record` is that of the neutral one."""

    schema_version: Annotated[Literal[1], Field(alias="schema")] = 1
    record: Sha256
    target: str


def identity(rows: Iterable[RecordRow]) -> str:
    """What names a wheel's content, whoever packed it: the sha256 of its RECORD in its one form."""
    return hashlib.sha256(record_bytes(rows)).hexdigest()


def code_path(folder: str, library: str, index: int, entry_id: str) -> str:
    """Where a code object lies in its target's wheel; `folder` is that wheel's own."""
    return f"{folder}/{library}/{index:04}.{entry_id.replace(':', '.')}.co"


def as_bytes(manifest: Neutral | CodeManifest) -> bytes:
    """The manifest as it is written. Raises InputError if it is larger than what merging reads."""
    data = manifest.model_dump_json(by_alias=True).encode() + b"\n"
    if len(data) > LARGEST:
        raise InputError(
            f"the manifest of the pieces has {len(data):,} bytes",
            cause=f"rocwheel merge reads {LARGEST:,} bytes of it",
            next_step="use `rocwheel slim --gpu GPU FILE` for the GPUs that you need",
        )
    return data


def read_neutral(data: bytes, subject: str) -> Neutral:
    """The manifest of a neutral wheel. Raises InputError where it is none, or was changed."""
    manifest = _read(Neutral, data, subject)
    for library in manifest.libraries:
        check_path(library.path)
        check_path(library.kept)
    return manifest


def read_code(data: bytes, subject: str) -> CodeManifest:
    """The manifest of a target's wheel. Raises InputError as `read_neutral` does."""
    return _read(CodeManifest, data, subject)


_Manifest = TypeVar("_Manifest", Neutral, CodeManifest)


def _read(model: type[_Manifest], data: bytes, subject: str) -> _Manifest:
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise InputError(
            f"{subject}: {NAME} cannot be read: {error.errors()[0]['msg']}",
            cause="it was written by a newer rocwheel, or is damaged",
            next_step="update rocwheel, or split the wheel again",
        ) from error
