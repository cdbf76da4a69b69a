"""Write a folder's index as files: what a page links to goes before it, the page of all projects last."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rocbase.errors import InputError
from rocbase.files.atomic import CHUNK, atomic_file, write_atomic
from rocbase.folders.links import through_no_link
from rocwheel.wheels.index.look import Look, Progress, look
from rocwheel.wheels.index.model import MARKER, PAGES, Listed, Marker, Wheel, is_for

METADATA = ".metadata"
"""The ending of a wheel's address that gives its METADATA (PEP 658)."""

HTML_NAME, JSON_NAME = "index.html", "index.v1_json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What had to be done: wheels copied, pages and metadata files written, files removed; all views."""

    views: tuple[str, ...] = ()
    wheels: int = 0
    pages: int = 0
    removed: int = 0


def simple(view: str) -> str:
    """Return the folder of a view's pages; the empty view is that of everything."""
    return f"{view}/{PAGES}/" if view else f"{PAGES}/"


def write(
    folder: Path,
    out: Path,
    *,
    everything: bool = False,
    by_gpu: bool = True,
    ours: bool = False,
    progress: Progress = lambda completed, total: None,
) -> tuple[Look, Written]:
    """Write the index of the wheels in `folder` to `out`; with `everything` compare every page.

    Wheels that do not lie below `out` are linked or copied to it. Without `by_gpu` there is no view for each
    GPU. After a kill at any moment the next run comes to the same end. Raises InputError if `out` is a link
    or, unless it is `ours`, holds pages of others; CheckError if a wheel changed meanwhile.
    """
    place = through_no_link(out / PAGES, out)
    marker = Marker.load(place / MARKER)
    wheels_from = _wheels_from(folder, out)
    foreign = (
        marker.wheels_from not in (None, wheels_from) if marker else place.is_dir() and any(place.iterdir())
    )
    if foreign and not ours:
        raise InputError(
            f"{place} already exists, and was not written from {folder}",
            cause="it is another tool's index, that of another folder, or holds files of your own",
            next_step="move it away, or give another folder with --out",
            subject=str(place),
        )
    place.mkdir(parents=True, exist_ok=True)
    with _locked(place):
        marker = Marker.load(place / MARKER) or Marker(rocwheel="")
        snapshot = look(folder, marker.wheels, progress, by_gpu=by_gpu)
        writer = _Writer(folder, out, wheels_from, snapshot, marker)
        return snapshot, writer.run(everything)


