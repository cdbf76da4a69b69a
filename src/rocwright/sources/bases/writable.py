"""A root file system that may be written to: commands run in it as its root user, and the whole packed again.

Sandboxes show a root read-only to a plain user, as a build needs it. A package manager needs its own root, so
bubblewrap alone runs it here: apart from the host, with the capabilities that installing takes and no more.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from rocbase.errors import FetchError, InternalError, SandboxError
from rocbase.files.bounds import TREES
from rocbase.processes import run as process
from rocbase.units import size
from rocwright.model.step_environment import EPOCH, PACKAGES
from rocwright.sandbox.bubblewrap import SYSTEM
from rocwright.sources.bases.namespace import PLACE, give, in_namespace, sandboxed
from rocwright.sources.bases.roots import remove_tree, unpack_root
from rocwright.store.model import Store
from rocwright.store.packed import packing

_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "SOURCE_DATE_EPOCH": str(EPOCH),
}
_OWN = ("dev", "proc", "sys", "run", "tmp")
_FORGET = "for pattern; do rm -rf -- $pattern; done"
# What was written since the step began has the one time of all that is made; what was brought keeps its own.
_PACK = """set -eu
cd "$1"
find . -xdev -newermt "@$3" -exec touch --no-dereference --date="@$2" -- {} +
exec tar --create --sort=name --format=posix --numeric-owner --xattrs --xattrs-include=security.capability \\
    --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime \\
    --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' --exclude='./run/*' --exclude='./tmp/*' .
"""


class WritableRoot:
    """A root file system unpacked with all its owners; it is the caller's to change."""

    def __init__(self, path: Path, started: int, on_line: Callable[[str], None]) -> None:
        self.path = path
        self.begun = started
        self.on_line = on_line

    def run(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        folder: Path | None = None,
        network: bool = False,
        on_line: Callable[[str], None] | None = None,
        seconds: float = 3600,
    ) -> process.Finished:
        """Run a command as root inside, with `folder` seen as PACKAGES; a status other than 0 raises nothing.

        `folder` lies beside the root. With a network it is to be filled; without one it is only read.
        Raises SandboxError where bubblewrap cannot run anything here, FetchError where the root has no such
        program.
        """
        # a command before may have changed them
        _check(self.path)
        mounts = ["--bind", self._inside(self.path), "/", "--proc", "/proc", "--dev", "/dev", *SYSTEM]
        for place in ("/run", "/tmp"):  # noqa: S108 - inside, each command has its own
            mounts += ["--perms", "1777", "--tmpfs", place]
        if folder is not None:
            give(folder)
            mounts += ["--bind" if network else "--ro-bind", self._inside(folder), PACKAGES]
        mounts += list(self._resolver()) if network else []
        words = sandboxed(self.path.parent, argv, mounts, _ENVIRONMENT | dict(env), network=network)
        output: list[str] = []

        def tell(line: str) -> None:
            output.append(line)
            (on_line or self.on_line)(line)

        completed = process.stream(words, tell, timeout=seconds)
        if not completed.ok and output and output[-1].startswith(("bwrap: execvp", "chroot: ")):
            raise FetchError(
                f"the image has no {argv[0]}",
                cause=f"{output[-1]}: it is another distribution than its base says",
                next_step="correct the base's package manager or image in the catalog",
            )
        if not completed.ok and output and output[-1].startswith(("bwrap: ", "unshare: ")):
            raise SandboxError(
                "the root file system of an image cannot be worked in here",
                cause=output[-1],
                next_step="let bubblewrap work (rocwright sandbox), and give the user ranges in /etc/subuid "
                "and /etc/subgid, or be root",
            )
        return completed

    def _inside(self, path: Path) -> str:
        """Where the namespace sees what lies in the folder of the root."""
        return str(PLACE / path.absolute().relative_to(self.path.parent.absolute()))

    def _resolver(self) -> Iterator[str]:
        """Mounts of the host's own name resolution, where the root's may be links.

        bwrap makes a missing mount point before the host is out of its sight: through a link it would make it
        on the host. What lies behind a second link is left out.
        """
        for name in ("resolv.conf", "hosts"):
            host, place = Path("/etc", name), self.path / "etc" / name
            if host.exists():
                link = PurePosixPath("/etc") / (place.readlink() if place.is_symlink() else name)
                aim = PurePosixPath(os.path.normpath(link))
                if not any((self.path / path.relative_to("/")).is_symlink() for path in (aim, *aim.parents)):
                    yield from ("--ro-bind", str(host.resolve()), str(aim))

    def forget(self, patterns: Sequence[str]) -> None:
        """Remove what the globs match, as seen from inside, so that no link of the root leads out."""
        self.run(["/bin/sh", "-c", _FORGET, "sh", *patterns], {})

    def pack(self, target: Path) -> str:
        """Pack it as .tar.zst: sorted, with owners and modes, without what lies in /dev, /run and /tmp.

        Gives the hex sha256 of the tar, uncompressed.
        """
        errors: list[str] = []
        words = ["sh", "-c", _PACK, "sh", self._inside(self.path), str(EPOCH), str(self.begun)]
        written = 0
        with packing(target, threads=os.cpu_count() or 1) as packed:

            def write(chunk: bytes) -> None:
                nonlocal written
                written += len(chunk)
                if written > TREES.size:
                    raise SandboxError(
                        "the packages of an image wrote more than any root file system holds",
                        cause=f"more than {size(TREES.size)}; a sparse file stands for more than it takes",
                        next_step="look at what its packages do, and name another image or other packages",
                    )
                packed.write(chunk)

            code = process.pipe(in_namespace(self.path.parent, words), write, errors.append)
        if code != 0:
            raise InternalError(
                "a root file system could not be packed",
                cause="; ".join(errors[-3:]) or f"tar ended with status {code}",
                next_step="run the command again; if it stays so, report it",
            )
        return packed.content


@contextmanager
def writable_root(
    store: Store, sha256: str, scratch: Path, on_line: Callable[[str], None]
) -> Iterator[WritableRoot]:
    """The root file system whose archive has that digest, unpacked in `scratch`, and removed at the end."""
    scratch.mkdir(parents=True, exist_ok=True)
    started = int(time.time()) - 1
    path = Path(tempfile.mkdtemp(dir=scratch, prefix="root-"))
    try:
        on_line("base: unpacking the image")
        unpack_root(store, sha256, path, owners=True)
        _check(path)
        path.chmod(0o755)
        yield WritableRoot(path, started, on_line)
    finally:
        remove_tree(path)


def _check(path: Path) -> None:
    """Refuse a root whose mount points lead elsewhere, before anything is mounted there."""
    odd = [name for name in (*_OWN, "etc") if (path / name).is_symlink()]
    if odd or not (path / "etc").is_dir():
        raise FetchError(
            "the image is not the root file system of a Linux distribution",
            cause=f"{', '.join(f'/{name}' for name in odd) or '/etc'} is not a folder",
            next_step="name another image",
        )
