"""The badge says what the page says, and of how much."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest
from tools.coverage_page import badge, page

DOCS = Path(__file__).parents[1] / "docs"
FOUND = Counter({("plan", "all"): 200, ("plan", "run"): 150, ("store", "all"): 100, ("store", "run"): 100})


def test_the_badge_has_the_figure_of_all_packages() -> None:
    svg = badge(page(FOUND, "Measured today: all fast tests.", set()))
    assert ET.fromstring(svg)[0].text == "coverage: 83.3 %"


def test_the_badge_of_a_part_says_that_it_is_one() -> None:
    svg = badge(page(FOUND, "Measured today: the fast tests of plan, store, and their packages.", set()))
    assert ET.fromstring(svg)[0].text == "coverage of 2 packages: 83.3 %"


def test_a_page_without_a_figure_has_no_badge() -> None:
    with pytest.raises(ValueError, match="no row"):
        badge("# Coverage\n")


def test_the_badge_that_is_shown_is_that_of_the_page() -> None:
    assert (DOCS / "img/coverage.svg").read_text() == badge((DOCS / "coverage.md").read_text())
