"""What a store holds, in figures; whether it is whole; what can go."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from rocwright.home import Home
from rocwright.models import Frozen
from rocwright.store.local import LocalStore
from rocwright.store.model import DamagedBlobError, Record

DAY = 86400.0


class Usage(Frozen):
    """Bytes kept for a kind of step, and in how many files."""

    kind: str
    files: int
    size: int


def usage(store: LocalStore) -> list[Usage]:
    """Bytes by the kind of step that needs them; a file needed by several counts once, for the first."""
    sizes = dict(store.blobs())
    found: defaultdict[str, list[int]] = defaultdict(list)
    for record in store.records():
        for output in record.outputs:
            if output.sha256 in sizes:
                found[record.kind].append(sizes.pop(output.sha256))
    if sizes:
        found["no step"] = list(sizes.values())
    return [Usage(kind=kind, files=len(all_), size=sum(all_)) for kind, all_ in sorted(found.items())]


class Verdict(Frozen):
    """What a look at every file of the store found."""

    files: int
    size: int
    damaged: tuple[str, ...]
    incomplete: tuple[str, ...]


def check_whole(store: LocalStore, on_file: Callable[[int], None] = lambda size: None) -> Verdict:
    """Read every file; the damaged are moved aside, records whose outputs are gone are dropped."""
    damaged, files, total = [], 0, 0
    for sha256, size in list(store.blobs()):
        files, total = files + 1, total + size
        try:
            store.verified(sha256)
        except DamagedBlobError:
            damaged.append(sha256)
        on_file(size)
    incomplete = [record for record in store.records() if not _whole(store, record)]
    for record in incomplete:
        store.forget(record.key)
    names = tuple(f"{record.step} {record.key[:12]}" for record in incomplete)
    return Verdict(files=files, size=total, damaged=tuple(damaged), incomplete=names)


def _whole(store: LocalStore, record: Record) -> bool:
    return all(store.has(output.sha256, output.size) for output in record.outputs)


class Rubbish(Frozen):
    """What a clean-up would remove: records not needed any more, files that no record needs, old roots."""

    records: tuple[str, ...]
    blobs: tuple[str, ...]
    folders: tuple[str, ...]
    size: int


def leftovers(home: Home, days: float) -> list[Path]:
    """What failures and kills left, older than `days`: build folders, half-unpacked roots, damaged files."""
    oldest = time.time() - days * DAY
    found = [*home.work.glob("*"), *home.roots.glob(".unpacking-*")]
    found += [*(home.store / "tmp").glob("*"), *(home.store / "damaged").glob("*")]
    return sorted(path for path in found if path.lstat().st_mtime < oldest)


def rubbish(store: LocalStore, keep: set[str], days: float, folders: list[Path]) -> Rubbish:
    """Records older than `days` whose keys are not in `keep`, and the files that only they need.

    `folders` are unpacked root file systems, named by the digest of their archive: rubbish when that is;
    and leftovers of builds, whose names are no such digest.
    """
    oldest = time.time() - days * DAY
    kept: list[Record] = []
    gone: list[Record] = []
    for record in store.records():
        fresh = _modified(store, record) >= oldest
        (kept if record.key in keep or record.content_key in keep or fresh else gone).append(record)
    needed = {output.sha256 for record in kept for output in record.outputs}
    blobs = [(sha256, size) for sha256, size in store.blobs() if sha256 not in needed]
    old = [path for path in folders if path.name not in needed]
    return Rubbish(
        records=tuple(record.key for record in gone),
        blobs=tuple(sha256 for sha256, _ in blobs),
        folders=tuple(str(path) for path in old),
        size=sum(size for _, size in blobs) + sum(_folder_size(path) for path in old),
    )


def _modified(store: LocalStore, record: Record) -> float:
    try:
        return (store.path / "records" / record.key[:2] / f"{record.key}.json").stat().st_mtime
    except FileNotFoundError:
        return 0


def _folder_size(folder: Path) -> int:
    if not folder.is_dir():
        return folder.stat().st_size
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_symlink() and path.is_file())


def remove(store: LocalStore, found: Rubbish, remove_folder: Callable[[Path], None]) -> None:
    """Remove what `rubbish` found."""
    for key in found.records:
        store.forget(key)
    for sha256 in found.blobs:
        store.remove_blob(sha256)
    for folder in found.folders:
        remove_folder(Path(folder))
