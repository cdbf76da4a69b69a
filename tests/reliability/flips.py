"""One bit of something stored is flipped: is it noticed or harmless, or does something wrong come of it?"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.reliability.subject import Ended, Subject

from rocwright.store.model import records

KINDS = ("blob", "record", "step definition", "unpacked root", "database", "lock", "compiler cache")


@dataclass(frozen=True)
class Flip:
    """One flipped bit: in what, and what came of it. `outcome` is noticed, harmless or lost."""

    kind: str
    file: str
    at: int
    outcome: str
    why: str


def flipped(subject: Subject, kind: str, count: int, chance: random.Random) -> Iterator[Flip]:
    """Flip `count` bits in things of a kind, each in a fresh copy of the home, and use what was flipped."""
    for _ in range(count):
        with subject.copied(subject.folder.with_name("flipped")) as one:
            # the copy is taken for what it is: a home that was moved
            assert one.is_right(one.build())
            path = chance.choice([each for each in _files(one, kind) if each.stat().st_size])
            at = chance.randrange(path.stat().st_size)
            _flip(path, at, 1 << chance.randrange(8))
            # what was made of it is made again
            shutil.rmtree(one.project / "rocwright-out", ignore_errors=True)
            if kind != "record" and chance.random() < 0.7:
                for record in records(one.store):
                    if record.kind == "run":
                        one.store.local.remove("record", record.key)
            built, verified = one.build(), one.run("store", "verify", "--json")
            outcome, why = _outcome(one, built, verified)
            yield Flip(kind, str(path.relative_to(one.folder)), at, outcome, why)


def _files(one: Subject, kind: str) -> list[Path]:
    home = one.home
    found: Iterable[Path]
    match kind:
        case "blob":
            found = home.store.glob("blobs/??/*")
        case "record":
            found = home.store.glob("records/??/*.json")
        case "step definition":
            found = home.store.glob("steps/??/*.json")
        case "unpacked root":
            found = (path for root in home.roots.iterdir() if root.is_dir() for path in root.rglob("*"))
        case "database":
            found = [home.records]
        case "lock":
            found = [one.project / "rocwright.lock"]
        case _:
            found = home.compiler_caches.rglob("*")
    return sorted(path for path in found if path.is_file() and not path.is_symlink())


def _flip(path: Path, at: int, bit: int) -> None:
    """As a disk does it: size, time and mode stay."""
    before = path.stat()
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ bit]))
    path.chmod(before.st_mode & 0o7777)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _outcome(one: Subject, built: Ended, verified: Ended) -> tuple[str, str]:
    right = one.is_right(built)
    if built.status == 0 and not right:
        return "lost", "a build ended well with other bytes"
    unsound = [
        artifact["path"]
        for artifact in built.told.get("artifacts", ())
        if one.run("attest", "verify", artifact["path"], "--json").status != 0
    ]
    if unsound:
        return "lost", f"no valid statement for {', '.join(unsound)}"
    faults = one.faults()
    if faults:
        return "lost", f"not noticed by store verify: {'; '.join(faults)}"
    if built.status != 0:
        return "noticed", _first(built)
    said = [name for name, found in verified.told.items() if isinstance(found, list) and found]
    if said or verified.status != 0:
        return "noticed", f"store verify: {', '.join(said) or verified.said.strip()[-100:]}"
    aside = [path.name for path in (one.home.store / "damaged").iterdir()]
    if aside:
        return "noticed", f"moved aside: {aside[0]}"
    words = ("damaged", "anew", "unpacked again")
    logs = [log.read_text() for log in one.home.runs.glob(f"{built.told['run']['id']}/*.log")]
    said_lines = [line for text in (built.said, *logs) for line in text.splitlines()]
    line = next((line for line in said_lines if any(word in line for word in words)), "")
    if line:
        return "noticed", line.strip()
    return "harmless", "the right bytes came out"


def _first(ended: Ended) -> str:
    errors = [ended.told.get("error", {}), *ended.told.get("failures", [])]
    return next(
        (f"{one['class']}: {one['message']}" for one in errors if one.get("message")), ended.said[-100:]
    )
