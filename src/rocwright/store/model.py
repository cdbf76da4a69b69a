"""What a store holds and what it can do: all that anybody outside this package knows of one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import AfterValidator, Field

from rocbase.errors import ExplainedError, FailureClass
from rocbase.files.hashes import Hashes
from rocbase.model import Frozen
from rocwright.store.signed import Word

STORE_SCHEMA = 2
"""The layout of a store; a store of another layout is refused."""

RECORD_SCHEMA = 5
"""The form of a record. One with a higher number is a newer rocwright's, and left alone."""

_HEX = re.compile(r"[0-9a-f]{64}")


def is_key(name: str) -> bool:
    """Whether a name is a sha256 in hexadecimal."""
    return _HEX.fullmatch(name) is not None


def _one_name(name: str) -> str:
    """A file name that leads nowhere else when it is put behind a folder. Raises ValueError."""
    if "/" in name or name in ("", ".", "..") or not name.isprintable():
        raise ValueError(f"{name!r} is not the name of a file")
    return name


class Output(Frozen):
    """One thing that a step made: its name in the step, its file name, hex sha256 and size in bytes.

    `content` is the hex sha256 of the tar in a file that rocwright packed, uncompressed: versions of libzstd
    write one tar in different bytes. It is "" for any other file.
    """

    name: str
    filename: Annotated[str, AfterValidator(_one_name)]
    sha256: str
    size: int
    content: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")

    @property
    def known_by(self) -> str:
        """The file name, which says how to read it, and the digest of its content or else its bytes."""
        return f"{self.filename} {self.content or self.sha256}"

    def is_same(self, output: Output) -> bool:
        """Whether both are the same, name included: by content if both say it, else by their bytes."""
        if self.filename != output.filename:
            return False
        if self.content and output.content:
            return self.content == output.content
        return self.sha256 == output.sha256


class CacheUse(Frozen):
    """Whether a step had a compiler cache when it began: none, an empty one, or one that steps of its trust
    `domain` had filled. The host saw it; what a step counts of hits and misses is its own word."""

    state: Literal["none", "empty", "filled"]
    domain: str = ""


class Shard(Frozen):
    """A shard whose compiler cache a step has read: its key, its name, and the id of the key that signed it,
    "" where this machine made it."""

    key: str
    step: str
    keyid: str = ""


class Origin(Frozen):
    """The shared store that a record came from, the id of the key that signed it, what its owner is called
    here, and when it was signed (UTC, ISO 8601)."""

    store: str
    keyid: str
    by: str
    signed: str

    def __str__(self) -> str:
        return f"from {self.store}, built by {self.by}, {self.signed[:10]}"


class Record(Frozen):
    """Which outputs a key gave, and how: never part of any key.

    `content_key` is the key over what the inputs are known by; `reused` names the key whose identical inputs
    made this one needless to run. `cache` is None for a step that runs no commands. `commits` are a tree's
    git commits (message to id, the oldest first). `resumed`
    is how often it went on in the tree of an attempt that was cut short: `started` and `seconds` are those of
    the last attempt. `shards` compiled a part of it, and `cache_signers` may have: objects of theirs had come
    into its compiler cache. `ran_by` is the id of the key of the machine that ran an equal step, where who
    signs this did not. `origin` is None where the
    step ran here. Times are UTC ISO 8601, `seconds` wall time, `peak_memory` bytes.
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
    resumed: int = 0
    shards: tuple[Shard, ...] = ()
    cache_signers: tuple[str, ...] = ()
    ran_by: str = ""
    origin: Origin | None = None

    def compiled_by_others(self, keyid: str = "") -> tuple[str, ...]:
        """The ids of keys that signed shards or cached objects that may have a part in this, other than that
        of the machine that ran it. With the id of a key, those other than this one: what an equal step gave
        on another machine is that one's."""
        signers = {shard.keyid for shard in self.shards} | set(self.cache_signers)
        own = {"", keyid}
        if keyid:
            signers.add(self.ran_by)
        else:
            own |= {self.ran_by, self.origin.keyid if self.origin is not None else ""}
        return tuple(sorted(signers - own))

    def gave_same(self, peer: Record) -> bool:
        """Whether both have the same outputs under the same names."""
        mine, theirs = (sorted(record.outputs, key=lambda output: output.name) for record in (self, peer))
        return [output.name for output in mine] == [output.name for output in theirs] and all(
            output.is_same(counterpart) for output, counterpart in zip(mine, theirs, strict=True)
        )

    def output(self, name: str) -> Output:
        """The output of that name; KeyError where the step has none."""
        for output in self.outputs:
            if output.name == name:
                return output
        raise KeyError(name)


class DamagedBlobError(ExplainedError):
    """A stored file is not what its name says; it has been moved aside and will not be used."""

    failure = FailureClass.INTERNAL
    retryable = True


