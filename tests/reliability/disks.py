"""Builds on a disk that becomes full at a chosen point, of bytes or of inodes."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.reliability.subject import Ended, Subject

SIZE, INODES = 256 * 2**20, 20_000


@dataclass(frozen=True)
class Point:
    """What was left on the disk when a build began, how it ended, and what was wrong then or afterwards."""

    kind: str
    left: int
    ended: str
    wrong: tuple[str, ...] = ()


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    folder.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE},nr_inodes={INODES}", "tmpfs", folder], check=True
    )
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        folder.rmdir()


def filled(subject: Subject, count: int, chance: random.Random) -> Iterator[Point]:
    """Build on disks with less and less left, `count` times, half of them short of bytes, half of inodes."""
    for number in range(count):
        kind = "bytes" if number % 2 == 0 else "inodes"
        disk = subject.folder.with_name("disk")
        with small_disk(disk), subject.copied(disk / "subject") as one:
            one.forget_steps()
            used = os.statvfs(disk)
            assert one.is_right(one.build())
            now = os.statvfs(disk)
            wanted = {
                "bytes": (used.f_bfree - now.f_bfree) * now.f_bsize + SIZE // 40,
                "inodes": used.f_ffree - now.f_ffree + INODES // 40,
            }
            one.forget_steps()
            left = int(wanted[kind] * chance.random())
            filler = _fill(disk, kind, left)
            built = one.build()
            wrong = [f"still there: {each}" for each in one.left()] + one.faults()
            ended = _how(one, built)
            if not ended:
                wrong.append(f"it ended with {built.status}: {built.said[-800:]}")
            for path in filler:
                path.unlink()
            again = one.build()
            if not one.is_right(again):
                wrong.append(f"with room again it ended with {again.status}: {again.said[-800:]}")
            yield Point(kind, left, ended, tuple(wrong))


def _fill(disk: Path, kind: str, left: int) -> list[Path]:
    free = os.statvfs(disk)
    if kind == "inodes":
        fillers = [disk / f"filler-{number}" for number in range(max(0, free.f_ffree - left))]
        for path in fillers:
            path.touch()
        return fillers
    filler = disk / "filler"
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail * free.f_frsize - left))
    return [filler]


def _how(one: Subject, built: Ended) -> str:
    """How a build ended, in a word; empty where it is neither right nor told as a full disk."""
    if one.is_right(built):
        return "built"
    errors = [built.told.get("error", {}), *built.told.get("failures", [])]
    told = {error.get("class") for error in errors} - {None}
    return "told" if built.status != 0 and ("out of disk" in told or "out of disk" in built.said) else ""
