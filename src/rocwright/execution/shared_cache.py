"""The compiler cache that machines share, a folder of theirs behind the step's own, and who filled caches.

Nothing of it is in the step's key. ccache reads and writes the folder by itself (`file:` storage), so what
lies there is signed by nobody: its share in a build counts as that of a signer of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rocbase.errors import InputError
from rocbase.folders.links import through_no_link
from rocwright import sandbox
from rocwright.config import config
from rocwright.execution import compiler_cache
from rocwright.execution.compiler_cache import SIGNER, Lent
from rocwright.execution.context import Context
from rocwright.sandbox.model import Mount

# Where a sandbox has the folder of its trust domain.
TARGET = "/shared-ccache"


def shared_mount(context: Context, cache: Lent) -> Mount | None:
    """Return the mount of the folder of the step's trust domain, made if this machine writes there.

    None if the settings name no folder, the step has no compiler cache, or the folder cannot be used, which
    is said: a build goes on without it.
    """
    settings = config().farm
    if cache.folder is None or not settings.compiler_cache:
        return None
    top = Path(settings.compiler_cache).expanduser()
    try:
        # other machines write there: a link would show the step a folder of this machine
        folder = through_no_link(top / cache.use.domain, top)
        if settings.compiler_cache_writes and not folder.is_dir():
            folder.mkdir()
            sandbox.make_writable(folder)
    except (OSError, InputError) as error:
        context.on_line(f"no shared compiler cache: {error}")
        return None
    if not folder.is_dir():
        return None
    return Mount(source=folder, target=TARGET, writable=settings.compiler_cache_writes)


def storage(mount: Mount) -> str:
    """Return the folder as ccache's CCACHE_REMOTE_STORAGE names it."""
    return f"file:{TARGET}|{'umask=022' if mount.writable else 'read-only'}"


def note_signers(context: Context, cache: Lent, shared: Mount | None) -> tuple[str, ...]:
    """Return the ids of others whose objects may get into the step, and note them beside its compiler cache.

    They are noted before the step runs: who is killed has not taken anything unseen.
    """
    signers = set(_of_shards(context)) | ({SIGNER} if shared else set())
    signers |= set(context.kept.others) if context.kept else set()
    if cache.folder is not None:
        if signers - {""}:
            compiler_cache.add_others(context.home, cache.folder, signers - {""})
        signers |= compiler_cache.others(cache.folder)
    return tuple(sorted(signers - {""}))


def _of_shards(context: Context) -> Iterator[str]:
    """Yield the ids of those who signed what is in the compiler caches of shards."""
    for shard in context.shards:
        yield from shard.compiled_by_others()
        if shard.origin is not None:
            yield shard.origin.keyid
