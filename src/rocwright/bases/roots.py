"""Root file systems, unpacked once a digest and kept for all sandboxes of this machine."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import zstandard
from filelock import FileLock

from rocwright import process, untrusted
from rocwright.errors import InternalError, OutOfDiskError
from rocwright.store.model import Store


def unpacked_root(store: Store, sha256: str, folder: Path, on_line: Callable[[str], None]) -> Path:
    """The folder of the root file system whose archive has that digest, unpacked if it is not there yet.

    The archive is checked while it is unpacked, and the folder appears whole or not at all.
    """
    target = folder / sha256
    if target.is_dir():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / f"{sha256}.lock"):
        if target.is_dir():
            return target
        on_line("base: unpacking the root file system")
        temporary = Path(tempfile.mkdtemp(dir=folder, prefix=".unpacking-"))
        try:
            unpack_root(store, sha256, temporary)
            temporary.chmod(0o755)
            temporary.rename(target)
        except BaseException:
            remove_tree(temporary)
            raise
    return target


def unpack_root(store: Store, sha256: str, target: Path, *, owners: bool = False) -> None:
    """Unpack a root file system into a folder.

    A user's own copy belongs to the user, but with `owners`, which takes the user's range of user ids.
    """
    command = ["tar", "--extract", "--numeric-owner", "--preserve-permissions", "--directory", str(target)]
    kept = owners or os.geteuid() == 0
    command += ["--same-owner", "--xattrs", "--xattrs-include=*"] if kept else ["--no-same-owner"]
    if owners and as_root():
        command = ["unshare", *as_root(), "--", *command]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as running:
        assert running.stdin is not None
        assert running.stderr is not None
        whole, said = False, ""
        try:
            decompressor = zstandard.ZstdDecompressor().decompressobj()
            with contextlib.suppress(BrokenPipeError), running.stdin as pipe:
                for chunk in store.chunks(sha256):
                    pipe.write(decompressor.decompress(chunk))
                whole = True
            said = running.stderr.read().decode(errors="replace")
        except zstandard.ZstdError as error:
            process.kill_group(running)
            said = str(error)
        except BaseException:
            process.kill_group(running)
            raise
    if running.returncode == 0 and whole:
        return
    # where its last byte was not read, it has not been checked yet: raises where it is damaged
    store.verified(sha256)
    if running.returncode == 0:
        return
    if "No space left on device" in said:
        raise OutOfDiskError(
            "the root file system did not fit on the disk",
            cause=said.strip().splitlines()[0],
            next_step="free some room, or set ROCWRIGHT_HOME to a larger disk",
        )
    raise InternalError(
        "a root file system could not be unpacked",
        cause=said.strip()[:500],
        next_step="run the command again; if it stays so, report it",
    )


def remove_tree(path: Path) -> None:
    """Remove a folder, even where some in it are unwritable, or a file; no link is followed."""
    if not untrusted.remove_tree(path) and os.geteuid() != 0:
        # what a user's own range of user ids owns, only that range may remove
        process.run(["unshare", *as_root(), "rm", "-rf", "--", str(path)])


def as_root() -> list[str]:
    """Flags of unshare that make the caller root over the user ids that are the caller's to give."""
    return [] if os.geteuid() == 0 else ["--map-auto", "--map-root-user"]
