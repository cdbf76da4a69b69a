"""The known issues' page of the documentation."""

from __future__ import annotations

from pathlib import Path

from rocwheel.toml.read import Reader
from rocwright.catalog.folders import DATA
from rocwright.catalog.issue import read_issues
from rocwright.doctor.page import as_markdown


def test_the_page_is_what_the_command_says() -> None:
    page = Path(__file__).parents[2] / "docs" / "known-issues.md"
    assert as_markdown(read_issues(Reader((DATA,))).values()) in page.read_text(), (
        "rocwright issues --markdown writes it"
    )


def test_the_page_says_first_what_it_is() -> None:
    page = (Path(__file__).parents[2] / "docs" / "known-issues.md").read_text()
    before = page.partition("\n## ")[0]
    assert page.startswith("# Known issues\n")
    assert "rocwright diagnose" in before
    assert "rocwright catalog check" in before
