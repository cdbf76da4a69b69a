"""The page that says what was tried, noticed, harmless and lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tests.reliability.disks import Point
from tests.reliability.flips import KINDS, Flip
from tests.reliability.kills import Kill, rows

Tried = dict[str, dict[str, Any]]
"""By part (kills, disks, flips): `about`, how it was tried, and `rows`, what came of each."""

HEAD = """\
# Reliability

`make reliability` wrote this page. It really builds a small project (fetch, a compiler with its cache in a
bubblewrap sandbox, a signature), kills it, fills its disk, and flips bits in what it keeps.
`.venv/bin/python -m tests.reliability --seed N` tries other moments, points and bits.

*Lost* would be a wrong artifact, a signature over one, a store that holds wrong bytes unnoticed, or a
process that is left. *Noticed* was reported, by a build or by `rocwright store verify`. *Harmless* gave the
right bytes.
"""


def page(tried: Tried) -> str:
    """The page of what was tried, each part with the seed and the commit that it was tried with."""
    parts = [
        *_kills([Kill(**one) for one in tried.get("kills", {}).get("rows", ())]),
        *_said(tried, "kills"),
        *_points([Point(**one) for one in tried.get("disks", {}).get("rows", ())]),
        *_said(tried, "disks"),
        *_flips([Flip(**one) for one in tried.get("flips", {}).get("rows", ())]),
        *_said(tried, "flips"),
    ]
    return "\n".join([HEAD.rstrip(), *parts, ""])


def _said(tried: Tried, part: str) -> list[str]:
    return ["", f"{tried[part]['about']}."] if part in tried else ["", "Not tried."]


def _table(head: Sequence[str], body: Iterable[Sequence[object]]) -> list[str]:
    lines = [f"| {' | '.join(map(str, row))} |" for row in body]
    return ["", f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *lines]


def _kills(kills: Sequence[Kill]) -> list[str]:
    said = [
        "",
        "## Kills",
        "",
        "SIGKILL at a random moment. Afterwards every stored file is what its name says, every record has",
        "its outputs, no process, mount or sandbox is left (the build that a killed server began ends by",
        "itself), and the next builds give the right bytes: a step is stored whole or not at all.",
    ]
    return [*said, *_table(("killed", "tried", "before its end", "harmless", "lost"), rows([*kills]))]


def _points(points: Sequence[Point]) -> list[str]:
    body = []
    for kind in ("bytes", "inodes"):
        mine = [one for one in points if one.kind == kind]
        told = sum(one.ended == "told" for one in mine)
        lost = sum(bool(one.wrong) for one in mine)
        body.append((kind, len(mine), told, sum(one.ended == "built" for one in mine), lost))
    said = [
        "",
        "## Full disks",
        "",
        "The disk of the home folder is full at a random point of a build. Noticed: the build ends with the",
        "class *out of disk*, and with room again the next one gives the right bytes. Harmless: what was",
        "left was enough.",
    ]
    return [*said, *_table(("short of", "tried", "noticed", "harmless", "lost"), body)]


def _flips(flips: Sequence[Flip]) -> list[str]:
    body, why = [], Counter[tuple[str, str]]()
    for kind in KINDS:
        mine = [one for one in flips if one.kind == kind]
        body.append(
            (kind, len(mine), *(sum(one.outcome == word for one in mine) for word in WORDS), WHY[kind])
        )
    for one in flips:
        why[one.kind, one.why] += one.outcome == "lost"
    lost = [f"- {kind}: {said} ({count})" for (kind, said), count in why.items() if count]
    said = [
        "",
        "## Flipped bits",
        "",
        "One bit of one file, size and time as before. Then the artifacts are laid out again, mostly after",
        "their steps were forgotten, so that what was flipped is used; and `store verify` looks.",
    ]
    head = ("in", "tried", *WORDS, "harmless, because")
    return [*said, *_table(head, body), *(["", "Lost:", "", *lost] if lost else [])]


WORDS = ("noticed", "harmless", "lost")
WHY = {
    "blob": "-",
    "record": "-",
    "step definition": "a definition that no step to run needs is written anew",
    "unpacked root": "no step ran in it",
    "database": "nothing that is built, signed or promoted rests on it alone",
    "lock": "white space, or a field that is only told",
    "compiler cache": "ccache checks its entries, and compiles again",
}
