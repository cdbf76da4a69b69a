"""Builds with one home on one machine at the same time: together they stay within processors and memory.

There is no server of all: each build says in a small file what it runs and may still want, and decides for
itself by what the others say, one after the other. The file is in the folder of its job server: of a build
that is gone nothing counts, and nothing is left. No sandbox sees it: no build step can speak for a build.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from rocbase.model import Frozen
from rocwright.execution.jobs.room import text
from rocwright.sandbox import state

CLAIM, TURN = "claim.json", "builds.turn"

# Seconds that a build waits for its turn; then it decides all the same: one that was stopped in its turn
# holds up nobody.
PATIENCE = 0.05

# Compilers of a build that are told to others; what is read of a claim is bounded too.
MOST_RUNNING = 512

_Count = Annotated[int, Field(ge=0, le=10**6)]
_Bytes = Annotated[int, Field(ge=0, le=2**62)]


class RunningCompiler(Frozen):
    """A compiler: when it `started`, in clock ticks since the machine did, the bytes that it holds and that
    it may still want, how many it `grows` by in a second, and whether it is `stopped` for others."""

    started: _Bytes
    holds: _Bytes
    wants: _Bytes
    grows: _Bytes = 0
    stopped: bool = False
    guessed: bool = False


class Claim(Frozen):
    """What one build has of the machine: its `home` (a hash of its path), `jobs` that run, the bytes that
    they hold (`memory`), and those that they and what may begin until the next look usually still come to
    (`promised`). `running` are its compilers, of which some may be paused."""

    home: str = ""
    jobs: _Count = 0
    memory: _Bytes = 0
    promised: _Bytes = 0
    running: Annotated[tuple[RunningCompiler, ...], Field(max_length=MOST_RUNNING)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What all others have: how many `builds` run anything, and their claims together."""

    builds: int = 0
    jobs: int = 0
    memory: int = 0
    promised: int = 0
    running: tuple[RunningCompiler, ...] = ()

    def most(self, limit: int, cores: int) -> int:
        """How many processes a build may have that would have `limit` alone: what the others leave of the
        `cores`, and never less than its share."""
        if not self.builds:
            return limit
        share = -(-cores // (self.builds + 1))
        return max(1, min(limit, max(share, cores - self.jobs)))


NOBODY, NOTHING = Beside(), Claim()


def together(claims: Iterable[Claim]) -> Beside:
    """Claims of others as one."""
    busy = [claim for claim in claims if claim.jobs]
    return Beside(
        builds=len(busy),
        jobs=sum(claim.jobs for claim in busy),
        memory=sum(claim.memory for claim in busy),
        promised=sum(claim.promised for claim in busy),
        running=tuple(compiler for claim in busy for compiler in claim.running),
    )


class Board:
    """Where builds with the same home folder say what they have, on this machine and until it stops: each in
    the folder of its job server, whose name tells its owner."""

    def __init__(self, home: Path, folder: Path) -> None:
        self._home = hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:16]
        self._own = folder / CLAIM
        self._said: Claim | None = None
        self._turn = os.open(
            state.home() / TURN, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )

    def look(self) -> Beside:
        """What the others have."""
        return together(self._other_claims())

    @contextlib.contextmanager
    def turn(self) -> Iterator[Beside]:
        """What the others have, while none of them decides. For one thread."""
        locked = self._locked()
        try:
            yield self.look()
        finally:
            if locked:
                fcntl.flock(self._turn, fcntl.LOCK_UN)

    def say(self, claim: Claim) -> None:
        """What this build has now."""
        if claim == self._said:
            return
        new = self._own.with_suffix(".new")
        # a full disk is no reason to end a build: it goes on unseen
        with contextlib.suppress(OSError):
            new.write_text(claim.model_copy(update={"home": self._home}).model_dump_json())
            new.replace(self._own)
            self._said = claim

    def close(self) -> None:
        """Say nothing any more."""
        self._own.unlink(missing_ok=True)
        os.close(self._turn)

    def _locked(self) -> bool:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(self._turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= end:
                    return False
                time.sleep(PATIENCE / 25)
            else:
                return True

    def _other_claims(self) -> Iterator[Claim]:
        try:
            folders = list(self._own.parent.parent.iterdir())
        except OSError:
            return  # a runtime folder is emptied when its user logs out: builds go on, each by itself
        for folder in folders:
            owner = state.owner_of(folder.name)
            if folder == self._own.parent or owner is None or not owner.alive():
                continue
            with contextlib.suppress(ValidationError):
                claim = Claim.model_validate_json(text(folder / CLAIM))
                if claim.home == self._home:
                    yield claim
