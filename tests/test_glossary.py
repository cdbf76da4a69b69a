"""The concepts page opens with the words that have one meaning everywhere."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs/concepts.md").read_text()
WORDS = {
    *("target", "base", "stack", "component", "recipe", "provider", "lock", "plan", "step", "key"),
    *("store", "artifact", "evidence", "row", "channel", "known issue", "remedy"),
    *("executor", "shard", "content", "quantisation", "as built, as laid out", "canonical form"),
    *("kpack archive",),
}


def test_the_glossary_comes_first_and_has_every_word_once() -> None:
    title, first, *_ = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    assert title.strip() == "# Concepts"
    assert first.startswith("Glossary\n")
    told = re.findall(r"^(.+)\n:   ", first, re.MULTILINE)
    assert len(told) == len(set(told))
    assert set(told) == WORDS
