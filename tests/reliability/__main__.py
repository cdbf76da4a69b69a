"""Kill builds, fill disks and flip bits; write what came of it to .out: `python -m tests.reliability`."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.reliability.disks import Point, filled
from tests.reliability.flips import KINDS, Flip, flipped
from tests.reliability.kills import Kill, killed
from tests.reliability.subject import Subject, make_subject

from rocwright.sources.bases.roots import remove_tree

OUT = Path(__file__).parents[2] / ".out/reliability.json"
PARTS = ("flips", "disks", "kills")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--disks", type=int, default=40)
    parser.add_argument("--flips", type=int, default=20, help="of each kind")
    parser.add_argument("--only", choices=PARTS, action="append")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="rocwright-reliability-"))
    tried: dict[str, list[dict[str, Any]]] = {}
    outcomes: Counter[tuple[str, str, str]] = Counter()
    try:
        subject = make_subject(folder / "subject")
        for part in options.only or PARTS:
            for trial in _try(part, subject, options):
                tried.setdefault(part, []).append(asdict(trial))
                outcomes[part, _kind(trial), _outcome(trial)] += 1
                print(f"{_outcome(trial)}: {trial}", flush=True)
    finally:
        remove_tree(folder)
        # also what was tried before an interruption
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(json.dumps({"seed": options.seed, **tried}, indent=0) + "\n")
        for (part, kind, outcome), count in sorted(outcomes.items()):
            print(f"{part:6} {kind:24} {outcome:10} {count:4}")
    return 1 if any(outcome == "lost" for _, _, outcome in outcomes) else 0


def _kind(trial: Kill | Point | Flip) -> str:
    return trial.what if isinstance(trial, Kill) else trial.kind


def _outcome(trial: Kill | Point | Flip) -> str:
    """Return lost, noticed (reported by a build or `store verify`) or harmless (the right bytes)."""
    if isinstance(trial, Flip):
        return trial.outcome
    if trial.wrong:
        return "lost"
    return "noticed" if isinstance(trial, Point) and trial.ended == "told" else "harmless"


def _try(part: str, subject: Subject, options: argparse.Namespace) -> Iterator[Kill | Point | Flip]:
    # a sequence of its own for each part: more of one does not change the others
    match part:
        case "flips":
            for kind in KINDS:
                yield from flipped(subject, kind, options.flips, random.Random(f"{options.seed} {kind}"))
        case "disks":
            yield from filled(subject, options.disks, random.Random(f"{options.seed} disks"))
        case _:
            yield from killed(subject, options.kills, random.Random(f"{options.seed} kills"))


if __name__ == "__main__":
    sys.exit(main())
