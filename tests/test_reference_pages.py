"""The pages that are made when the site is built: each verb, stack, row and known issue has its anchor."""

from __future__ import annotations

import re

from tools.reference_pages import pages

from rocwright.catalog.issue import the_issues
from rocwright.catalog.load import builtin_catalog
from rocwright.cli import SECTIONS

PAGES = pages()


def anchors(page: str) -> list[str]:
    """Return the anchors of the headings of a generated page, which are outside of its blocks."""
    prose = re.sub(r"^```.*?^```", "", PAGES[page], flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"^#+ .*\{#(\S+)\}$", prose, re.MULTILINE)


def test_each_verb_stack_and_issue_has_one_anchor() -> None:
    wanted = {
        "commands.md": [verb for section in SECTIONS.values() for verb in section],
        "rows.md": list(builtin_catalog().stacks),
        "known-issues.md": list(the_issues()[0]),
        "schema.md": ["request", "component", "release", "stack", "stackrow", "base", "edit"],
    }
    for page, names in wanted.items():
        found = anchors(page)
        assert [name for name in names if name not in found] == [], page
        assert len(found) == len(set(found)), page
    assert set(PAGES) == set(wanted)


def test_a_verb_of_a_verb_has_an_anchor_and_its_options() -> None:
    section = PAGES["commands.md"].split("{#patch-check}")[1].split("\n#")[0]
    assert "`rocwright patch check [OPTIONS] COMPONENT [PATCHES]...`" in section
    assert "| `--versions TEXT` |" in section


def test_a_row_has_its_versions_and_its_evidence() -> None:
    section = PAGES["rows.md"].split("{#llama-hip}")[1].split("\n## ")[0]
    assert re.search(r"\n\| gfx803 \| debian:sid \| .*llama.cpp-hip \d+ \(distribution\)", section)
    assert "| checked without a GPU | 139 code objects" in section
