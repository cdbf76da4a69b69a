"""What is known of a folder's wheels, kept in SQLite so that only new files are read again.

A revision is a counter: everything that changes in one look at the folder carries its number, so that
whoever wrote pages at revision 7 asks for what changed since 7. A kill at any moment leaves what was
committed.
"""

from __future__ import annotations

import hashlib
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_version

from rocwheel.errors import InputError
from rocwheel.home import Home
from rocwheel.version import __version__
from rocwheel.wheels.index.examine import Problem, Seen, Span, Wheel

SCHEMA = f"5 {__version__}"
"""Another version of rocwright may read more out of a file: it reads all of them again."""

_TABLES = """
CREATE TABLE about (schema TEXT, name TEXT, revision INTEGER, whole INTEGER);
CREATE TABLE files (
    path TEXT PRIMARY KEY, size INTEGER, mtime_ns INTEGER, inode INTEGER,
    filename TEXT, sha256 TEXT, project TEXT, version TEXT, requires_python TEXT, metadata_sha256 TEXT,
    metadata_offset INTEGER, metadata_packed INTEGER, metadata_method INTEGER,
    targets TEXT, problem TEXT, revision INTEGER
) WITHOUT ROWID;
CREATE INDEX files_by_project ON files (project, targets) WHERE problem IS NULL;
CREATE INDEX files_by_name ON files (filename, sha256) WHERE problem IS NULL;
CREATE INDEX problems ON files (path) WHERE problem IS NOT NULL;
CREATE TABLE projects (name TEXT PRIMARY KEY, revision INTEGER) WITHOUT ROWID;
CREATE TABLE removed (path TEXT, filename TEXT, sha256 TEXT, revision INTEGER);
CREATE TABLE yanks (project TEXT, version TEXT, reason TEXT, PRIMARY KEY (project, version));
"""
_SEEN = "SELECT path, size, mtime_ns, inode FROM files"
_WHEELS = """
SELECT path, size, mtime_ns, inode, sha256, project, version, requires_python, metadata_sha256,
    metadata_offset, metadata_packed, metadata_method, targets, revision
FROM files WHERE problem IS NULL AND project = ? ORDER BY path
"""
_WHEEL = """
SELECT path, size, mtime_ns, inode, sha256, project, version, requires_python, metadata_sha256,
    metadata_offset, metadata_packed, metadata_method, targets
FROM files WHERE problem IS NULL AND filename = ? AND sha256 = ? ORDER BY path LIMIT 1
"""
_GO = """
INSERT INTO removed SELECT path, filename, sha256, ? FROM files WHERE path = ? AND problem IS NULL
"""
_CHANGE = """
INSERT OR REPLACE INTO projects SELECT project, ? FROM files WHERE path = ? AND problem IS NULL
"""


@dataclass(frozen=True, slots=True)
class Listed:
    """A wheel as pages tell it. `yanked` is the reason of its withdrawal, None where it is not withdrawn;
    `revision` that of the look that found it."""

    wheel: Wheel
    yanked: str | None
    revision: int


@dataclass(frozen=True, slots=True)
class Removed:
    """A file that was in the index and is not, or not with that content."""

    path: str
    filename: str
    sha256: str


def cache_file(folder: Path, home: Home | None = None) -> Path:
    """Where what is known of `folder` is kept on this machine."""
    name = hashlib.sha256(str(folder.resolve()).encode(errors="surrogateescape")).hexdigest()[:16]
    return (home or Home.default()).indexes / f"{name}.sqlite"


