"""A folder that a step could write: its files read, listed and taken out."""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import io
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, NoReturn

from rocbase.errors import InputError, SandboxError
from rocbase.files.atomic import CHUNK
from rocbase.folders.listing import FolderEntry, Level, kind_of, shown
from rocwright.sandbox.untrusted.taking import copy, is_written

# Bytes that a report or a log may have, unless its reader says otherwise.
MOST_TEXT = 64 * 1024**2
# Bytes that an output may have: several times the largest that is known, an archive of all of ROCm.
MOST_OUTPUT = 64 * 1024**3
# What a walk looks at; the tree of torch has some 200,000 files, a full compiler cache a million.
MOST_ENTRIES = 10_000_000
MOST_FOUND = 10_000
# Folders within folders that a walk goes down; each holds a file descriptor open.
MOST_DEPTH = 128


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


@dataclass(frozen=True, slots=True)
class Untrusted:
    """A folder whose contents a step could write, and the step's name, for messages.

    The folder itself lies where no step can exchange it. Every method raises SandboxError for what must not
    be opened, and FileNotFoundError for a name that is not there.
    """

    folder: Path
    by: str

    def open(self, name: str, limit: int = MOST_OUTPUT) -> BufferedReader:
        """A regular file of at most `limit` bytes, open; reading raises where it grows past that."""
        with self._parent(name) as (parent, last):
            return BufferedReader(_Bounded(self._descriptor(parent, last, name, limit), self, name, limit))

    def read_bytes(self, name: str, limit: int = MOST_TEXT) -> bytes:
        with self.open(name, limit) as file:
            return file.read()

    def read_text(self, name: str, limit: int = MOST_TEXT) -> str:
        """The text of a file; bytes that are not UTF-8 are replaced."""
        return self.read_bytes(name, limit).decode(errors="replace")

    def stat(self, name: str) -> os.stat_result:
        """lstat of what lies there, whatever it is."""
        with self._parent(name) as (parent, last):
            return os.stat(last, dir_fd=parent, follow_symlinks=False)

    def walk(
        self, limit: int = MOST_ENTRIES, depth: int = MOST_DEPTH, *, strict: bool = True, start: str = ""
    ) -> Iterator[FolderEntry]:
        """Everything below the folder, or below a folder `start` in it, each folder before what it holds;
        links are told, not followed.

        Without `strict`, what lies deeper than `depth` or cannot be looked at is left out; with it, it
        raises.
        """
        count = 0
        todo = [Level(self._inner(start) if start else self._root(), start)]
        try:
            while todo:
                level = todo[-1]
                try:
                    entry = level.next()
                except OSError as error:
                    self._unless(strict, error, level.path or ".")
                    continue
                if entry is None:
                    todo.pop().close()
                    continue
                count += 1
                if count > limit:
                    self._refuse(f"more than {limit:,} files", "", "no step may leave that many")
                yield entry
                if entry.is_folder and len(todo) <= depth:
                    try:
                        todo.append(Level(self._into(level.descriptor, entry.name), entry.path))
                    except FileNotFoundError:
                        continue
                    except OSError as error:
                        self._unless(strict, error, entry.path)
                elif entry.is_folder and strict:
                    self._refuse("a folder", entry.path, f"it is nested more than {depth} folders deep")
        finally:
            for level in todo:
                level.close()

    def matches(
        self, pattern: str, limit: int = MOST_ENTRIES, maximum: int = MOST_FOUND
    ) -> list[FolderEntry]:
        """At most so many that a glob of one or more parts matches, sorted; `parent` of these is closed.

        A part matches within one folder, as fnmatch does; links are matched, not followed. At most `limit`
        are looked at in a folder.
        """
        parts = _parts(pattern)
        if parts is None:
            raise InputError(
                f"{shown(pattern)} is not a valid pattern for a step's output files",
                cause="it is absolute, empty or points outside the folder",
                next_step="correct the output pattern in the recipe",
                subject=self.by,
            )
        matched: list[FolderEntry] = []
        for entry in self._match(self._root(), "", parts, limit):
            matched.append(entry)
            if len(matched) > maximum:
                self._refuse(f"more than {maximum:,} files", pattern, "one file is expected")
        return sorted(matched, key=lambda entry: entry.path)

    def take(self, name: str, into: Path, limit: int = MOST_OUTPUT) -> Path:
        """Move a regular file out, to the new path `into` in a folder of the caller's; gives `into`.

        It then belongs to the caller, and nobody else can write to it: where it has other names, somebody has
        it open for writing, or `into` is on another disk, it is copied.
        """
        last = name.rpartition("/")[2]
        if not last.isprintable():
            self._refuse("a file", name, "its name has control characters, or is not UTF-8")
        with self._parent(name) as (parent, last):
            descriptor = self._descriptor(parent, last, name, limit)
            try:
                if not self._moved(parent, last, descriptor, into):
                    copy(_Bounded(os.dup(descriptor), self, name, limit), into)
                    with contextlib.suppress(OSError):
                        os.unlink(last, dir_fd=parent)
            finally:
                os.close(descriptor)
        return into

    def make_folders(self, name: str) -> None:
        """A folder, and those above it, where they are not there yet; for their owner alone."""
        parts = name.split("/")
        for number in range(1, len(parts) + 1):
            above = "/".join(parts[:number])
            with self._parent(above) as (parent, last):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(last, 0o700, dir_fd=parent)
                try:
                    os.close(self._into(parent, last))
                except OSError as error:
                    self._refuse_unopened(error, above, self._kind(parent, last))

    def _moved(self, parent: int, last: str, descriptor: int, into: Path) -> bool:
        """Whether the open file is now at `into`; it is put there only where nothing else leads to it."""
        status = os.fstat(descriptor)
        if status.st_nlink != 1 or status.st_dev != into.parent.stat().st_dev:
            return False
        if os.geteuid() not in {0, status.st_uid}:
            return False
        if status.st_uid != os.geteuid():
            os.fchown(descriptor, os.geteuid(), os.getegid())
        os.fchmod(descriptor, 0o644)
        if is_written(descriptor):
            return False
        try:
            os.rename(last, into, src_dir_fd=parent)
        except OSError:
            return False
        moved = into.lstat()
        if not os.path.samestat(moved, os.fstat(descriptor)) or moved.st_nlink != 1:
            with contextlib.suppress(OSError):
                into.unlink()
            self._refuse("a file", last, "it was replaced while it was being read")
        return True

    def _match(self, folder: int, path: str, parts: list[str], limit: int) -> Iterator[FolderEntry]:
        level = Level(folder, path)
        try:
            for _ in range(limit):
                entry = level.next()
                if entry is None:
                    return
                if not fnmatch.fnmatchcase(entry.name, parts[0]):
                    continue
                if len(parts) == 1:
                    yield entry
                elif entry.is_folder:
                    with contextlib.suppress(FileNotFoundError):
                        yield from self._match(self._enter(folder, entry), entry.path, parts[1:], limit)
            self._refuse(f"more than {limit:,} files", path, "no step may leave that many")
        except OSError as error:
            self._refuse_unopened(error, path or ".")
        finally:
            level.close()

    def _enter(self, folder: int, entry: FolderEntry) -> int:
        try:
            return self._into(folder, entry.name)
        except FileNotFoundError:
            raise
        except OSError as error:
            self._refuse_unopened(error, entry.path)

    def _inner(self, name: str) -> int:
        with self._parent(name) as (parent, last):
            try:
                return self._into(parent, last)
            except FileNotFoundError:
                raise
            except OSError as error:
                self._refuse_unopened(error, name, self._kind(parent, last))

    def _root(self) -> int:
        return os.open(self.folder, _FOLDER)

    @staticmethod
    def _into(parent: int, name: str) -> int:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)

    @contextlib.contextmanager
    def _parent(self, name: str) -> Iterator[tuple[int, str]]:
        """The open folder in which the last part of a path lies, and that part."""
        parts = _parts(name)
        if parts is None:
            self._refuse("a name", name, "it is absolute, empty or points outside the folder")
        descriptor = self._root()
        try:
            for number, part in enumerate(parts[:-1], 1):
                try:
                    child = self._into(descriptor, part)
                except FileNotFoundError:
                    raise
                except OSError as error:
                    self._refuse_unopened(error, "/".join(parts[:number]), self._kind(descriptor, part))
                os.close(descriptor)
                descriptor = child
            try:
                yield descriptor, parts[-1]
            except OSError as error:
                if error.errno in (errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES, errno.EPERM):
                    self._refuse_unopened(error, name)
                raise
        finally:
            os.close(descriptor)

    def _descriptor(self, parent: int, last: str, name: str, limit: int) -> int:
        """The file's descriptor; it is looked at before it is opened: to open a device can do something."""
        self._check(os.stat(last, dir_fd=parent, follow_symlinks=False), name, limit)
        try:
            descriptor = os.open(last, _FILE, dir_fd=parent)
        except FileNotFoundError:
            raise
        except OSError as error:
            self._refuse_unopened(error, name)
        try:
            self._check(os.fstat(descriptor), name, limit)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _check(self, status: os.stat_result, name: str, limit: int) -> None:
        if not stat.S_ISREG(status.st_mode):
            self._refuse(kind_of(status), name, "only regular files are read")
        if status.st_mode & (stat.S_ISUID | stat.S_ISGID):
            self._refuse("a file", name, "it has a setuid or setgid bit")
        if status.st_size > limit:
            self._too_large(name, status.st_size, limit)

    def _too_large(self, name: str, size: int, limit: int) -> NoReturn:
        self._refuse("a file", name, f"it has {size:,} bytes, at most {limit:,} are read")

    @staticmethod
    def _kind(parent: int, name: str) -> str:
        try:
            return kind_of(os.stat(name, dir_fd=parent, follow_symlinks=False))
        except OSError:
            return "something"

    def _unless(self, strict: bool, error: OSError, name: str) -> None:
        if strict and not isinstance(error, FileNotFoundError):
            self._refuse_unopened(error, name)

    def _refuse_unopened(self, error: OSError, name: str, kind: str = "something") -> NoReturn:
        self._refuse(kind, name, (error.strerror or str(error)).lower())

    def _refuse(self, kind: str, name: str, reason: str) -> NoReturn:
        suffix = f" as {shown(name)}" if name else ""
        raise SandboxError(
            f"{self.by} left {kind}{suffix} that rocwright refuses to open",
            cause=f"{reason}; in {self.folder}",
            next_step=f"check which files the commands of {self.by} write; if it did this on purpose, "
            "do not trust its source",
            subject=self.by,
        )


def _parts(name: str) -> list[str] | None:
    """The parts of a relative path; None for one that is absolute, empty or leads upwards."""
    if not name or name.startswith("/") or "\0" in name or not _is_encodable(name):
        return None
    parts = [part for part in name.split("/") if part not in ("", ".")]
    return parts if parts and ".." not in parts else None


def _is_encodable(name: str) -> bool:
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return True


class _Bounded(io.FileIO):
    """A file of which no byte past a bound is read, although it may grow."""

    def __init__(self, descriptor: int, source: Untrusted, name: str, limit: int) -> None:
        super().__init__(descriptor, "rb")
        self._source = source
        self._file = name
        self._most = limit

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer) or 0
        self._bound()
        return count

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            return self.readall()
        data = super().read(size) or b""
        self._bound()
        return data

    def readall(self) -> bytes:
        chunks = []
        while chunk := self.read(CHUNK):
            chunks.append(chunk)
        return b"".join(chunks)

    def _bound(self) -> None:
        if self.tell() > self._most:
            self._source._too_large(self._file, self.tell(), self._most)
