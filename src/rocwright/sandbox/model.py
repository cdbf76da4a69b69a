"""What a step asks of a sandbox, and how it ended; no engine is named here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A host file or folder seen in the sandbox at the absolute path `target`."""

    source: Path
    target: str
    writable: bool = False


# What programs open to reach a GPU.
GPU_DEVICES = ("/dev/kfd", "/dev/dri")

# Processes and threads that a job may have at once: more than a build of 128 jobs takes whose linkers have a
# thread for each core, and half of the numbers that a machine has by default.
MOST_PROCESSES = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxJob:
    """One command and everything that it may see.

    `root` is a root file system folder, seen read-only; /tmp, /run, /dev and /proc are the sandbox's own.
    `env` is the whole environment. `memory` is in bytes, `seconds` a wall-clock limit; `processes` may be
    there at once, threads included. `devices` are host device nodes or folders handed through (/dev/kfd,
    /dev/dri). With `as_caller` it has the caller's own rights to files, and no more, where it would have
    those of a user of no files.
    """

    root: Path
    argv: tuple[str, ...]
    env: Mapping[str, str]
    workdir: str = "/"
    mounts: tuple[Mount, ...] = ()
    network: bool = False
    memory: int | None = None
    seconds: float | None = None
    processes: int = MOST_PROCESSES
    devices: tuple[str, ...] = ()
    as_caller: bool = False


class Ended(StrEnum):
    """The closed set of ways in which a job ends."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    TOO_MANY_PROCESSES = "too many processes"


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxOutcome:
    """How a job ended. `code` is the exit status, or the signal's number where `ended` says signalled.

    `peak_memory` is in bytes, None where nothing could measure it. `stalled` tells that it was ended where
    it stood at its limit of memory and got nothing done. `maybe_memory` tells of one that was killed where no
    cgroup counts, while the kernel killed some process of this machine for memory: nobody can say which.
    """

    ended: Ended
    code: int
    seconds: float
    peak_memory: int | None = None
    stalled: bool = False
    maybe_memory: bool = False

    @property
    def ok(self) -> bool:
        return self.ended is Ended.EXITED and self.code == 0
