"""Builds that machines share: put into a store that others can read, taken from those that are trusted."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from rocbase.errors import InputError
from rocbase.units import size
from rocwright.api.gpus import silent

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner

    from rocwright.api.projects import Say
    from rocwright.plan.resolve.model import Lock
    from rocwright.project import Project
    from rocwright.store.contents import Cleaned, Contents
    from rocwright.store.push import Sent
    from rocwright.store.shared_check import SharedCheck


def push(
    project: Project | None,
    to: str,
    *,
    locked: Lock | None = None,
    name: str = "",
    key: str | Path | None = None,
    say: Say = silent,
) -> Sent:
    """Put into the shared store at a URL what the steps of a project's lock built here, signed, the root file
    system that it runs on, where there is one for that alone, and the lock; all that was built here, where no
    project is named.

    The store is made where there is none, and called `name`, else as the last folder of the URL. `key` is the
    file of a private key, by default the one that `rocwright attest` signs with. Raises InputError without a
    key, for a place that cannot be shared, and where somebody cleans up there; NetworkError.
    """
    from rocwright.api.projects import lock, plan
    from rocwright.config import store_of
    from rocwright.home import Home
    from rocwright.plan.resolve.files import lock_text
    from rocwright.plan.roots import RUN_ROOT
    from rocwright.sources.bases.tools import tools_key
    from rocwright.store.blobs import Damage
    from rocwright.store.bucket import Bucket
    from rocwright.store.model import records
    from rocwright.store.push import Pusher

    signer = _signer(key)
    store = project.store if project is not None else store_of(Home.default())
    if project is None:
        keys = [record.key for record in records(store) if record.key != record.content_key]
    else:
        locked = locked or lock(project, network=False, say=say)
        steps = [decision.step for decision in plan(project, locked)]
        built = [step for step in steps if store.record(step.key)]
        keys = [step.key for step in built if step.kind in ("run", "image")]
        # who runs it makes no root of packages, which the archive may not carry any more
        keys += [step.key for step in built if keys and step.name == RUN_ROOT]
    if not keys:
        raise InputError(
            f"nothing of {project.request.stack} is built here" if project else "nothing is built here",
            cause="the store has no record of its steps",
            next_step="rocwright build first",
        )
    # a machine that has no mmdebstrap and no images takes the tools root from here
    keys.append(tools_key())
    damage = Damage((project.home if project is not None else Home.default()).store)
    pusher = Pusher(store, Bucket(to), signer, lambda sent: say(f"  sent {size(sent)}"), damage)
    pusher.open(name or to.rstrip("/").rpartition("/")[2] or "store")
    pushed = pusher.records(keys)
    if project is None or locked is None:
        return pushed
    # a lock that leaves something open gives nobody the keys of what was built
    if not locked.pending and pushed.records + pushed.there:
        pushed.locks = int(pusher.lock(project.request.digest, lock_text(locked)))
    return pushed


def pull(project: Project, *, locked: Lock | None = None, say: Say = silent) -> list[str]:
    """Fetch what trusted stores have of a project's steps; gives their names, and builds nothing.

    What cannot be had is told to the log, and is no error. Raises InputError and what `lock` raises.
    """
    from rocwright.api.projects import lock, plan
    from rocwright.plan.decide import State

    locked = locked or lock(project, network=False, say=say)
    names: list[str] = []
    transfer = Transfer("fetched", say)
    for decision in plan(project, locked):
        if (
            decision.state is State.CACHED
            and decision.reasons
            and project.store.bring(decision.step.key, transfer)
        ):
            names.append(decision.step.name)
            say(f"  {decision.step.name}: {decision.reasons[0]}")
    return names


def clean_shared(url: str, *, last: int | None = None, days: float = 30, dry_run: bool = False) -> Cleaned:
    """Remove from a shared store the files that no record names and that have lain there for two days.

    With `last`, first the records that this user's key signed, but the newest `last` of each step for the
    same GPUs and base, those of the last `days`, and what a plan that was built last here, or a channel,
    needs. Raises InputError where somebody pushes or builds there, or where there is no store; NetworkError.
    """
    from rocwright.home import Home
    from rocwright.project import kept_keys
    from rocwright.store.bucket import Bucket
    from rocwright.store.contents import Keep, clean

    keep = None
    if last is not None:
        keyid = str(_signer().public_key.keyid)
        keep = Keep(keyid=keyid, last=last, days=days, keys=frozenset(kept_keys(Home.default())))
    return clean(Bucket(url), keep, dry_run=dry_run)


def sync(source: str, target: str, *, name: str = "", say: Say = silent) -> Sent:
    """Copy what trusted keys signed in one shared store to another, with its files.

    `target` is made a store where it is none, and is called `name`, else as the source is. What of the
    source was refused is told to the log. Raises InputError where nothing is trusted, or one of the places
    cannot be used; NetworkError.
    """
    import tempfile

    from rocwright.store.bucket import Bucket
    from rocwright.store.push import Mirror, read_mark
    from rocwright.store.shared import SharedStore
    from rocwright.store.trust import read_trust, trust_file

    bucket = Bucket(source)
    called = read_mark(bucket)
    keys = read_trust(trust_file()).key
    if not keys:
        raise InputError(
            f"no key is trusted, so nothing of {bucket} counts",
            cause="only what a trusted key signed is copied",
            next_step=f"rocwright trust add {bucket}",
        )
    shared = SharedStore(name=called, bucket=bucket, keys=keys, note=say)
    with tempfile.TemporaryDirectory(prefix="rocwright-sync-") as scratch:
        mirror = Mirror(
            source=shared, target=Bucket(target), scratch=Path(scratch), on_bytes=Transfer("fetched", say)
        )
        return mirror.copy(name or called)


def check_shared(url: str, *, read: bool = True, say: Say = silent) -> SharedCheck:
    """Whether a shared store is whole: each signature, each name, and each file byte by byte; without `read`
    only that the files are there. Nothing in it is changed; what is damaged is noted here, and put anew by
    the next push or build of this machine that has it.

    Raises InputError where there is no store; NetworkError.
    """
    from rocwright.home import Home
    from rocwright.store.blobs import Damage
    from rocwright.store.bucket import Bucket
    from rocwright.store.shared_check import check

    bucket = Bucket(url)
    shared_check = check(bucket, read=read, on_bytes=Transfer("read", say))
    for sha256 in shared_check.damaged:
        Damage(Home.default().store).note(bucket, sha256)
    return shared_check


def shared_usage(url: str) -> Contents:
    """What lies in a shared store, whoever put it there. Raises InputError for no store; NetworkError."""
    from rocwright.store.bucket import Bucket
    from rocwright.store.contents import read_contents

    return read_contents(Bucket(url))


class Transfer:
    """Tells of a long transfer, at most every five seconds: it is called with what each part brought."""

    def __init__(self, verb: str, say: Say) -> None:
        self._verb, self._say = verb, say
        self._begun = self._told = time.monotonic()
        self._done = 0

    def __call__(self, count: int) -> None:
        self._done += count
        timestamp = time.monotonic()
        if timestamp - self._told >= 5:
            self._told = timestamp
            rate = size(int(self._done / (timestamp - self._begun)))
            self._say(f"  {size(self._done)} {self._verb}, {rate} a second")


def _signer(key: str | Path | None = None) -> CryptoSigner:
    """What signs with a private key, the user's own where none is named. Raises InputError without one."""
    from rocwright.store.signing.keys import chosen, signer_of

    private = chosen(Path(key) if key is not None else None)
    if private is None:
        raise InputError(
            "there is no key to sign with",
            cause="what is shared is signed, so that others can say whose builds they take",
            next_step="rocwright attest key makes one",
        )
    return signer_of(private)
