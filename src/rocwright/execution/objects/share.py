"""The part of a step in the shared compiler cache: whether it has one, and what its record says of it.

Nothing of it is in the step's key. It is off unless this machine's settings ask for it and the store is one
that machines share; without a compiler cache there is none either, so that `reproduce` and
`--no-compiler-cache` compile everything.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from rocwright import sandbox
from rocwright.config import config
from rocwright.execution import compiler_cache, shard_caches
from rocwright.execution.compiler_cache import Lent
from rocwright.execution.context import Context
from rocwright.execution.objects.server import ObjectServer
from rocwright.sandbox.model import Job, Mount
from rocwright.store.model import Objects
from rocwright.store.objects import DomainObjects, Taken
from rocwright.store.working import WorkingStore

SOCKET = "/run/rocwright/objects"
"""Where a sandbox has the socket: in a folder that is the sandbox's own in every engine."""

NAME = "objects.socket"

SCHEME = "redis+unix"
"""What ccache calls the protocol. Debian's have it in bookworm (4.7.5), trixie (4.11.2) and sid (4.14.2), all
built with hiredis; a ccache does not start with a scheme that it does not know, so it is asked first."""

_ASK = f'case "$(ccache --version 2>/dev/null)" in *{SCHEME}-storage*) echo {SCHEME} ;; esac'

MILLISECONDS = 30_000
"""How long ccache waits for an answer; 10 s if it is not told."""


class Sharing:
    """What a step takes from the shared compiler cache, and whose it is."""

    def __init__(self, context: Context, cache: Lent) -> None:
        self._context, self._cache = context, cache
        self._server: ObjectServer | None = None
        self._own = ""
        self._noted: frozenset[str] = frozenset()
        self.on_new: Callable[[frozenset[str]], None] = lambda others: None
        """Called before an object is taken that a key signed of which none was taken yet, with the ids of
        those that are not this machine's."""
        self._note(frozenset(_of_shards(context)).union(context.kept.others if context.kept else ()))

    @property
    def others(self) -> tuple[str, ...]:
        """The ids of other machines' keys that signed what may have a part in the step."""
        folder = self._cache.folder
        kept = compiler_cache.others(folder) if folder is not None else frozenset[str]()
        return tuple(sorted((kept | self._noted) - {self._own, ""}))

    def objects(self) -> tuple[Objects, ...]:
        """As the record of the step names them."""
        taken = self._server.taken if self._server is not None else {}
        counts = {"" if keyid == self._own else keyid: count for keyid, count in taken.items()}
        return tuple(Objects(keyid=one, count=counts.get(one, 0)) for one in sorted({*counts, *self.others}))

    @contextlib.contextmanager
    def open(self) -> Iterator[Sharing]:
        """Answer at the socket meanwhile, where the step is to have one."""
        objects = self._wanted()
        if objects is None:
            yield self
            return
        self._own = objects.own
        self._server = ObjectServer(objects, self._take, lambda: self.others, self._context.on_line)
        with self._server.serving(self._path):
            yield self
        self._tell(self._server)

    def joined(self, engine: sandbox.Engine, job: Job) -> Job:
        """The job with the socket, where its ccache speaks the protocol."""
        if self._server is None:
            return job
        said: deque[str] = deque(maxlen=20)
        sandbox.run(engine, replace(job, argv=("/bin/sh", "-c", _ASK)), said.append)
        if SCHEME not in said:
            self._context.on_line(f"no shared compiler cache: its ccache does not speak {SCHEME}")
            return job
        socket = SOCKET if engine.isolates else str(self._path)
        url = f"{SCHEME}:{socket}|operation-timeout={MILLISECONDS}"
        before = job.env.get(shard_caches.READS, "")
        mounts = (*job.mounts, Mount(source=self._path, target=SOCKET, writable=True))
        return replace(job, env={**job.env, shard_caches.READS: f"{before} {url}".strip()}, mounts=mounts)

    @property
    def _path(self) -> Path:
        return self._context.workspace.scratch / NAME

    def _wanted(self) -> DomainObjects | None:
        context = self._context
        if self._cache.folder is None or not isinstance(context.store, WorkingStore):
            return None
        if not config().farm.compiler_cache:
            return None
        objects = context.store.objects(self._cache.use.domain, context.on_line)
        if objects is None:
            context.on_line("no shared compiler cache: of what its store has, more than one key must agree")
        return objects

    def _take(self, taken: Taken) -> None:
        self._note(frozenset({taken.keyid, *taken.others}))

    def _note(self, keyids: frozenset[str]) -> None:
        """On disk first: who is killed has not taken anything unseen."""
        if keyids <= self._noted:
            return
        others = keyids - {self._own, ""}
        if self._cache.folder is not None and others:
            compiler_cache.add_others(self._context.home, self._cache.folder, others)
        self.on_new(others)
        self._noted |= keyids

    def _tell(self, server: ObjectServer) -> None:
        say = self._context.on_line
        if server.taken:
            whose = ", ".join(
                f"{count:,} by {'this machine' if keyid == self._own else keyid[:12]}"
                for keyid, count in sorted(server.taken.items())
            )
            say(f"shared compiler cache: took {whose}")
        if server.put or server.left:
            left = f", {server.left:,} left out: the line is too slow" if server.left else ""
            say(f"shared compiler cache: put {server.put:,}{left}")


def _of_shards(context: Context) -> Iterator[str]:
    """Whose keys signed what is in the compiler caches of shards."""
    for one in context.shards:
        yield from one.compiled_by_others()
        if one.origin is not None:
            yield one.origin.keyid
