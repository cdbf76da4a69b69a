"""Cleaning up a shared store: files that no record names, once they are old enough to be nobody's work."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from rocwheel.errors import InputError
from rocwright.signing.envelope import parse_envelopes
from rocwright.signing.safe_json import parse_json
from rocwright.store.bucket import Bucket, Found
from rocwright.store.model import is_key
from rocwright.store.push import read_mark
from rocwright.store.signed import LARGEST
from rocwright.store.turns import turn

YOUNG = 48 * 3600.0
"""Seconds in which a file is left alone, whoever names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """What went, or would go: files and bytes; and records that nobody here can read, because of which
    nothing goes."""

    files: int
    size: int
    unreadable: tuple[str, ...] = ()


def clean(
    bucket: Bucket, *, dry_run: bool = False, on_file: Callable[[int], None] = lambda size: None
) -> Cleaned:
    """Remove the files that no record names and that have been there for two days.

    Whose the records are does not matter here: another's are not ours to judge. Raises InputError where
    somebody pushes, or where there is no store.
    """
    read_mark(bucket)
    with turn(bucket, "clean") as held:
        named, unreadable = _named(bucket)
        if unreadable:
            return Cleaned(files=0, size=0, unreadable=tuple(unreadable))
        blobs = list(bucket.list("blobs"))
        now = max((one.written for one in bucket.list("leases")), default=0.0)
        going = [one for one in blobs if _name(one) not in named and now - one.written > YOUNG]
        for one in going if not dry_run else ():
            held.renew()
            bucket.remove(one.name)
            on_file(one.size)
    return Cleaned(files=len(going), size=sum(one.size for one in going))


def _name(blob: Found) -> str:
    return blob.name.rpartition("/")[2]


def _named(bucket: Bucket) -> tuple[set[str], list[str]]:
    """The files that records name, whoever signed them, and the records that cannot be read."""
    named: set[str] = set()
    unreadable: list[str] = []
    for one in bucket.list("records"):
        try:
            [envelope] = parse_envelopes(bucket.get(one.name, LARGEST) or b"", one.name)
            said = parse_json(parse_json(envelope.payload, "payload")["content"].encode(), "record")
            named |= {output["sha256"] for output in said["outputs"] if is_key(output["sha256"])}
        except (InputError, ValueError, TypeError, KeyError, AttributeError, json.JSONDecodeError):
            unreadable.append(one.name)
    return named, unreadable
