"""What a store holds, in figures; whether it is whole; what can go."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from filelock import FileLock

from rocbase.model import Frozen
from rocwright.home import Home
from rocwright.sandbox.untrusted import Untrusted
from rocwright.store.leases import claimed, cleaning, locked_steps, ours, running
from rocwright.store.model import DamagedBlobError, Record, Store, definition, in_store, is_key, records

DAY = 86400.0

# What the name of an unpacked root's manifest ends with, which lies beside the root's folder.
MANIFEST = ".manifest"

# Seconds after which a file that a running step has put here is named by a record for sure.
ABOUT_TO_BE_NAMED = 3600.0


class Usage(Frozen):
    """Bytes kept for a kind of step, and in how many files."""

    kind: str
    files: int
    size: int


def usage(store: Store) -> list[Usage]:
    """Bytes by the kind of step that needs them; a file needed by several counts once, for the first."""
    sizes = {file.name: file.size for file in store.local.files()}
    by_kind: defaultdict[str, list[int]] = defaultdict(list)
    for record in records(store):
        for output in record.outputs:
            if output.sha256 in sizes:
                by_kind[record.kind].append(sizes.pop(output.sha256))
    if sizes:
        by_kind["no step"] = list(sizes.values())
    return [Usage(kind=kind, files=len(all_), size=sum(all_)) for kind, all_ in sorted(by_kind.items())]


class StoreCheck(Frozen):
    """What a look at every file of the store found.

    `records` are the keys of damaged records, `unknown` those of records that a newer rocwright wrote.
    """

    files: int
    size: int
    damaged: tuple[str, ...]
    incomplete: tuple[str, ...]
    records: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def check_whole(store: Store, on_file: Callable[[int], None] = lambda size: None) -> StoreCheck:
    """Read every file and record; the damaged are moved aside, records whose outputs are gone are dropped."""
    damaged, files, total = [], 0, 0
    entries = list(store.local.records())
    for file in list(store.local.files()):
        files, total = files + 1, total + file.size
        try:
            store.opened(file.name).close()
        except DamagedBlobError:
            damaged.append(file.name)
        on_file(file.size)
    incomplete = [record for record in records(store) if not in_store(store, record)]
    for record in incomplete:
        store.local.remove("record", record.key)
    names = tuple(f"{record.step} {record.key[:12]}" for record in incomplete)
    return StoreCheck(
        files=files,
        size=total,
        damaged=tuple(damaged),
        incomplete=names,
        records=tuple(entry.key for entry in entries if entry.problem == "damaged"),
        unknown=tuple(entry.key for entry in entries if entry.problem == "newer"),
    )


class Rubbish(Frozen):
    """What a clean-up would remove: records not needed any more, files that no record needs, old roots."""

    records: tuple[str, ...]
    blobs: tuple[str, ...]
    folders: tuple[str, ...]
    size: int


def leftovers(home: Home, days: float) -> list[Path]:
    """What failures and kills left, older than `days`: build folders, second builds, half-unpacked roots,
    damaged files."""
    oldest = time.time() - days * DAY
    paths = [*home.work.glob("*"), *home.second.glob("*"), *home.roots.glob(".unpacking-*")]
    paths += [*(home.store / "tmp").glob("*"), *(home.store / "damaged").glob("*")]
    return sorted(path for path in paths if not path.is_symlink() and changed_at(path) < oldest)


def changed_at(path: Path) -> float:
    """When a file or folder was last changed, in seconds since the epoch; now, if it went meanwhile."""
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return time.time()


def under_way(store: Store) -> set[str]:
    """The keys of steps that run now, or whose shell is open: their locks are held; and of all steps that a
    running build has to do with."""
    return locked_steps(store).union(*running(store))


def names_of(store: Store, keys: set[str]) -> set[str]:
    """The names of steps under way: those of running builds, and those whose definition the store has."""
    names = {name for steps in running(store) for name in steps.values()}
    return names | {str(definition(store, key).get("name", "")) for key in keys}


def rubbish(
    store: Store,
    keep: set[str],
    days: float,
    folders: list[Path],
    *,
    busy: bool = False,
    names: Collection[str] = (),
) -> Rubbish:
    """Records older than `days` whose keys are not in `keep`, and the files that only they need.

    `folders` are unpacked root file systems, named by the digest of their archive: rubbish when that is;
    and leftovers of builds, whose names are no such digest. A file that no record names may be that of a
    step which is about to write its record: it stays where one is `busy`, and while it is young. A step of
    one of these `names` may be about to find that its inputs are those of an earlier run.
    """
    oldest = time.time() - days * DAY
    retained: list[Record] = []
    expired: list[Record] = []
    newer = False
    for entry in store.local.records():
        newer = newer or entry.problem == "newer"
        if (record := entry.record) is not None:
            protected = record.key in keep or record.content_key in keep or _may_be_found(record, names)
            (retained if protected or entry.written >= oldest else expired).append(record)
    needed = {output.sha256 for record in retained for output in record.outputs}
    named = {output.sha256 for record in expired for output in record.outputs}
    files = list(store.local.files())
    if newer:
        # nobody here knows which files those records need
        needed |= {file.name for file in files}
    blobs = [
        file
        for file in files
        if file.name not in needed and (file.name in named or (not busy and file.written < oldest))
    ]
    old = [path for path in folders if path.name not in needed]
    return Rubbish(
        records=tuple(record.key for record in expired),
        blobs=tuple(file.name for file in blobs),
        folders=tuple(str(path) for path in old),
        size=sum(file.size for file in blobs) + sum(folder_size(path) for path in old),
    )


def _may_be_found(record: Record, names: Collection[str]) -> bool:
    """Whether it is what a step of these names is found by when its inputs are those of an earlier run."""
    return record.key == record.content_key and record.step in names


def folder_size(folder: Path) -> int:
    """Bytes of the files in a folder, or of a file; links count nothing and are not followed."""
    return sum(status.st_size for status in file_stats(folder))


def file_stats(folder: Path) -> Iterator[os.stat_result]:
    """What is known of each file in a folder, or of the file; what goes meanwhile is left out.

    A step may write there while it is looked at: what it nests too deep for a walk is left out as well.
    """
    with contextlib.suppress(OSError):
        if folder.is_dir():
            entries = Untrusted(folder, "a step").walk(limit=sys.maxsize, strict=False)
            yield from (entry.stat for entry in entries if entry.is_file)
        elif stat.S_ISREG((status := folder.lstat()).st_mode):
            yield status


def remove(
    store: Store,
    garbage: Rubbish,
    remove_folder: Callable[[Path], None],
    on_folder: Callable[[Path], None] = lambda folder: None,
) -> None:
    """Remove what `rubbish` found, but what is in use or needed by now; a kill leaves the store whole."""
    with cleaning(store):
        _remove(store, garbage, remove_folder, on_folder)


def _remove(
    store: Store,
    garbage: Rubbish,
    remove_folder: Callable[[Path], None],
    on_folder: Callable[[Path], None],
) -> None:
    started = time.time()
    busy = under_way(store)
    names = names_of(store, busy)
    old = set(garbage.records)
    for record in records(store):
        if record.key in old:
            with claimed(store, record.key) as free:
                if free and record.key not in busy and not _may_be_found(record, names):
                    store.local.remove("record", record.key)
    # somebody may have wanted one of them since
    needed = {output.sha256 for record in records(store) for output in record.outputs}
    young, unneeded = started - (ABOUT_TO_BE_NAMED if busy else 0), set(garbage.blobs) - needed
    for file in store.local.files():
        if file.name in unneeded and file.written < young:
            store.local.remove("file", file.name)
    for folder in map(Path, garbage.folders):
        with _claimed(store, folder) as free:
            wanted_now = any(key.startswith(folder.name) for key in busy)
            if free and not wanted_now and folder.name not in needed and not folder.is_symlink():
                on_folder(folder)
                remove_folder(_aside(folder))


def _claimed(store: Store, folder: Path) -> AbstractContextManager[bool]:
    """Whether nobody unpacks this root, or works on the step whose folder it is; held until the end."""
    if is_key(folder.name):
        return ours([FileLock(folder.with_name(f"{folder.name}.lock"))])
    if not re.fullmatch(r"[0-9a-f]{16}", folder.name):
        return nullcontext(True)
    return claimed(store, folder.name)


def _aside(folder: Path) -> Path:
    """A root file system is there whole or not at all: its name goes first, then its files."""
    if not is_key(folder.name) or not folder.is_dir():
        return folder
    aside = folder.with_name(f".unpacking-{folder.name}-{time.time_ns()}")
    folder.with_name(f"{folder.name}{MANIFEST}").unlink(missing_ok=True)
    folder.rename(aside)
    return aside
