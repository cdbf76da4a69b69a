"""README claims of cards and stacks what the evidence says of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from rocwright.catalog.load import the_catalog
from rocwright.plan.resolve.evidence import shipped_evidence
from rocwright.records.model import SAID, Said
from rocwright.verify.standing import standings

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
ROWS = standings(the_catalog(), plans=False)
EVIDENCE = shipped_evidence(the_catalog())


def seen(*said: Said) -> Callable[[str], bool]:
    """Return whether evidence that names the card says one of these."""
    return lambda gpu: any(gpu in each.gpu and each.said in said for each in EVIDENCE)


MARKS: dict[str, Callable[[str], bool]] = {
    "defined": lambda gpu: any(row.gpu == gpu for row in ROWS),
    "built": seen(*SAID[SAID.index("built") :]),
    "emulated": seen("ran on an emulated GPU"),
    "ran": seen("ran on a GPU"),
}


def table() -> dict[str, dict[str, str]]:
    """Return the table of cards: target -> column -> mark."""
    lines = README.partition("| your card |")[2].partition("\n\n")[0].splitlines()
    columns = lines[0].strip("| ").split(" | ")
    rows = [line.strip("| ").split(" | ") for line in lines[2:]]
    return {
        re.findall(r"`(gfx\w+)`", card)[0]: dict(zip(columns, marks, strict=True)) for card, *marks in rows
    }


def test_each_mark_of_a_card_is_what_the_evidence_says() -> None:
    assert len(table()) >= 7
    mark = {True: "✓", False: "\N{EN DASH}"}
    marks = {gpu: {column: mark[holds(gpu)] for column, holds in MARKS.items()} for gpu in table()}
    assert table() == marks


def test_each_card_with_something_built_is_in_the_table() -> None:
    assert {gpu for each in EVIDENCE for gpu in each.gpu if MARKS["built"](gpu)} <= set(table())


def test_nothing_works_today_that_ran_on_no_card() -> None:
    ran = [row.stack for row in ROWS if any(each.said == "ran on a GPU" for each in row.evidence)]
    alpha = "nothing has run on a physical AMD GPU yet. If you own one, run `rocwright verify` and tell us."
    assert (alpha in " ".join(README[:600].split())) is not bool(ran)
    assert bool(ran) or not re.search(r"works? today", README)


def test_as_many_stacks_have_been_built_as_it_says() -> None:
    built = {
        row.stack for row in ROWS for each in row.evidence if SAID.index(each.said) >= SAID.index("built")
    }
    counts = re.search(r"- (\d+) of (\d+) stacks", README)
    assert counts is not None
    assert [int(number) for number in counts.groups()] == [len(built), len({row.stack for row in ROWS})], (
        built
    )