class _Writer:
    """One run: brings `out` from the state that `marker` describes to the one that `snapshot` asks for."""

    def __init__(self, folder: Path, out: Path, wheels_from: str, snapshot: Look, marker: Marker) -> None:
        self.folder, self.out, self.marker = folder, out, marker
        self.projects = snapshot.projects
        self.listed = [listed for project in self.projects.values() for listed in project]
        self.views = tuple(sorted({name for listed in self.listed for name in listed.wheel.targets or ()}))
        self.next = Marker(
            wheels_from=wheels_from,
            views=self.views,
            yanks=tuple(sorted((*release, reason) for release, reason in snapshot.yanks.items())),
            wheels=snapshot.wheels,
        )
        self.keys: set[str] = set()
        """Every page of the new state."""

    def run(self, everything: bool) -> Written:
        """Write what differs, and remove what nothing links to any more."""
        changed = self._changed(everything)
        if changed is not None and not changed:
            return Written(views=self.views)
        unfinished = self.next.model_copy(
            update={
                "views": tuple({*self.marker.views, *self.views}),
                "wheels": tuple({*self.marker.wheels, *self.next.wheels}),
            }
        )
        unfinished.save(self.out / PAGES / MARKER)
        wheels = pages = 0
        for listed in self.listed:
            if changed is None or listed.wheel.project in changed:
                wheels += self._copy(listed.wheel)
                pages += self._put_metadata(listed.wheel)
        for view in self.views:
            pages += self._put_view(view, changed if view in self.marker.views else None)
        pages += self._put_view("", changed)
        removed = sum(map(self._remove, sorted(self._leftovers())))
        self.next.model_copy(update={"whole": True}).save(self.out / PAGES / MARKER)
        return Written(views=self.views, wheels=wheels, pages=pages, removed=removed)

    def _changed(self, everything: bool) -> set[str] | None:
        """Return the projects whose pages may change, None for all."""
        root = self.out / PAGES
        if everything or not self.marker.whole or not (root / HTML_NAME).is_file():
            return None
        wheels = {*self.marker.wheels} ^ {*self.next.wheels}
        yanks = {*self.marker.yanks} ^ {*self.next.yanks}
        lost = {project for project in self.projects if not (root / project / HTML_NAME).is_file()}
        return lost | {wheel.project for wheel in wheels} | {project for project, _, _ in yanks}

    def _put_view(self, view: str, changed: set[str] | None) -> int:
        from rocwheel.wheels.index.pages import project_pages, root_pages

        shown: dict[str, list[Listed]] = {}
        for project, wheels in self.projects.items():
            shown[project] = [entry for entry in wheels if not view or is_for(entry.wheel.targets, view)]
        names = [project for project, wheels in shown.items() if wheels]
        count = 0
        for project in names:
            folder = f"{simple(view)}{project}/"
            self.keys |= {folder + HTML_NAME, folder + JSON_NAME}
            if changed is None or project in changed:
                pages = project_pages(project, shown[project], self._key, 3 if view else 2)
                count += self._put(folder + HTML_NAME, pages.html) + self._put(folder + JSON_NAME, pages.json)
        root = root_pages(names)
        self.keys |= {simple(view) + HTML_NAME, simple(view) + JSON_NAME}
        return (
            count
            + self._put(simple(view) + HTML_NAME, root.html)
            + self._put(simple(view) + JSON_NAME, root.json)
        )

    def _key(self, wheel: Wheel) -> str:
        """Return where a wheel lies, seen from the root of the index."""
        if not self.next.wheels_from:
            return f"{PAGES}/{wheel.project}/{wheel.filename}"
        return (PurePosixPath(self.next.wheels_from) / wheel.seen.path).as_posix()

    def _copy(self, wheel: Wheel) -> bool:
        if self.next.wheels_from:
            return False
        from rocwheel.wheels.index.examine import open_as_seen

        path = self._inside(self._key(wheel))
        with suppress(FileNotFoundError):
            status = path.lstat()
            unchanged = (status.st_size, status.st_mtime_ns) == (wheel.seen.size, wheel.seen.mtime_ns)
            if unchanged and stat.S_ISREG(status.st_mode):
                return False
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.unlink(missing_ok=True)
        with open_as_seen(self.folder, wheel.seen) as source:
            try:
                # of the open file: what has its name may be another by now
                os.link(f"/proc/self/fd/{source.fileno()}", part, follow_symlinks=True)
                part.replace(path)
            except OSError:
                with atomic_file(path) as target:
                    shutil.copyfileobj(source, target, CHUNK)
                os.utime(path, ns=(wheel.seen.mtime_ns, wheel.seen.mtime_ns))
        return True

    def _put_metadata(self, wheel: Wheel) -> bool:
        from rocwheel.wheels.index.examine import metadata

        return self._put(self._key(wheel) + METADATA, metadata(self.folder, wheel))

    def _put(self, key: str, data: bytes) -> bool:
        """Write a file; False if it is there with this content."""
        path = self._inside(key)
        if not path.is_symlink() and path.is_file() and path.read_bytes() == data:
            return False
        write_atomic(path, data)
        return True

    def _leftovers(self) -> Iterator[str]:
        for view in ("", *self.marker.views):
            for path in self._inside(simple(view)).glob("**/index.*"):
                key = path.relative_to(self.out).as_posix()
                if key not in self.keys and path.name in (HTML_NAME, JSON_NAME):
                    yield key
        files = {self._key(listed.wheel) for listed in self.listed}
        for key in {self._key(wheel) for wheel in self.marker.wheels} - files:
            yield key + METADATA
            if not self.next.wheels_from:
                yield key

    def _remove(self, key: str) -> bool:
        path = self._inside(key)
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        with suppress(OSError):  # the first folder that is not empty ends this
            for parent in path.relative_to(self.out).parents[:-1]:
                (self.out / parent).rmdir()
        return True

    def _inside(self, key: str) -> Path:
        """Return the path of a key. Raises InputError if it leads out of the index: markers can be forged."""
        parts = PurePosixPath(key).parts
        if ".." in parts or key.startswith("/"):
            raise InputError(
                f"{self.out / PAGES / MARKER} names a file outside of the index: {key[:200]}",
                cause="the file was changed by hand, or comes from somebody else",
                next_step=f"remove {self.out / PAGES / MARKER} and the pages next to it",
            )
        path = self.out / key
        through_no_link(path.parent, self.out)
        return path


def _wheels_from(folder: Path, out: Path) -> str:
    folder, out = folder.resolve(), out.resolve()
    return folder.relative_to(out).as_posix() if folder.is_relative_to(out) else ""


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other writers out. The folder itself is the lock: a file in it could be a stranger's link."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        with suppress(OSError):  # NFS locks no folders
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
