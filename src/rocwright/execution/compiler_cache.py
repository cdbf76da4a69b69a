"""The compiler cache of a step: the folder of its trust domain, while the step runs.

Domains lie side by side in a folder that no step can write to; a step sees its own alone, mounted at
/ccache. Beside each lies a file `DOMAIN.used`, which only the host writes: its time is that of the last use,
its text the size in bytes then, and whoever uses the domain holds a shared lock on it. `DOMAIN.others` has
the ids of keys, a line each, that signed what came into the domain from other machines.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from rocbase.errors import SandboxError
from rocbase.files.atomic import write_atomic
from rocwright import sandbox
from rocwright.config import config
from rocwright.home import Home
from rocwright.sandbox.untrusted import Untrusted
from rocwright.sources.bases.roots import remove_tree
from rocwright.store.model import CacheUse
from rocwright.store.trust import read_trust, trust_file

# What a domain may hold: the largest component compiles some 10,000 files, each kept as a few.
MOST_FILES = 2_000_000

# Stands among the ids of keys for whoever can write to the folder that machines share.
SIGNER = "shared-cache"

_USED = ".used"
_SIGNERS = ".others"
_DROPPED = ".gone"
_DOMAIN = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Lent:
    """A domain's folder on the host, None where the step has no compiler cache, and what is to be said of it
    in the record."""

    folder: Path | None
    use: CacheUse


NONE = Lent(None, CacheUse(state="none"))


def trusted_signers() -> frozenset[str]:
    """Return the ids of those whose objects may be in a compiler cache of this machine."""
    shared = {SIGNER} if config().farm.compiler_cache else frozenset[str]()
    return frozenset(read_trust(trust_file()).keyids) | shared


@contextlib.contextmanager
def lend(
    home: Home,
    domain: str,
    trusted: Set[str] = frozenset(),
    say: Callable[[str], None] = lambda line: None,
) -> Iterator[Lent]:
    """The folder of a domain, made where there is none; nobody removes it meanwhile.

    It begins anew where other keys than those `trusted` signed a part of it, unless another step uses it.
    Afterwards the domains used longest ago go, until all together take no more than they may.
    """
    folder = home.compiler_cache(domain)
    home.compiler_caches.mkdir(parents=True, exist_ok=True)
    if not others(folder) <= trusted and drop(home, folder):
        say("its compiler cache begins anew: a key that is not trusted any more had signed some of it")
    with _administration(home):
        used = os.open(_used(folder), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(used, fcntl.LOCK_SH)
        os.utime(used)
        folder.mkdir(exist_ok=True)
        filled = _is_filled(folder)
        # giving it to the step twice does no harm; later it is too large to walk through
        if not filled:
            sandbox.make_writable(folder)
    try:
        yield Lent(folder, CacheUse(state="filled" if filled else "empty", domain=domain))
    finally:
        size = str(_measured(folder)).encode()
        with _administration(home):
            os.ftruncate(used, 0)
            os.pwrite(used, size, 0)
            os.close(used)
        _trim(home)


def _is_filled(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except OSError:
        # a step has shut it
        return True


def domains(home: Home) -> tuple[Path, ...]:
    """The folders of all domains, the one used longest ago first."""
    folders = [folder for folder in home.compiler_caches.glob("*") if _DOMAIN.fullmatch(folder.name)]
    return tuple(sorted(folders, key=last_used))


def last_used(folder: Path) -> float:
    """When a domain was last lent, in seconds since 1970; 0 where nothing says so."""
    with contextlib.suppress(OSError):
        return _used(folder).stat().st_mtime
    return 0


def drop(home: Home, folder: Path) -> bool:
    """Remove a domain, unless a step uses it; whether it is gone."""
    with _administration(home):
        if not _claim(folder):
            return False
        # who comes now begins a new one, and does not wait for the removal
        folder.rename(folder.with_name(f"{folder.name}.{time.time_ns()}{_DROPPED}"))
        _used(folder).unlink(missing_ok=True)
        _signers_file(folder).unlink(missing_ok=True)
    for discarded in home.compiler_caches.glob(f"*{_DROPPED}"):
        remove_tree(discarded)
    return True


def others(folder: Path) -> frozenset[str]:
    """The ids of keys that signed what came into a domain from other machines."""
    with contextlib.suppress(FileNotFoundError):
        return frozenset(_signers_file(folder).read_text().split())
    return frozenset()


def add_others(home: Home, folder: Path, keyids: Set[str]) -> None:
    """Note whose objects are about to come into a domain, before they do."""
    with _administration(home):
        if new := keyids - others(folder):
            write_atomic(
                _signers_file(folder), "".join(f"{keyid}\n" for keyid in sorted(new | others(folder)))
            )


def _claim(folder: Path) -> bool:
    """Whether nobody uses a domain; who asks holds the lock under which it is lent."""
    if not folder.is_dir():
        return False
    try:
        used = os.open(_used(folder), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(used, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(used)
    return True


def _trim(home: Home) -> None:
    """Remove domains, the one used longest ago first, until all take no more than the settings say that they
    may together; one that alone takes more goes before any other."""
    limit = config().compiler_cache_size
    sizes = {folder: _size(folder) for folder in domains(home)}
    total = sum(sizes.values())
    for folder, size in sorted(sizes.items(), key=lambda pair: pair[1] <= limit):
        if total <= limit:
            return
        total -= size if drop(home, folder) else 0


def _measured(folder: Path) -> int:
    """The size of a domain in bytes; the most there can be, where it has too many files to count, or a step
    has shut it."""
    try:
        entries = Untrusted(folder, "a step").walk(MOST_FILES, strict=False)
        return sum(entry.stat.st_size for entry in entries if entry.is_file)
    except (OSError, SandboxError):
        return sys.maxsize


def _size(folder: Path) -> int:
    """The size of a domain when it was last used, in bytes; 0 where nothing says so."""
    with contextlib.suppress(OSError, ValueError):
        return int(_used(folder).read_text())
    return 0


def _used(folder: Path) -> Path:
    return folder.with_name(folder.name + _USED)


def _signers_file(folder: Path) -> Path:
    return folder.with_name(folder.name + _SIGNERS)


def _administration(home: Home) -> FileLock:
    """Held while a domain is lent, given back or removed; never while a step runs."""
    return FileLock(home.compiler_caches / ".lock")
