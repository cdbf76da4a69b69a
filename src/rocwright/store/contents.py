"""What lies in a shared store, whoever put it there: read, and not yet believed. Its clean-up removes old
records of one's own, then the files that no record names, once they are old enough to be nobody's work."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from pydantic import ValidationError

from rocbase.errors import InputError
from rocwright.model.steps import Step
from rocwright.store.blobs import Blob, Blobs
from rocwright.store.bucket import ASKED_AT_ONCE, Bucket
from rocwright.store.gc import DAY
from rocwright.store.leases import turn
from rocwright.store.model import is_key
from rocwright.store.push import plain_name, read_mark
from rocwright.store.shared import FOLDERS, word_name
from rocwright.store.shared_folder import Listed
from rocwright.store.signed import LARGEST, RefusedError, unpacked, word_of
from rocwright.store.signing.envelope import parse_envelopes
from rocwright.store.signing.keys import LARGEST_KEY, key_of
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
        for sha256 in record.files.keys() & contents.blobs.keys() - counted:
            counted.add(sha256)
            row[1] += 1
            row[2] += contents.blobs[sha256].size
    shares = [Share(name=name, records=row[0], files=row[1], size=row[2]) for name, row in count.items()]
    return sorted(shares, key=lambda share: (-share.size, share.name))


# Seconds in which a file is left alone, whoever names it.
YOUNG = 48 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Which records under the key id `keyid` stay: the `last` of each step for the same GPUs and base, those
    written within `days`, and those of `keys`. All others go; another signer's are not ours to judge."""

    keyid: str
    last: int
    days: float
    keys: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """What went, or would go: records, files and bytes; and records that nobody here can read, because of
    which nothing goes."""

    files: int
    size: int
    records: int = 0
    unreadable: tuple[str, ...] = ()


def clean(
    bucket: Bucket,
    keep: Keep | None = None,
    *,
    dry_run: bool = False,
    on_file: Callable[[int], None] = lambda size: None,
) -> Cleaned:
    """Remove the records that `keep` does not keep, none without it, and the files that no record names
    and that have been there for two days.

    Raises InputError where somebody pushes or builds there, or where there is no store; NetworkError.
    """
    with turn(bucket, "clean") as lease:
        contents = read_contents(bucket)
        if contents.unreadable:
            return Cleaned(files=0, size=0, unreadable=contents.unreadable)
        clock = max((entry.written for entry in bucket.list("leases")), default=0.0)
        own = [record for record in contents.records if keep is not None and record.keyid == keep.keyid]
        expired = not_kept(own, keep, _labels_of(bucket, own), clock) if keep is not None else []
        definitions = _definitions(bucket, contents, expired)
        named = contents.named(but=frozenset(record.path for record in expired))
        blobs = [
            blob
            for sha256, blob in contents.blobs.items()
            if sha256 not in named and clock - blob.written > YOUNG
        ]
        if not dry_run:
            # a record goes before its files: nobody is told of a file that is not there
            for name in [*(record.path for record in expired), *definitions]:
                lease.renew()
                bucket.remove(name)
            for blob in blobs:
                for name in blob.names:
                    lease.renew()
                    bucket.remove(name)
                on_file(blob.size)
    return Cleaned(files=len(blobs), size=sum(blob.size for blob in blobs), records=len(expired))


def not_kept(
    own: Iterable[StoredRecord], keep: Keep, variants: dict[str, str], clock: float
) -> list[StoredRecord]:
    """The records that do not stay; `variants` tells by key for which GPUs and base a step is."""
    alike: defaultdict[tuple[str, str], list[StoredRecord]] = defaultdict(list)
    for record in sorted(own, key=lambda record: -record.written):
        alike[record.step, variants.get(record.key, "")].append(record)
    return [
        record
        for several in alike.values()
        for record in several[keep.last :]
        if record.key not in keep.keys and clock - record.written > keep.days * DAY
    ]


def _labels_of(bucket: Bucket, records: Iterable[StoredRecord]) -> dict[str, str]:
    """Return for which GPUs and base the step of each record is, by its signer's definition there."""

    def ask(record: StoredRecord) -> tuple[str, str]:
        try:
            key = key_of(bucket.get(f"keys/{record.keyid}", LARGEST_KEY) or b"", record.keyid)
            data = bucket.get(word_name("step", record.key, record.keyid), LARGEST) or b""
            step = Step.model_validate_json(word_of(data, "step", record.key, [key]).content)
        except (RefusedError, ValidationError, InputError):
            return record.key, ""
        return record.key, f"{step.about.base} {' '.join(step.about.targets)}"

    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        return dict(pool.map(ask, records))


def _definitions(bucket: Bucket, contents: Contents, expired: list[StoredRecord]) -> list[str]:
    """Return the names of the definitions of steps of which no record stays."""
    paths = {record.path for record in expired}
    stay = {record.key for record in contents.records if record.path not in paths}
    orphaned = sorted({record.key for record in expired} - stay)
    return [entry.name for key in orphaned for entry in bucket.list(f"{FOLDERS['step']}/{key[:2]}/{key}")]
