"""Kill, fill and flip, and write docs/reliability.md: `python -m tests.reliability`."""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.reliability.disks import Point, filled
from tests.reliability.flips import KINDS, Flip, flipped
from tests.reliability.kills import Kill, killed
from tests.reliability.page import Tried, page
from tests.reliability.subject import Subject, make_subject

from rocwright.bases.roots import remove_tree

TOP = Path(__file__).parents[2]


PARTS = ("flips", "disks", "kills")


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seed", type=int, default=20261122)
    asked.add_argument("--kills", type=int, default=300)
    asked.add_argument("--disks", type=int, default=40)
    asked.add_argument("--flips", type=int, default=20, help="of each kind")
    asked.add_argument("--only", choices=PARTS, action="append", help="the others stay as they are")
    asked.add_argument("--out", type=Path, default=TOP / "docs/reliability.md")
    given = asked.parse_args()
    print(f"seed {given.seed}", flush=True)
    kept = given.out.with_suffix(".json")
    tried: Tried = json.loads(kept.read_text()) if kept.exists() else {}
    folder = Path(tempfile.mkdtemp(prefix="rocwright-reliability-"))
    wrong = 0
    try:
        subject = make_subject(folder / "subject")
        for part in given.only or PARTS:
            about = f"Seed {given.seed}, {datetime.now(UTC):%Y-%m-%d}, commit {_commit()}"
            found: list[dict[str, Any]] = []
            tried[part] = {"about": about, "rows": found}
            for one in _try(part, subject, given):
                found.append(asdict(one))
                lost = one.outcome == "lost" if isinstance(one, Flip) else bool(one.wrong)
                wrong += lost
                print(f"{'LOST ' if lost else ''}{one}", flush=True)
    finally:
        remove_tree(folder)
        # what was tried until somebody stopped it, too
        kept.write_text(json.dumps(tried, indent=0) + "\n")
        given.out.write_text(page(tried))
        print(f"written: {given.out}")
    return 1 if wrong else 0


def _try(part: str, subject: Subject, given: argparse.Namespace) -> Iterator[Kill | Point | Flip]:
    # a sequence of its own for each part: more of one does not change the others
    match part:
        case "flips":
            for kind in KINDS:
                yield from flipped(subject, kind, given.flips, random.Random(f"{given.seed} {kind}"))
        case "disks":
            yield from filled(subject, given.disks, random.Random(f"{given.seed} disks"))
        case _:
            yield from killed(subject, given.kills, random.Random(f"{given.seed} kills"))


def _commit() -> str:
    words = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(words, cwd=TOP, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
