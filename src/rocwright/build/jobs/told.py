"""What a step's process tells the job server of its build: files in the server's folder, by the process's
number."""

from __future__ import annotations

from pathlib import Path


def tell_to_share(folder: Path, pid: int) -> None:
    """All tools of a step are clients: it has no more processes than it holds tokens, and its first one."""
    (folder / f"shares-{pid}").touch()


def told_to_share(folder: Path, pid: int) -> bool:
    """Whether that was told."""
    return (folder / f"shares-{pid}").exists()