class Cache:
    """The open database. It can be made again: one that is damaged or of another schema is begun anew."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        try:
            self._db = self._open()
        except sqlite3.DatabaseError:
            for each in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
                each.unlink(missing_ok=True)
            self._db = self._open()

    def _open(self) -> sqlite3.Connection:
        # one connection may serve several threads, one after another
        db = sqlite3.connect(self.path, timeout=60, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            if db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
                db.executescript(f"BEGIN IMMEDIATE; {_TABLES}")
                db.execute("INSERT INTO about VALUES (?, ?, 0, 0)", (SCHEMA, uuid.uuid4().hex))
                db.execute("COMMIT")
            if db.execute("SELECT schema FROM about").fetchone() != (SCHEMA,):
                raise sqlite3.DatabaseError("another schema")
        except BaseException:
            db.close()
            raise
        return db

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it or nothing."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    # what is asked

    @property
    def name(self) -> str:
        """Another one for each database that was begun."""
        return str(self._db.execute("SELECT name FROM about").fetchone()[0])

    @property
    def revision(self) -> int:
        return int(self._db.execute("SELECT revision FROM about").fetchone()[0])

    @property
    def whole(self) -> bool:
        """Whether a look at the whole folder has ended."""
        return bool(self._db.execute("SELECT whole FROM about").fetchone()[0])

    def seen(self, paths: Iterable[str] | None = None) -> set[tuple[str, int, int, int]]:
        """Every file as it was when it was read, or some: what `Seen` holds, as plain tuples."""
        if paths is None:
            return set(self._db.execute(_SEEN))
        return {row for path in paths for row in self._db.execute(f"{_SEEN} WHERE path = ?", (path,))}

    def problems(self) -> list[Problem]:
        """Files that are left out; of two files with one name and other content, the later by path."""
        rows = self._db.execute("SELECT path, problem FROM files WHERE problem IS NOT NULL ORDER BY path")
        found = [Problem(*row) for row in rows]
        twice = self._db.execute(
            "SELECT filename FROM files INDEXED BY files_by_name WHERE problem IS NULL "
            "GROUP BY filename HAVING count(*) > 1"
        ).fetchall()
        for (name,) in twice:
            first, *others = self._db.execute(
                "SELECT path, sha256 FROM files WHERE filename = ? AND problem IS NULL ORDER BY path", (name,)
            )
            found += [
                Problem(
                    path,
                    f"{first[0]} has the same name, other content, and is the one listed; remove one",
                )
                for path, sha256 in others
                if sha256 != first[1]
            ]
        return found

    def projects(self) -> dict[str, list[frozenset[str] | None]]:
        """Every project that has wheels, with the different sets of targets that its wheels are for."""
        rows = self._db.execute(
            "SELECT DISTINCT project, targets FROM files INDEXED BY files_by_project WHERE problem IS NULL "
            "ORDER BY project"
        )
        found: dict[str, list[frozenset[str] | None]] = {}
        for project, targets in rows:
            found.setdefault(project, []).append(None if targets is None else frozenset(targets.split()))
        return found

    def wheels(self, project: str) -> list[Listed]:
        """The wheels of a project by path, each file name once."""
        rows = self._db.execute(_WHEELS, (project,))
        yanks = dict(self._db.execute("SELECT version, reason FROM yanks WHERE project = ?", (project,)))
        found: dict[str, Listed] = {}
        for *row, revision in rows:
            wheel = _wheel(row)
            yanked = yanks.get(canonicalize_version(wheel.version)) if yanks else None
            found.setdefault(wheel.filename, Listed(wheel, yanked, revision))
        return list(found.values())

    def wheel(self, sha256: str, filename: str) -> Wheel | None:
        """The wheel with this content and name."""
        row = self._db.execute(_WHEEL, (filename, sha256)).fetchone()
        return None if row is None else _wheel(row)

    def changed(self, since: int) -> list[str]:
        """Projects whose pages may be other than at revision `since`."""
        return [
            name for (name,) in self._db.execute("SELECT name FROM projects WHERE revision > ?", (since,))
        ]

    def removed(self, since: int) -> list[Removed]:
        """What went since revision `since`, and did not come back."""
        rows = self._db.execute("SELECT path, filename, sha256 FROM removed WHERE revision > ?", (since,))
        return [Removed(*row) for row in rows if self.wheel(row[2], row[1]) is None]

    def yanks(self) -> dict[tuple[str, str], str]:
        return {
            (project, version): reason for project, version, reason in self._db.execute("SELECT * FROM yanks")
        }

    def count(self) -> int:
        """How many wheels are listed."""
        return int(self._db.execute("SELECT count(*) FROM files WHERE problem IS NULL").fetchone()[0])

    # what is told; each in a transaction of the caller's

    def next_revision(self) -> int:
        self._db.execute("UPDATE about SET revision = revision + 1")
        return self.revision

    def set_whole(self) -> None:
        """Tell that a look at the whole folder has ended."""
        if not self.whole:
            self._db.execute("UPDATE about SET whole = 1")

    def drop(self, paths: Iterable[str], revision: int) -> None:
        """Files that are not there any more, or are others."""
        gone = list(paths)
        for statement in (_GO, _CHANGE):
            self._db.executemany(statement, [(revision, path) for path in gone])
        self._db.executemany("DELETE FROM files WHERE path = ?", [(path,) for path in gone])

    def keep(self, found: Iterable[tuple[Seen, Wheel | Problem]], revision: int) -> None:
        """What was read of files."""
        found = list(found)
        self._db.executemany(
            "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(*_row(seen, one), revision) for seen, one in found],
        )
        projects = {one.project for _, one in found if isinstance(one, Wheel)}
        self._touch(projects, revision)

    def set_yanks(self, yanks: Mapping[tuple[str, str], str], revision: int) -> None:
        before = self.yanks()
        changed = {key for key in before.keys() | yanks.keys() if before.get(key) != yanks.get(key)}
        self._db.execute("DELETE FROM yanks")
        self._db.executemany(
            "INSERT INTO yanks VALUES (?, ?, ?)", [(*key, why) for key, why in yanks.items()]
        )
        self._touch({project for project, _ in changed}, revision)

    def _touch(self, projects: Iterable[str], revision: int) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO projects VALUES (?, ?)", [(name, revision) for name in projects]
        )


def views_of(projects: Mapping[str, Iterable[frozenset[str] | None]]) -> tuple[str, ...]:
    """The targets that some wheel holds code for, of `Cache.projects`."""
    return tuple(sorted({name for sets in projects.values() for one in sets for name in one or ()}))


@contextmanager
def opened(folder: Path, home: Home | None = None) -> Iterator[Cache]:
    """The cache of a folder. Raises InputError where it is no folder."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a folder",
            cause="it does not exist, or is a file",
            next_step="give the folder that contains the wheels",
            subject=str(folder),
        )
    with closing(Cache(cache_file(folder, home))) as cache:
        yield cache


def _row(seen: Seen, one: Wheel | Problem) -> tuple[object, ...]:
    place = (seen.path, seen.size, seen.mtime_ns, seen.inode, seen.path.rpartition("/")[2])
    if isinstance(one, Problem):
        return (*place, "", "", "", "", "", 0, 0, 0, None, one.what)
    targets = None if one.targets is None else " ".join(one.targets)
    told = (one.sha256, one.project, one.version, one.requires_python, one.metadata_sha256)
    return (*place, *told, *one.metadata, targets, None)


def _wheel(row: Sequence[Any]) -> Wheel:
    sha256, project, version, requires_python, metadata_sha256, *span, targets = row[4:]
    return Wheel(
        seen=Seen(*row[:4]),
        sha256=sha256,
        project=project,
        version=version,
        requires_python=requires_python,
        metadata_sha256=metadata_sha256,
        metadata=Span(*span),
        targets=None if targets is None else tuple(targets.split()),
    )
