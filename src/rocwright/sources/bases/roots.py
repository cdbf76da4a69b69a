"""Root file systems, unpacked once a digest and kept for all sandboxes of this machine."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import subprocess
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import zstandard
from filelock import FileLock

from rocbase.errors import InternalError, OutOfDiskError
from rocbase.files.atomic import CHUNK, sha256_bytes, write_atomic
from rocbase.files.bounds import OverBoundError
from rocbase.folders import removal
from rocbase.processes import run as process
from rocwright.sources.bases.namespace import PLACE, give, in_namespace
from rocwright.store.gc import MANIFEST
from rocwright.store.model import DamagedBlobError, Store, chunks, is_key
from rocwright.store.packed import ChunkStream, unpacked

# How the names begin of roots that are not whole, or were set aside.
UNPACKING = ".unpacking-"


def unpacked_root(store: Store, sha256: str, folder: Path, on_line: Callable[[str], None]) -> Path:
    """The folder of the root file system whose archive has that digest, unpacked if it is not there yet.

    The archive is checked while it is unpacked, and the folder appears whole or not at all. What is there is
    used only if it is as it was unpacked; if not, it is moved aside and unpacked again, which is said.
    """
    target = folder / sha256
    if is_as_it_was(target):
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / f"{sha256}.lock"):
        if os.path.lexists(target):
            reason = changed(store, sha256, target)
            if not reason:
                return target
            on_line(f"base: the unpacked root file system was changed ({reason}): unpacked again")
            set_aside(target)
        on_line("base: unpacking the root file system")
        temporary = Path(tempfile.mkdtemp(dir=folder, prefix=UNPACKING))
        try:
            unpack_root(store, sha256, temporary)
            temporary.chmod(0o755)
            temporary.rename(target)
        except BaseException:
            remove_tree(temporary)
            raise
        look(target).write(manifest_of(target))
    return target


def changed(store: Store, sha256: str, target: Path, *, read_all: bool = False) -> str:
    """In which name, and how, an unpacked root is not as it was unpacked; "" where it is.

    It is compared with its manifest. Only where that is not there, or where nothing but inodes and the times
    of their last change differ (of a home that was copied), or with `read_all`, it is compared with its
    archive, byte by byte, and the manifest is written anew.
    """
    recorded = read_manifest(manifest_of(target))
    try:
        current = look(target) if not target.is_symlink() else None
    except OSError:
        current = None
    if current is None:
        return "it is no folder that can be read"
    if recorded is not None and recorded == current and not read_all:
        return ""
    if recorded is not None and (name := first_difference(recorded, current)):
        return name
    from rocwright.sources.bases.contents import fault

    if wrong := fault(store, sha256, target):
        return wrong
    if recorded != current:
        current.write(manifest_of(target))
    return ""


def changed_roots(store: Store, folder: Path) -> dict[Path, str]:
    """Unpacked roots that are not what their archives hold, with the first name in which each differs; they
    are moved aside. What the store has no archive of is compared with its manifest."""
    reasons: dict[Path, str] = {}
    for target in sorted(folder.glob("*")):
        if not is_key(target.name):
            continue
        with FileLock(folder / f"{target.name}.lock"):
            try:
                reason = changed(store, target.name, target, read_all=True)
            except (KeyError, DamagedBlobError):
                reason = (
                    "" if is_as_it_was(target) else "its archive is gone, and it is not as it was unpacked"
                )
            if reason:
                reasons[target] = reason
                set_aside(target)
    return reasons


def is_as_it_was(target: Path) -> bool:
    """Whether nothing of an unpacked root was changed since; no file of it is read."""
    recorded = read_manifest(manifest_of(target))
    if recorded is None or target.is_symlink():
        return False
    try:
        return look(target) == recorded
    except OSError:
        return False


def manifest_of(target: Path) -> Path:
    """Where the manifest of an unpacked root lies."""
    return target.with_name(f"{target.name}{MANIFEST}")


def set_aside(target: Path) -> Path:
    """Take an unpacked root out of use: what runs in it goes on, and a clean-up removes it later."""
    manifest_of(target).unlink(missing_ok=True)
    aside = target.with_name(f"{UNPACKING}{target.name}-{time.time_ns()}")
    target.rename(aside)
    return aside


def unpack_root(store: Store, sha256: str, target: Path, *, owners: bool = False) -> None:
    """Unpack a root file system into a folder.

    It belongs to the caller. With `owners` it has all its owners as a namespace of users sees them, and the
    folder above is given to that namespace.
    """
    place = str(Path(PLACE, target.name) if owners else target)
    command = ["tar", "--extract", "--numeric-owner", "--preserve-permissions", "--directory", place]
    keep_owners = owners or os.geteuid() == 0
    command += ["--same-owner", "--xattrs", "--xattrs-include=*"] if keep_owners else ["--no-same-owner"]
    if owners:
        give(target.parent, target)
        command = in_namespace(target.parent, command)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as running:
        assert running.stdin is not None
        assert running.stderr is not None
        complete, errors = False, ""
        try:
            plain = unpacked(io.BufferedReader(ChunkStream(chunks(store, sha256))))
            with contextlib.suppress(BrokenPipeError), running.stdin as pipe:
                while chunk := plain.read(CHUNK):
                    pipe.write(chunk)
                complete = True
            errors = running.stderr.read().decode(errors="replace")
        except (zstandard.ZstdError, OverBoundError) as error:
            process.kill_group(running)
            errors = str(error)
        except BaseException:
            process.kill_group(running)
            raise
    if running.returncode == 0 and complete:
        return
    # where its last byte was not read, it has not been checked yet: raises where it is damaged
    store.opened(sha256).close()
    if running.returncode == 0:
        return
    if "No space left on device" in errors:
        raise OutOfDiskError(
            "the root file system did not fit on the disk",
            cause=errors.strip().splitlines()[0],
            next_step="free some room, or set ROCWRIGHT_HOME to a larger disk",
        )
    raise InternalError(
        "a root file system could not be unpacked",
        cause=errors.strip()[:500],
        next_step="run the command again; if it stays so, report it",
    )


def remove_tree(path: Path) -> None:
    """Remove a folder, even where some in it are unwritable, or a file; no link is followed."""
    if not removal.remove_tree(path) and os.geteuid() != 0:
        # what a user's own range of user ids owns, only that range may remove
        process.run(["unshare", *as_root(), "rm", "-rf", "--", str(path)])


def as_root() -> list[str]:
    """Flags of unshare that make the caller root over the user ids that are the caller's to give."""
    return [] if os.geteuid() == 0 else ["--map-auto", "--map-root-user"]


