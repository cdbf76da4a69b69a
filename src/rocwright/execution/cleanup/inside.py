"""What lies in the home folder: how much of each kind, and what of it may go by the rules of the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rocwright.execution import compiler_cache
from rocwright.execution.cleanup.model import CleanupKind, Piece, Reclaimable, oldest
from rocwright.execution.workspace import Workspace
from rocwright.home import Home
from rocwright.sources.bases.tools import tools_key
from rocwright.store.gc import (
    Rubbish,
    changed_at,
    file_stats,
    folder_size,
    leftovers,
    names_of,
    rubbish,
    under_way,
)
from rocwright.store.model import Record, Store, inputs_of
from rocwright.store.shared_folder import Listed

RUN = "run.json"


def what_can_go(home: Home, store: Store, keep: set[str], days: float) -> Rubbish:
    """What the store and the folders beside it hold that is not needed: for `store gc` and `clean` alike."""
    busy = under_way(store)
    roots = [path for path in _unpacked(home) if not path.name.startswith(".")]
    # a tree that somebody changed and has not saved is no rubbish, however old
    stale = [path for path in leftovers(home, days) if not Workspace(path).unsaved()]
    stale = [path for path in stale if not any(key.startswith(path.name) for key in busy)]
    # nothing says which step a half-written file or root belongs to
    stale = [path for path in stale if not busy or path.parent == home.work]
    # apt may be at work in the tools root, of which no step tells
    needed, names = keep | _needs(store, busy) | {tools_key()}, names_of(store, busy)
    return rubbish(store, needed, days, [*roots, *stale], busy=bool(busy), names=names)


def left_by(home: Home, store: Store, keep: set[str], keys: set[str]) -> Rubbish:
    """Return what these steps left that no plan needs, however new: an interrupted build has no plan."""
    records = [entry.record for entry in store.local.records() if entry.record is not None]
    alike = keys | {record.content_key for record in records if record.key in keys}
    others = {record.key for record in records if record.key not in alike}
    found = what_can_go(home, store, keep | others, 0)
    files = {output.sha256 for record in records if record.key in found.records for output in record.outputs}
    blobs = tuple(blob for blob in found.blobs if blob in files)
    folders = [Path(folder) for folder in found.folders]
    folders = [path for path in folders if path.name in files or path.name in {key[:16] for key in keys}]
    sizes = [file.size for file in store.local.files() if file.name in blobs]
    return Rubbish(
        records=found.records,
        blobs=blobs,
        folders=tuple(str(path) for path in folders),
        size=sum(sizes) + sum(folder_size(path) for path in folders),
    )


def _needs(store: Store, keys: set[str]) -> set[str]:
    """These steps and all that they are made from."""
    reached: set[str] = set()
    todo = list(keys)
    while todo:
        key = todo.pop()
        if key in reached:
            continue
        reached.add(key)
        todo += inputs_of(store, key)
    return reached


def _unpacked(home: Home) -> list[Path]:
    return _folders(home.roots)


def find_kept(kind: CleanupKind, home: Home, store: Store, removable: Rubbish) -> Reclaimable:
    """What the store, and the folders of unpacked roots, hold of a kind of steps."""
    entries = [(entry.written, entry.record) for entry in store.local.records() if entry.record is not None]
    own = {record.key: (written, record) for written, record in entries if record.kind in kind.steps}
    every = {output.sha256 for _, record in entries for output in record.outputs}
    files = {file.name: file for file in store.local.files()}
    mine = {output.sha256 for _, record in own.values() for output in record.outputs} & files.keys()
    pieces = [*_records(kind, own, removable, files)]
    if "run" in kind.steps:
        loose = [sha256 for sha256 in files if sha256 not in every]
        mine |= set(loose)
        pieces += [
            Piece(kind=kind.name, name=f"file {file.name[:12]}", size=file.size, used=file.written)
            for file in map(files.__getitem__, set(loose) & set(removable.blobs))
        ]
    folders = _unpacked(home) if "base" in kind.steps else []
    pieces += [_folder(kind, path) for path in folders if str(path) in removable.folders]
    used = [written for written, _ in own.values()] + [path.lstat().st_ctime for path in folders]
    return Reclaimable(
        kind=kind.name,
        holds=kind.holds,
        again=kind.again,
        size=sum(files[digest].size for digest in mine) + sum(folder_size(path) for path in folders),
        count=len(mine) + len(folders),
        used=max(used, default=0),
        seconds=sum(record.seconds for _, record in own.values() if record.key in removable.records),
        pieces=tuple(pieces),
    )


def _records(
    kind: CleanupKind,
    own: Mapping[str, tuple[float, Record]],
    removable: Rubbish,
    files: Mapping[str, Listed],
) -> Iterator[Piece]:
    """A piece for each record that may go; a file that several name counts for the one used last."""
    free = set(removable.blobs)
    going = [own[key] for key in removable.records if key in own]
    for written, record in sorted(going, key=lambda pair: -pair[0]):
        mine = {output.sha256 for output in record.outputs} & free
        free -= mine
        size = sum(files[digest].size for digest in mine)
        yield Piece(kind=kind.name, name=f"{record.step} {record.key}", size=size, used=written)


def _folder(kind: CleanupKind, path: Path) -> Piece:
    return Piece(kind=kind.name, name=str(path), size=folder_size(path), used=path.lstat().st_ctime)


def find_work(kind: CleanupKind, home: Home, store: Store, removable: Rubbish) -> Reclaimable:
    """Folders of shells, of failed builds, and what kills left."""
    folders = leftovers(home, float("-inf"))
    used = [changed_at(path) for path in folders]
    return Reclaimable(
        kind=kind.name,
        holds=kind.holds,
        again=kind.again,
        size=sum(folder_size(path) for path in folders),
        count=len(folders),
        used=max(used, default=0),
        pieces=tuple(
            Piece(kind=kind.name, name=str(path), size=folder_size(path), used=changed_at(path))
            for path in folders
            if str(path) in removable.folders
        ),
    )


def find_cache(kind: CleanupKind, home: Home, days: float) -> Reclaimable:
    """The compiler caches: trust domains that no step used since."""
    used = {domain: compiler_cache.last_used(domain) for domain in compiler_cache.domains(home)}
    pieces = tuple(
        Piece(kind=kind.name, name=str(folder), size=folder_size(folder), used=last_used)
        for folder, last_used in used.items()
    )
    return Reclaimable(
        kind=kind.name,
        holds=kind.holds,
        again=kind.again,
        size=sum(piece.size for piece in pieces),
        count=len(pieces),
        used=max(used.values(), default=0),
        pieces=tuple(piece for piece in pieces if piece.used < oldest(days)),
    )


def find_files(kind: CleanupKind, groups: dict[Path, list[Path]], days: float, *, spare: bool) -> Reclaimable:
    """Files that go in groups, by the name of each: all of a group, or none while any of it is young.

    With `spare` nothing goes: somebody may be writing.
    """
    sizes = {name: sum(folder_size(path) for path in paths) for name, paths in groups.items()}
    used = {name: max(map(changed_at, paths)) for name, paths in groups.items()}
    return Reclaimable(
        kind=kind.name,
        holds=kind.holds,
        again=kind.again,
        size=sum(sizes.values()),
        count=len(groups),
        used=max(used.values(), default=0),
        pieces=tuple(
            Piece(kind=kind.name, name=str(name), size=sizes[name], used=used[name])
            for name in groups
            if used[name] < oldest(days) and not spare
        ),
    )


def log_files(home: Home) -> dict[Path, list[Path]]:
    """The logs of each run, by its folder; its record is none of them, for it is the history."""
    runs = {run: [path for path in sorted(run.glob("*")) if _is_log(path)] for run in home.runs.glob("*")}
    return {run: logs for run, logs in sorted(runs.items()) if logs and not run.is_symlink()}


def _is_log(path: Path) -> bool:
    return path.name != RUN and path.is_file() and not path.is_symlink()


def find_folders(kind: CleanupKind, folders: Iterable[Path], days: float) -> Reclaimable:
    """Folders that go whole; each was used when a file in it was last written."""
    stats_by_folder = {folder: [*file_stats(folder)] for folder in folders}
    pieces = tuple(
        Piece(
            kind=kind.name,
            name=str(folder),
            size=sum(stat.st_size for stat in stats),
            used=max((stat.st_ctime for stat in stats), default=folder.lstat().st_ctime),
        )
        for folder, stats in stats_by_folder.items()
    )
    return Reclaimable(
        kind=kind.name,
        holds=kind.holds,
        again=kind.again,
        size=sum(piece.size for piece in pieces),
        count=len(pieces),
        used=max((piece.used for piece in pieces), default=0),
        pieces=tuple(piece for piece in pieces if piece.used < oldest(days)),
    )


def package_lists(home: Home) -> list[Path]:
    """The private apt folders, one a suite."""
    return _folders(home.apt)


def _folders(place: Path) -> list[Path]:
    return [path for path in sorted(place.glob("*")) if path.is_dir() and not path.is_symlink()]


def index_files(home: Home) -> dict[Path, list[Path]]:
    """What is known of the wheels of each folder that was served."""
    return {path: [path] for path in sorted(home.indexes.glob("*")) if not path.is_symlink()}
