"""What memory one process of a step's kind took before, kept in the home folder."""

from __future__ import annotations

from dataclasses import dataclass

from rocwright.build.jobs.processes import Kind, Seen
from rocwright.home import Home


@dataclass(slots=True)
class Learnt:
    """Bytes by component, step and kind. Only the job server's thread has it."""

    @classmethod
    def load(cls, home: Home) -> Learnt:
        """What is known; nothing where the file is absent or damaged."""
        return cls()

    def per_job(self, component: str, step: str, kind: Kind) -> int | None:
        """What to reckon one more process of that kind with, None where nothing is known."""
        return None

    def note(self, component: str, step: str, seen: Seen) -> None:
        """Take in what a process has now."""

    def save(self) -> None:
        """Keep it. Never raises: that it is not kept costs time, never truth."""
