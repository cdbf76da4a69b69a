"""What the README claims of stacks is what evidence says of them."""

from __future__ import annotations

import re
from pathlib import Path

from rocwright.catalog.load import the_catalog
from rocwright.records.model import SAID
from rocwright.verify.standing import standings

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_as_many_stacks_have_been_built_as_it_says() -> None:
    found = standings(the_catalog(), plans=False)
    built = {
        one.stack for one in found for seen in one.evidence if SAID.index(seen.said) >= SAID.index("built")
    }
    said = re.search(r"- (\d+) of (\d+) stacks \[have been built", README)
    assert said is not None
    assert [int(number) for number in said.groups()] == [len(built), len({one.stack for one in found})], built


def test_none_ran_on_an_amd_gpu_as_long_as_it_says_so() -> None:
    ran = [
        one.stack
        for one in standings(the_catalog(), plans=False)
        for seen in one.evidence
        if seen.said == SAID[-1]
    ]
    assert bool(ran) != ("No stack has run on an AMD GPU yet" in README), ran
