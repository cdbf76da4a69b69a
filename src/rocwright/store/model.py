"""What a store holds and what it can do: all that anybody outside this package knows of one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Protocol

from pydantic import AfterValidator, Field

from rocbase.errors import ExplainedError, FailureClass
from rocbase.files.atomic import CHUNK
from rocbase.model import Frozen
from rocwright.store.bucket import ASKED_AT_ONCE, Bucket
from rocwright.store.shared_folder import Listed

if TYPE_CHECKING:
    from rocwright.store.signed import Word

# The layout of a store; a store of another layout is refused.
STORE_SCHEMA = 2

# The form of a record. One with a higher number is a newer rocwright's, and left alone.
RECORD_SCHEMA = 5

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
    step ran here. `tools` is the hex sha256 of the tar of the tools root that made a root of Debian.
    Times are UTC ISO 8601, `seconds` wall time, `peak_memory` bytes.
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
    tools: str = ""
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


# What gives the hex sha256 of an open file.
DigestOf = Callable[[BufferedReader], str]


def digest_of_file(file: BufferedReader) -> str:
    """Return the hex sha256 of an open file."""
    return hashlib.file_digest(file, "sha256").hexdigest()


class RecordEntry(NamedTuple):
    """A record as a store keeps it: its key, when it was written (seconds since 1970), and what it says; or
    why it says nothing: it was damaged and has been moved aside, or a newer rocwright wrote it."""

    key: str
    written: float
    record: Record | None
    problem: Literal["", "damaged", "newer"] = ""


class Peer(Protocol):
    """A store of other machines, as far as whoever builds knows it: what trusted keys signed in a bucket."""

    name: str
    bucket: Bucket

    def signers(self, record: Record) -> frozenset[str]:
        """The ids of the trusted keys that say the same of that step, each without what another compiled."""
        ...

    def lock(self, name: str) -> Word | None:
        """The newest lock of that name that a trusted key signed."""
        ...

    def say(self, text: str) -> None:
        """Note something once."""
        ...


class Inventory(Protocol):
    """What a store keeps, for `ls` and clean-ups: all of it, and how it is removed. `path` is the folder of
    this machine in which those who work with the store leave their locks (`leases`)."""

    @property
    def path(self) -> Path: ...

    def files(self) -> Iterator[Listed]:
        """Every file: its sha256, its bytes, and when it was last put."""
        ...

    def records(self) -> Iterator[RecordEntry]:
        """Every record, also those that cannot be read."""
        ...

    def remove(self, kind: Literal["file", "record"], name: str) -> None:
        """Remove a file or a record, if it is there."""
        ...


class Store(Protocol):
    """Content-addressed files, and the record of which key gave which. Nothing in it is ever edited.

    `str` of it is where it is, for people. All else that can be done with one is a function of these:
    `records`, `verified`, `chunks`, `in_store` here, and those of `leases` and `gc`.
    """

    @property
    def url(self) -> str:
        """What `open_store` takes, on any machine that reaches it."""
        ...

    @property
    def local(self) -> Inventory:
        """What of it is kept here, without what other machines offer."""
        ...

    @property
    def shared(self) -> Sequence[Peer]:
        """The stores of other machines behind it, in their order; the first with its `url` is built in."""
        ...

    def put_file(self, path: Path, *, move: bool = False) -> tuple[str, int]:
        """Keep a file; gives its sha256 and size. With `move` the file at `path` is taken, not copied."""
        ...

    def has(self, sha256: str, size: int | None = None) -> bool:
        """Whether that file is there (and of that size); its bytes are looked at when it is read."""
        ...

    def opened(self, sha256: str, digest_of: DigestOf = digest_of_file) -> BufferedReader:
        """A file on this machine, open at any place; `digest_of` gives its sha256, which is checked.

        Raises DamagedBlobError for another, KeyError.
        """
        ...

    def record(self, key: str, on_damage: Callable[[str], object] = lambda key: None) -> Record | None:
        """What that key gave, or None. A record that is damaged is moved aside, and is none: then, and when
        it is asked for again, `on_damage` is called with the key.

        Raises InputError for a record that a newer rocwright wrote.
        """
        ...

    def put_record(self, record: Record) -> Record:
        """Keep a record if its key has none; gives the one that is kept."""
        ...

    def bring(
        self, key: str, on_bytes: Callable[[int], None] = lambda count: None, *, here: bool = True
    ) -> bool:
        """Have the outputs of the record of that key on this machine, or, if not `here`, where all machines
        that build in this store find them.

        False where they cannot be had any more; then the key has no such record, and the reason was told.
        `on_bytes` is called with what each part of a transfer brought. Raises OutOfDiskError, and where they
        are sent InputError, NetworkError.
        """
        ...

    def step(self, key: str) -> bytes | None:
        """The definition of a step, as put."""
        ...

    def put_step(self, key: str, definition: bytes) -> None:
        """Keep the definition of a step under its key, if absent."""
        ...


def in_store(store: Store, record: Record | None) -> bool:
    """Whether there is a record, and all its outputs are in the store."""
    return record is not None and all(store.has(output.sha256, output.size) for output in record.outputs)


def finished(store: Store, key: str) -> Record | None:
    """The record of a key whose outputs are all in the store."""
    record = store.record(key)
    return record if in_store(store, record) else None


def records_of(
    store: Store, keys: Collection[str], on_damage: Callable[[str], object] = lambda key: None
) -> dict[str, Record | None]:
    """`record` of each of these keys, of several at once: other machines take a while to answer."""
    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        answers = pool.map(partial(store.record, on_damage=on_damage), keys)
        return dict(zip(keys, answers, strict=True))


def records(store: Store) -> list[Record]:
    """All records, but those that a newer rocwright wrote."""
    return [entry.record for entry in store.local.records() if entry.record is not None]


def definition(store: Store, key: str) -> dict[str, Any]:
    """What the definition of a step says; nothing where the store has none that can be read."""
    try:
        content = json.loads(store.step(key) or b"{}")
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def inputs_of(store: Store, key: str) -> list[str]:
    """The keys of the steps that a step is made from, as far as the store has its definition."""
    with contextlib.suppress(TypeError, KeyError):
        return [item["key"] for item in definition(store, key).get("inputs", ()) if is_key(item["key"])]
    return []


def verified(store: Store, sha256: str) -> Path:
    """A path on this machine of a file whose bytes were just checked. Raises DamagedBlobError, KeyError."""
    with store.opened(sha256) as file:
        return Path(file.name)


def chunks(store: Store, sha256: str) -> Iterator[bytes]:
    """The bytes of a file, checked as they pass: DamagedBlobError at the end where they are wrong."""
    hasher = hashlib.sha256()
    with store.opened(sha256, lambda file: sha256) as file:
        while chunk := file.read(CHUNK):
            hasher.update(chunk)
            yield chunk
    if hasher.hexdigest() == sha256:
        return
    try:
        store.opened(sha256, lambda file: hasher.hexdigest()).close()
    except KeyError as error:
        # another reader has moved it aside: what passed here was wrong all the same
        raise DamagedBlobError(
            f"the stored file {sha256[:12]} is damaged",
            cause="the disk, or something that wrote into the store",
            next_step="run the command again: it is made anew",
            subject=sha256,
        ) from error
