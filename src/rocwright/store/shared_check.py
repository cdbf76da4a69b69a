"""Whether a shared store is whole: each signature, each name, each file. Nothing in it is changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from rocbase import units
from rocbase.errors import InputError
from rocwright.store.blobs import Blob, Blobs
from rocwright.store.bucket import ASKED_AT_ONCE, Bucket
from rocwright.store.model import is_key
from rocwright.store.push import plain_name, read_mark
from rocwright.store.seal import DamagedRecordError, UnknownRecordError, unseal
from rocwright.store.shared import FOLDERS, defines
from rocwright.store.shared_folder import Listed
from rocwright.store.signed import LARGEST, NewerError, RefusedError, What, word_of
from rocwright.store.signing.keys import LARGEST_KEY, key_of

if TYPE_CHECKING:
    from securesystemslib.signer import SSlibKey


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCheck:
    """How much was looked at: words of signers, files and bytes; `wrong` are names of objects and what is
    wrong with each, `newer` those that a newer rocwright wrote, `signers` the ids of the keys that signed,
    `damaged` the files by their names."""

    words: int
    files: int
    size: int
    wrong: tuple[tuple[str, str], ...]
    newer: tuple[str, ...]
    signers: tuple[str, ...]
    damaged: tuple[str, ...] = ()


def check(
    bucket: Bucket, *, read: bool = True, on_bytes: Callable[[int], None] = lambda count: None
) -> SharedCheck:
    """Check every signed object against the key under whose id it lies, and every file against its name.

    Without `read`, of the files only that those which records name are there.

    Raises InputError where there is no store; NetworkError.
    """
    read_mark(bucket)
    keys, wrong = _keys(bucket)
    words: list[tuple[What, Listed]] = [
        (kind, entry) for kind, folder in FOLDERS.items() for entry in bucket.list(folder)
    ]
    # of an upload that was cut, nothing is said: it goes on, or a clean-up takes it
    blobs = {sha256: blob for sha256, blob in Blobs(bucket).found().items() if blob.whole}
    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        reasons = list(pool.map(partial(_word, bucket, keys, blobs), words))
    wrong += [
        (entry.name, reason)
        for (_, entry), reason in zip(words, reasons, strict=True)
        if reason and reason != _NEWER
    ]
    size, damaged = 0, []
    for sha256, blob in blobs.items():
        size += blob.size
        if read and (reason := _file(bucket, blob, on_bytes)):
            wrong.append((blob.name, reason))
            damaged.append(sha256)
    return SharedCheck(
        words=len(words),
        files=len(blobs),
        size=size,
        wrong=tuple(sorted(wrong)),
        newer=tuple(
            entry.name for (_, entry), reason in zip(words, reasons, strict=True) if reason == _NEWER
        ),
        damaged=tuple(damaged),
        signers=tuple(sorted({entry.name.rpartition("/")[2] for _, entry in words} & keys.keys())),
    )


_NEWER = "a newer rocwright wrote it"


def _keys(bucket: Bucket) -> tuple[dict[str, SSlibKey], list[tuple[str, str]]]:
    """The public keys that lie there by their ids, and those that are no such keys."""
    keys: dict[str, SSlibKey] = {}
    wrong: list[tuple[str, str]] = []
    for entry in bucket.list("keys"):
        keyid = entry.name.rpartition("/")[2]
        try:
            key = key_of(bucket.get(entry.name, LARGEST_KEY) or b"", entry.name)
        except InputError as error:
            wrong.append((entry.name, error.message))
            continue
        if key.keyid == keyid:
            keys[keyid] = key
        else:
            wrong.append((entry.name, "it is the key of another id"))
    return keys, wrong


def _word(
    bucket: Bucket, keys: dict[str, SSlibKey], blobs: dict[str, Blob], listed: tuple[What, Listed]
) -> str:
    """What is wrong with a word of a signer, "" for nothing."""
    kind, entry = listed
    parts = entry.name.split("/")
    if len(parts) != 4 or not is_key(parts[2]) or parts[1] != parts[2][:2]:
        return "nothing of a store has such a name"
    if parts[3] not in keys:
        return f"the key {plain_name(parts[3])[:12]} does not lie in keys/: nobody can check it"
    try:
        word = word_of(bucket.get(entry.name, LARGEST) or b"", kind, parts[2], [keys[parts[3]]])
        record = unseal(word.content.encode(), parts[2]) if kind == "record" else None
        if kind == "step" and not defines(word, parts[2]):
            return "it is not the definition of that step, or a newer rocwright's"
    except (NewerError, UnknownRecordError):
        return _NEWER
    except (RefusedError, DamagedRecordError) as error:
        return str(error)
    except InputError as error:
        return error.message
    for output in record.outputs if record is not None else ():
        if output.sha256 not in blobs:
            return f"its file {plain_name(output.filename)} is not there"
        if blobs[output.sha256].size != output.size:
            return f"its file {plain_name(output.filename)} has another size"
    return ""


def _file(bucket: Bucket, blob: Blob, on_bytes: Callable[[int], None]) -> str:
    """What is wrong with the bytes of a file, "" for nothing; no more of them are read than were listed."""
    hasher, remaining = hashlib.sha256(), blob.size
    try:
        for chunk in chain.from_iterable(map(bucket.chunks, blob.read)):
            hasher.update(chunk)
            on_bytes(len(chunk))
            remaining -= len(chunk)
            if remaining < 0:
                break
    except KeyError:
        # a clean-up took it
        return ""
    return "" if hasher.hexdigest() == blob.sha256 else "other bytes than its name says"


def check_lines(checked: SharedCheck) -> list[str]:
    """What a check found, in lines."""
    head = (
        f"{units.count(checked.words, 'signed object')} by {units.count(len(checked.signers), 'key')}, "
        f"{units.count(checked.files, 'file')}, {units.size(checked.size)}: {len(checked.wrong)} wrong"
    )
    return [
        head,
        *(f"  {name}: {reason}" for name, reason in checked.wrong),
        *(f"  {name}: {_NEWER}, left alone" for name in checked.newer),
    ]