_HEAD = b"rocwright-root-manifest-1"
_WIDTH = 7
_MASK = 2**64 - 1


class ManifestRow(NamedTuple):
    """A name below a root: what stays the same where a root is moved or copied, and what does not.

    `size` is in bytes, 0 of a folder; `mtime` and `ctime` in nanoseconds; `target` that of a link.
    """

    name: str
    target: str
    mode: int
    uid: int
    gid: int
    size: int
    mtime: int
    inode: int
    ctime: int

    @property
    def lasting(self) -> tuple[object, ...]:
        """All but the inode and the time of its last change."""
        return self[:-2]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Names with link targets, and the numbers of each, in the order of a walk."""

    names: bytes
    numbers: bytes

    def rows(self) -> Iterator[ManifestRow]:
        """What it says, row by row."""
        words = os.fsdecode(self.names).split("\0")
        numbers = array("Q", self.numbers)
        for index in range(len(words) // 2):
            yield ManifestRow(
                words[2 * index], words[2 * index + 1], *numbers[index * _WIDTH : (index + 1) * _WIDTH]
            )

    def write(self, path: Path) -> None:
        """Keep it, with its own sha256."""
        body = len(self.names).to_bytes(8, "big") + self.names + self.numbers
        write_atomic(path, _HEAD + b" " + sha256_bytes(body).encode() + b"\n" + body)


def read_manifest(path: Path) -> Manifest | None:
    """The manifest that is kept in a file; None where there is none, or it is not as it was written."""
    try:
        head, _, body = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if head != _HEAD + b" " + sha256_bytes(body).encode():
        return None
    length = int.from_bytes(body[:8], "big")
    return Manifest(names=body[8 : 8 + length], numbers=body[8 + length :])


def look(root: Path) -> Manifest:
    """What a root looks like now. Raises OSError where it cannot be walked."""
    names: list[str] = []
    numbers: list[int] = []
    _note(names, numbers, ".", "", os.lstat(root))
    waiting = [("", str(root))]
    while waiting:
        prefix, folder = waiting.pop()
        with os.scandir(folder) as entries:
            ordered = sorted(entries, key=_name)
        for entry in ordered:
            status, name = entry.stat(follow_symlinks=False), prefix + entry.name
            if stat.S_ISDIR(status.st_mode):
                waiting.append((f"{name}/", entry.path))
            # this loop is most of what a check takes: no call in it that could be left out
            link = os.readlink(entry.path) if stat.S_ISLNK(status.st_mode) else ""  # noqa: PTH115 - a Path would change its text
            names += (name, link)
            numbers += (
                status.st_mode,
                status.st_uid,
                status.st_gid,
                0 if stat.S_ISDIR(status.st_mode) else status.st_size,
                status.st_mtime_ns,
                status.st_ino,
                status.st_ctime_ns,
            )
    return Manifest(names=os.fsencode("\0".join(names)), numbers=_packed(numbers))


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name


def _note(names: list[str], numbers: list[int], name: str, link: str, status: os.stat_result) -> None:
    names += (name, link)
    numbers += (
        *(status.st_mode, status.st_uid, status.st_gid, 0),
        *(status.st_mtime_ns, status.st_ino, status.st_ctime_ns),
    )


def _packed(numbers: list[int]) -> bytes:
    try:
        return array("Q", numbers).tobytes()
    except OverflowError:
        # a time before 1970
        return array("Q", [number & _MASK for number in numbers]).tobytes()


def first_difference(previous: Manifest, current: Manifest) -> str:
    """The first name of which more than inode and ctime differ; "" where there is none."""
    remaining = {row.name: row for row in previous.rows()}
    for row in current.rows():
        old = remaining.pop(row.name, None)
        if old is None or old.lasting != row.lasting:
            return row.name
    return next(iter(remaining), "")
