"""Cleaning up a shared store: old records of one's own, then the files that no record names, once they are
old enough to be nobody's work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pydantic import ValidationError

from rocbase.errors import InputError
from rocwright.model.steps import Step
from rocwright.store.bucket import ASKED_AT_ONCE, Bucket
from rocwright.store.contents import Contents, StoredRecord, read_contents
from rocwright.store.leases import turn
from rocwright.store.shared import FOLDERS, word_name
from rocwright.store.signed import LARGEST, RefusedError, word_of
from rocwright.store.signing.keys import LARGEST_KEY, key_of

YOUNG = 48 * 3600.0
"""Seconds in which a file is left alone, whoever names it."""

DAY = 86400.0


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
