"""What was measured on: processor, memory, disk, kernel, and how busy it was."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from pathlib import Path


def describe(folder: Path) -> str:
    """The machine in a line; the disk is the one that holds `folder`."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB memory, {_disk(folder)}, "
        f"Linux {platform.release()}, Python {platform.python_version()}"
    )


def commit(folder: Path) -> str:
    """Return the commit of a checkout with its day, and whether the tree differs from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    stands = git("show", "-s", "--format=%h %cs", "--abbrev=8", "HEAD")
    if not stands:
        return "no commit"
    return f"{stands}, changed" if git("status", "--porcelain") else stands


def load() -> str:
    """The load averages of 1, 5 and 15 minutes."""
    return " ".join(f"{one:.2f}" for one in os.getloadavg())


def others(seconds: float = 2.0) -> float:
    """The share of all cores that is taken now, while this process only waits: work of others."""
    busy, total = _ticks()
    time.sleep(seconds)
    busy_then, total_then = _ticks()
    return (busy_then - busy) / max(1, total_then - total)


def _ticks() -> tuple[int, int]:
    fields = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


def _processor() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found.group(1).strip() if found else platform.machine()


def _disk(folder: Path) -> str:
    """File system, device, and whether it turns."""
    while not folder.exists():
        folder = folder.parent
    number = folder.stat().st_dev
    best = ("", "?", "?")
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        if fields.split()[2] == f"{os.major(number)}:{os.minor(number)}":
            kind, device = rest.split()[:2]
            best = (fields.split()[4], kind, device)
    _, kind, device = best
    turns = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/queue/rotational")
    words = {"0": "solid state or virtual", "1": "rotational as the kernel sees it"}
    what = words.get(turns.read_text().strip(), "disk") if turns.exists() else "disk"
    return f"{kind} on {Path(device).name} ({what})"
