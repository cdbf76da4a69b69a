"""What lies in a shared store, whoever put it there: read, and not yet believed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from rocbase.errors import InputError
from rocwright.store.blobs import Blob, Blobs
from rocwright.store.bucket import ASKED_AT_ONCE, Bucket
from rocwright.store.model import is_key
from rocwright.store.push import plain_name, read_mark
from rocwright.store.shared import FOLDERS
from rocwright.store.shared_folder import Listed
from rocwright.store.signed import LARGEST, unpacked
from rocwright.store.signing.envelope import parse_envelopes
from rocwright.store.signing.safe_json import parse_json


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord:
    """A record as it lies there: the key, under whose key id, when it was written (seconds since 1970, by
    the bucket's clock), what it says of its step, and the files that it names, sha256 to bytes."""

    path: str
    key: str
    keyid: str
    written: float
    step: str
    kind: str
    files: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """All records, all files by sha256, and the records that cannot be read. `nobodys` are
    the files that no record names."""

    records: tuple[StoredRecord, ...]
    blobs: Mapping[str, Blob]
    unreadable: tuple[str, ...]
    nobodys: tuple[Blob, ...] = field(init=False)

    def __post_init__(self) -> None:
        named = self.named()
        nobodys = tuple(blob for sha256, blob in self.blobs.items() if sha256 not in named)
        object.__setattr__(self, "nobodys", nobodys)

    def named(self, but: frozenset[str] = frozenset()) -> set[str]:
        """The files that records name, without those records whose paths are told."""
        return {sha256 for record in self.records if record.path not in but for sha256 in record.files}


def read_contents(bucket: Bucket) -> Contents:
    """Read every record there, and list the files. Raises InputError where there is no store; NetworkError.

    What a newer rocwright wrote is read as far as the files that it names.
    """
    read_mark(bucket)
    # records before files: one that is put meanwhile comes after its files
    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        read = list(pool.map(lambda entry: _read_record(bucket, entry), bucket.list(FOLDERS["record"])))
    return Contents(
        records=tuple(record for record in read if isinstance(record, StoredRecord)),
        blobs={name: blob for name, blob in Blobs(bucket).found().items() if is_key(name)},
        unreadable=tuple(name for name in read if isinstance(name, str)),
    )


def _read_record(bucket: Bucket, entry: Listed) -> StoredRecord | str:
    """A record, or the name of what cannot be read as one."""
    try:
        _, _, key, keyid = entry.name.split("/")
        [envelope] = parse_envelopes(unpacked(bucket.get(entry.name, LARGEST) or b""), entry.name)
        content = parse_json(parse_json(envelope.payload, "payload")["content"].encode(), "record")
        outputs = content["outputs"]
        return StoredRecord(
            path=entry.name,
            key=key,
            keyid=keyid,
            written=entry.written,
            step="/".join(plain_name(part) for part in str(content["step"]).split("/")[:3]),
            kind=plain_name(str(content["kind"])),
            files={output["sha256"]: int(output["size"]) for output in outputs if is_key(output["sha256"])},
        )
    except (InputError, ValueError, TypeError, KeyError, AttributeError, json.JSONDecodeError):
        return entry.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What a step, or a signer, has in a store: records, files that it is the first to name, and bytes."""

    name: str
    records: int
    files: int
    size: int


def by_step(contents: Contents) -> list[Share]:
    """The records by the name of their step, the largest first."""
    return _shares(contents, [(record.step, record) for record in contents.records])


def by_signer(contents: Contents) -> list[Share]:
    """The records by the id of the key under which they lie; nobody has checked that it signed them."""
    return _shares(contents, [(record.keyid, record) for record in contents.records])


def _shares(contents: Contents, records: list[tuple[str, StoredRecord]]) -> list[Share]:
    count: dict[str, list[int]] = {}
    counted: set[str] = set()
    for name, record in sorted(records, key=lambda pair: pair[1].written):
        row = count.setdefault(name, [0, 0, 0])
        row[0] += 1
        for sha256 in _present_once(contents, record.files, counted):
            row[1] += 1
            row[2] += contents.blobs[sha256].size
    shares = [Share(name=name, records=row[0], files=row[1], size=row[2]) for name, row in count.items()]
    return sorted(shares, key=lambda share: (-share.size, share.name))


def _present_once(contents: Contents, files: Mapping[str, int], counted: set[str]) -> Iterator[str]:
    for sha256 in files:
        if sha256 in contents.blobs and sha256 not in counted:
            counted.add(sha256)
            yield sha256