class Maintenance(Protocol):
    """What a clean-up must know of a store beside what it holds: how old that is, and who works with it.

    Times are in seconds since 1970, and 0 for what is gone.
    """

    def put_at(self, sha256: str) -> float:
        """When a file was last put."""
        ...

    def written_at(self, key: str) -> float:
        """When the record of that key was written."""
        ...

    def running(self) -> Collection[Mapping[str, str]]:
        """The steps of each build that runs now, keys to names; a build that was killed has none."""
        ...

    def locked(self) -> set[str]:
        """The keys of steps that run now, or whose shell is open."""
        ...

    def claimed(self, key: str) -> AbstractContextManager[bool]:
        """Whether nobody works on the step of that key, or on one whose key begins so; nobody begins to until
        the end."""
        ...

    def cleaning(self, on_wait: Callable[[], None] = lambda: None) -> AbstractContextManager[None]:
        """While something is removed: no build begins, and no other clean-up. `on_wait` is called where one
        is at it already."""
        ...


class Store(Protocol):
    """Content-addressed files, and the record of which key gave which. Nothing in it is ever edited.

    `str` of it is where it is, for people.
    """

    @property
    def url(self) -> str:
        """What `open_store` takes, on any machine that reaches it."""
        ...

    # files

    def put_file(self, path: Path, *, move: bool = False) -> tuple[str, int]:
        """Keep a file; gives its sha256 and size. With `move` the file at `path` is taken, not copied."""
        ...

    def has(self, sha256: str, size: int | None = None) -> bool:
        """Whether that file is there (and of that size); its bytes are looked at when it is read."""
        ...

    def verified(self, sha256: str) -> Path:
        """A path on this machine of a file whose bytes were just checked.

        Raises DamagedBlobError, KeyError.
        """
        ...

    def opened(self, sha256: str, hashes: Hashes) -> BufferedReader:
        """A file, open at any place; what `hashes` has read of it is not read again.

        Raises DamagedBlobError, KeyError.
        """
        ...

    def chunks(self, sha256: str) -> Iterator[bytes]:
        """The bytes of a file, checked as they pass: DamagedBlobError at the end where they are wrong."""
        ...

    def blobs(self) -> Iterator[tuple[str, int]]:
        """Every file kept: its sha256 and size in bytes."""
        ...

    def remove_blob(self, sha256: str) -> None:
        """Drop a file that no record needs."""
        ...

    # records

    def record(self, key: str) -> Record | None:
        """What that key gave, or None; a record that is damaged is moved aside, and is none.

        Raises InputError for a record that a newer rocwright wrote.
        """
        ...

    def records_of(self, keys: Sequence[str]) -> Mapping[str, Record | None]:
        """`record` of each of these keys; where others are asked, of several at once. Raises as it does."""
        ...

    def was_damaged(self, key: str) -> bool:
        """Whether the record of that key was found damaged, and moved aside, when it was asked for here."""
        ...

    def put_record(self, record: Record) -> Record:
        """Keep a record if its key has none; gives the one that is kept."""
        ...

    def forget(self, key: str) -> None:
        """Drop a record whose outputs are gone or damaged."""
        ...

    def record_keys(self) -> Sequence[str]:
        """The keys of all records, also of those that cannot be read."""
        ...

    def records(self) -> Sequence[Record]:
        """All records, but those that a newer rocwright wrote."""
        ...

    def unknown(self) -> Sequence[str]:
        """The keys of records that a newer rocwright wrote: nobody here knows which files they need."""
        ...

    # what other machines built

    def bring(self, key: str, on_bytes: Callable[[int], None] = lambda count: None) -> bool:
        """Have the outputs of the record of that key on this machine, if they were not made here.

        False where they cannot be had any more; then the key has no such record, and the reason was told.
        `on_bytes` is called with what each part of a transfer brought. Raises OutOfDiskError.
        """
        ...

    def signers(self, record: Record) -> frozenset[str]:
        """The ids of the keys of those who made the same of that step, as far as they are trusted, without
        what another compiled; "" where it ran on this machine, which signs nothing in this store."""
        ...

    def lend(self, key: str) -> bool:
        """Have the outputs of the record of that key where other machines that build in this store find
        them; whether they do. Raises InputError, NetworkError."""
        ...

    def offered_lock(self, name: str) -> tuple[str, Word] | None:
        """The lock that somebody trusted has published under that name, a sha256, and in which store."""
        ...

    # definitions of steps

    def step(self, key: str) -> bytes | None:
        """The definition of a step, as put."""
        ...

    def put_step(self, key: str, definition: bytes) -> None:
        """Keep the definition of a step under its key, if absent."""
        ...

    # those who work with it at the same time

    def lock(self, name: str) -> AbstractContextManager[object]:
        """Held by one process at a time, the others wait; the name may hold letters, digits and dashes."""
        ...

    def abandon(self, key: str) -> None:
        """The machine that had the lock of that step is gone: nobody waits for it any more."""
        ...

    def holding(
        self, steps: Mapping[str, str], on_wait: Callable[[], None] = lambda: None
    ) -> AbstractContextManager[None]:
        """A build that has to do with these steps, keys to names, for as long as it runs: no clean-up takes
        what they need. `on_wait` is called where a clean-up must end first."""
        ...

    def maintenance(self) -> Maintenance:
        """What a clean-up needs. Raises InputError where this store is not cleaned up from here."""
        ...


def in_store(store: Store, record: Record | None) -> bool:
    """Whether there is a record, and all its outputs are in the store."""
    return record is not None and all(store.has(output.sha256, output.size) for output in record.outputs)
