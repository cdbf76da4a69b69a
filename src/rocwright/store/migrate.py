"""Records of before they had a sha256 get theirs, once, if what they name is whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from rocwright.store.model import OWN_SCHEMA, DamagedBlobError, Record
from rocwright.store.seal import DamagedRecordError, UnknownRecordError, unseal, unsealed


class Records(Protocol):
    """What is asked of a store whose records get their sha256."""

    def record_keys(self) -> Iterable[str]: ...

    def record_bytes(self, key: str) -> bytes: ...

    def write_record(self, record: Record) -> None: ...

    def move_aside(self, key: str) -> None: ...

    def has(self, sha256: str, size: int | None = None) -> bool: ...

    def verified(self, sha256: str) -> Path: ...


def seal_records(store: Records) -> None:
    """Give every record its sha256 whose files are there and whole; the others are moved aside.

    Every file that a record names is read once. What a kill leaves is gone on with by the next who opens it.
    """
    bare = [record for key in store.record_keys() if (record := _bare(store, key)) is not None]
    if not bare:
        return
    said = f"store: {len(bare)} records of an older rocwright: the files that they name are read once"
    print(said, file=sys.stderr)
    files = {output.sha256 for record in bare for output in record.outputs}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        whole = dict(zip(files, pool.map(lambda sha256: _is_whole(store, sha256), files), strict=True))
    for record in bare:
        if all(whole[output.sha256] and store.has(output.sha256, output.size) for output in record.outputs):
            store.write_record(record)
        else:
            store.move_aside(record.key)


def _bare(store: Records, key: str) -> Record | None:
    """A record without a sha256, of the form of now; None for one that needs nothing more, or is damaged."""
    data = store.record_bytes(key)
    try:
        unseal(data, key)
    except UnknownRecordError:
        return None
    except DamagedRecordError:
        try:
            return unsealed(data, key).model_copy(update={"schema_version": OWN_SCHEMA})
        except DamagedRecordError:
            store.move_aside(key)
    return None


def _is_whole(store: Records, sha256: str) -> bool:
    try:
        store.verified(sha256)
    except (KeyError, DamagedBlobError):
        return False
    return True
