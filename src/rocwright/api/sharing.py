"""Builds that machines share: put into a store that others can read, taken from those that are trusted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.errors import InputError
from rocwright.api.gpus import silent

if TYPE_CHECKING:
    from rocwright.api.projects import Say
    from rocwright.project import Project
    from rocwright.resolve.model import Lock
    from rocwright.store.push import Pushed
    from rocwright.store.shared_gc import Cleaned


def push(
    project: Project | None,
    to: str,
    *,
    locked: Lock | None = None,
    name: str = "",
    key: str | Path | None = None,
    say: Say = silent,
) -> Pushed:
    """Put into the shared store at a URL what the steps of a project's lock built here, signed, and the lock;
    all that was built here, where no project is named.

    The store is made where there is none, and called `name`, else as the last folder of the URL. `key` is the
    file of a private key, by default the one that `rocwright attest` signs with. Raises InputError without a
    key, for a place that cannot be shared, and where somebody cleans up there; NetworkError.
    """
    from rocwheel.units import size
    from rocwright.api.projects import lock, plan
    from rocwright.config import store_of
    from rocwright.home import Home
    from rocwright.resolve.files import lock_text
    from rocwright.signing.keys import chosen, signer_of
    from rocwright.store.bucket import Bucket
    from rocwright.store.push import Pusher

    private = chosen(Path(key) if key is not None else None)
    if private is None:
        raise InputError(
            "there is no key to sign with",
            cause="what is shared is signed, so that others can say whose builds they take",
            next_step="rocwright attest key makes one",
        )
    store = project.store if project is not None else store_of(Home.default())
    if project is None:
        keys = [one.key for one in store.records() if one.key != one.content_key]
    else:
        locked = locked or lock(project, network=False, say=say)
        steps = [one.step for one in plan(project, locked)]
        keys = [one.key for one in steps if one.kind in ("run", "image") and store.record(one.key)]
    if not keys:
        raise InputError(
            f"nothing of {project.request.stack} is built here" if project else "nothing is built here",
            cause="the store has no record of its steps",
            next_step="rocwright build first",
        )
    pusher = Pusher(store, Bucket(to), signer_of(private), lambda sent: say(f"  sent {size(sent)}"))
    pusher.open(name or to.rstrip("/").rpartition("/")[2] or "store")
    done = pusher.records(keys)
    if project is None or locked is None:
        return done
    # a lock that leaves something open gives nobody the keys of what was built
    if not locked.pending and done.records + done.there:
        done.locks = int(pusher.lock(project.request.digest, lock_text(locked)))
    return done


def pull(project: Project, *, locked: Lock | None = None, say: Say = silent) -> list[str]:
    """Fetch what trusted stores have of a project's steps; gives their names, and builds nothing.

    What cannot be had is told to the log, and is no error. Raises InputError and what `lock` raises.
    """
    from rocwright.api.projects import lock, plan
    from rocwright.plan.decide import State

    locked = locked or lock(project, network=False, say=say)
    found: list[str] = []
    for one in plan(project, locked):
        if one.state is State.CACHED and one.reasons and project.store.bring(one.step.key):
            found.append(one.step.name)
            say(f"  {one.step.name}: {one.reasons[0]}")
    return found


def clean_shared(url: str, *, dry_run: bool = False) -> Cleaned:
    """Remove from a shared store the files that no record names and that have lain there for two days.

    Raises InputError where somebody pushes, or where there is no store; NetworkError.
    """
    from rocwright.store.bucket import Bucket
    from rocwright.store.shared_gc import clean

    return clean(Bucket(url), dry_run=dry_run)
