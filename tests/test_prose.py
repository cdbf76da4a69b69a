"""Pages say what is true now: no dates, and few figures, each beside the command that measures it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
]
MOST = 12
FIGURE = re.compile(r"<!-- figure: (make (\S+)[^>]*) -->")
# a base has a day in its name: arch:2025-10-28
DATE = re.compile(
    r"(?<![\w:.-])20\d\d-[01]\d-[0-3]\d|\b(?:January|February|October|November|December) 20\d\d\b"
)
# times that somebody took; limits are whole numbers of one unit
MEASURED = re.compile(
    r"\b\d+ h \d+ min\b|\b\d+ min \d+ s\b|\b\d+\.\d+ (?:s|ms|times|seconds|minutes)\b|\(\d+ %"
)


def prose(page: Path) -> dict[int, str]:
    """Return the lines of a page by number, without blocks and code."""
    blocks = re.compile(r"^ *(```|~~~).*?^ *\1", re.DOTALL | re.MULTILINE)
    text = blocks.sub(lambda match: "\n" * match[0].count("\n"), page.read_text())
    return {number: re.sub(r"`[^`]*`", "", line) for number, line in enumerate(text.splitlines(), 1)}


def matches(pattern: re.Pattern[str]) -> list[str]:
    """Return the places in all pages where a pattern matches prose."""
    return [
        f"{page.relative_to(ROOT)}:{number}: {line}"
        for page in PAGES
        for number, line in prose(page).items()
        if pattern.search(line)
    ]


def test_no_page_has_a_date() -> None:
    assert matches(DATE) == []


def test_few_figures_stand_in_pages_each_with_its_command() -> None:
    assert len(PAGES) > 40
    lines = [line for page in PAGES for line in prose(page).values()]
    figures = [match for line in lines for match in FIGURE.finditer(line)]
    assert 0 < len(figures) <= MOST
    goals = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [match[1] for match in figures if match[2] not in goals] == []
    assert [place for place in matches(MEASURED) if "<!-- figure: " not in place] == []


def test_dates_and_measured_times_are_told_from_names_and_limits() -> None:
    assert DATE.search("seen on 2026-11-21, here") and DATE.search("since November 2026")
    assert not DATE.search("on arch:2025-10-28") and not DATE.search("gfx1151")
    assert all(
        map(MEASURED.search, ("took 12 min 30 s", "2 h 54 min in all", "0.4 seconds", "in 536 (89 %)"))
    )
    assert not any(map(MEASURED.search, ("after 20 seconds", "ROCm 6.4 stays", "at most 10 min")))
