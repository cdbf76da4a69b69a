"""How many processes a sandbox may have at once: the pids controller beside its memory cgroup."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from rocwright.sandbox import cgroup
from rocwright.sandbox.cgroup import Cgroup


@dataclass(frozen=True, slots=True, kw_only=True)
class Pids:
    """The folder of a cgroup that counts processes and threads: the memory cgroup's own, or, with version 1,
    one of the same path in another hierarchy."""

    folder: Path
    apart: bool

    @property
    def procs(self) -> tuple[Path, ...]:
        """What must be written to to enter it, besides the memory cgroup's."""
        return (self.folder / "cgroup.procs",) if self.apart else ()

    def refused(self) -> bool:
        """Whether a process could not be started here, or below, for want of a number.

        Version 1 counts where the process was, version 2 where the limit is.
        Source: Linux, kernel/cgroup/pids.c, pids_event.
        """
        return any(
            cgroup.table(folder / "pids.events").get("max", 0)
            for folder in cgroup.here_and_below(self.folder)
        )

    def close(self) -> None:
        """Let no more processes start, so that what is killed cannot start others meanwhile."""
        with contextlib.suppress(OSError):
            (self.folder / "pids.max").write_text("0")


def limit(group: Cgroup | None, maximum: int) -> Pids | None:
    """Let a sandbox have at most so many processes; None where nothing here can bound them."""
    if group is None:
        return None
    apart = group.version == 1
    folder = cgroup.MOUNT / "pids" / group.path.lstrip("/") if apart else group.folder
    with contextlib.suppress(OSError):
        if apart and (cgroup.MOUNT / "pids" / "cgroup.procs").exists():
            folder.mkdir(parents=True, exist_ok=True)
        (folder / "pids.max").write_text(str(maximum))
        return Pids(folder=folder, apart=apart)
    return None
