"""Kill, fill and flip, and write docs/reliability.md: `python -m tests.reliability`."""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.reliability.disks import Point, filled
from tests.reliability.flips import KINDS, Flip, flipped
from tests.reliability.kills import Kill, killed
from tests.reliability.page import page
from tests.reliability.subject import make_subject

from rocwright.bases.roots import remove_tree

TOP = Path(__file__).parents[2]


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seed", type=int, default=20261122)
    asked.add_argument("--kills", type=int, default=300)
    asked.add_argument("--disks", type=int, default=40)
    asked.add_argument("--flips", type=int, default=20, help="of each kind")
    asked.add_argument("--out", type=Path, default=TOP / "docs/reliability.md")
    given = asked.parse_args()
    print(f"seed {given.seed}", flush=True)
    kills, points, flips = list[Kill](), list[Point](), list[Flip]()
    folder = Path(tempfile.mkdtemp(prefix="rocwright-reliability-"))
    try:
        subject = make_subject(folder / "subject")
        # an own sequence for each kind: more of one does not change the others
        for kind in KINDS:
            for flip in flipped(subject, kind, given.flips, random.Random(f"{given.seed} {kind}")):
                flips.append(flip)
                print(f"{flip.outcome:<8} {kind}: {flip.file} at {flip.at}: {flip.why}", flush=True)
        for point in filled(subject, given.disks, random.Random(f"{given.seed} disks")):
            points.append(point)
            print(
                f"{point.ended or 'lost':<8} {point.left} {point.kind} left {' '.join(point.wrong)}",
                flush=True,
            )
        for kill in killed(subject, given.kills, random.Random(f"{given.seed} kills")):
            kills.append(kill)
            print(f"{'lost' if kill.wrong else 'harmless':<8} {kill.what} {' '.join(kill.wrong)}", flush=True)
    finally:
        remove_tree(folder)
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=TOP, capture_output=True, text=True, check=False
    )
    about = f"{datetime.now(UTC):%Y-%m-%d}, commit {commit.stdout.strip() or 'unknown'}"
    given.out.write_text(page(given.seed, about, kills, points, flips))
    print(f"written: {given.out}")
    lost = [bool(one.wrong) for one in kills] + [bool(one.wrong) for one in points]
    return 1 if any(lost) or any(one.outcome == "lost" for one in flips) else 0


if __name__ == "__main__":
    sys.exit(main())
