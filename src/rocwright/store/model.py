"""What a store holds and what it can do; local and remote stores share this interface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import AfterValidator

from rocwright.errors import FailureClass, RocwrightError
from rocwright.model.base import Frozen

STORE_SCHEMA = 2
"""How a store is laid out. In 1 records had no sha256; such a store is brought up to date when it is opened.
"""

RECORD_SCHEMA = 2
"""How a record is written. One with a higher number is a newer rocwright's, and left alone."""


def _one_name(name: str) -> str:
    """A file name that leads nowhere else when it is put behind a folder. Raises ValueError."""
    if "/" in name or name in ("", ".", "..") or not name.isprintable():
        raise ValueError(f"{name!r} is not the name of a file")
    return name


class Output(Frozen):
    """One thing that a step made: its name in the step, its file name, hex sha256 and size in bytes."""

    name: str
    filename: Annotated[str, AfterValidator(_one_name)]
    sha256: str
    size: int


class CacheUse(Frozen):
    """Whether a step had a compiler cache when it began: none, an empty one, or one that steps of its trust
    `domain` had filled. The host saw it; what a step counts of hits and misses is its own word."""

    state: Literal["none", "empty", "filled"]
    domain: str = ""


class Record(Frozen):
    """Which outputs a key gave, and how: never part of any key.

    `content_key` is the key over the digests of the inputs; `reused` names the key whose identical inputs
    made this one needless to run. `cache` is None for a step that runs no commands, and where an older
    version made the record. `commits` are a tree's git commits (message to id, the oldest first). Times are
    UTC ISO 8601, `seconds` wall time, `peak_memory` bytes.
    """

    schema_version: int = RECORD_SCHEMA
    key: str
    content_key: str
    step: str
    kind: str
    outputs: tuple[Output, ...]
    started: str
    seconds: float
    engine: str = ""
    peak_memory: int | None = None
    jobs: int = 1
    reused: str = ""
    compiler_cache: dict[str, int] = {}
    cache: CacheUse | None = None
    notes: tuple[str, ...] = ()
    commits: dict[str, str] = {}

    def output(self, name: str) -> Output:
        """The output of that name; KeyError where the step has none."""
        for output in self.outputs:
            if output.name == name:
                return output
        raise KeyError(name)


class DamagedBlobError(RocwrightError):
    """A stored file is not what its name says; it has been moved aside and will not be used."""

    failure = FailureClass.INTERNAL
    again = True


class Store(Protocol):
    """Content-addressed files, and the record of which key gave which. Nothing in it is ever edited."""

    @property
    def url(self) -> str: ...

    def put_file(self, path: Path, *, move: bool = False) -> tuple[str, int]:
        """Keep a file; gives its sha256 and size. With `move` the file at `path` is taken, not copied."""
        ...

    def has(self, sha256: str, size: int | None = None) -> bool:
        """Whether that file is there (and of that size); its bytes are looked at when it is read."""
        ...

    def verified(self, sha256: str) -> Path:
        """The local path of a file whose bytes were just checked. Raises DamagedBlobError, KeyError."""
        ...

    def chunks(self, sha256: str) -> Iterator[bytes]:
        """The bytes of a file, checked as they pass: DamagedBlobError at the end where they are wrong."""
        ...

    def record(self, key: str) -> Record | None:
        """What that key gave, or None; a record that is damaged is moved aside, and is none.

        Raises InputError for a record that a newer rocwright wrote.
        """
        ...

    def was_damaged(self, key: str) -> bool:
        """Whether the record of that key was found damaged, and moved aside, when it was asked for here."""
        ...

    def put_record(self, record: Record) -> Record:
        """Keep a record if its key has none; gives the one that is kept."""
        ...

    def step(self, key: str) -> bytes | None:
        """The definition of a step, as put."""
        ...

    def put_step(self, key: str, definition: bytes) -> None:
        """Keep the definition of a step under its key, if absent."""
        ...

    def forget(self, key: str) -> None:
        """Drop a record whose outputs are gone or damaged."""
        ...

    def records(self) -> Sequence[Record]:
        """All records, but those that a newer rocwright wrote."""
        ...
