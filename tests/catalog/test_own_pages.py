"""No fact has a page of our own as its source: a page can say what a fact says, and prove nothing."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import rocwheel
from rocwright.catalog.folders import DATA

ROOT = Path(__file__).parents[2]
TABLES = sorted({*DATA.rglob("*.toml"), *(Path(rocwheel.__file__).parent / "data").rglob("*.toml")})
PAGE = r"(?:docs/[\w./-]*|(?:benchmarks/)?(?:README|CONTRIBUTING|SECURITY|CHANGELOG|RESULTS))\.md\b"
# a page that is not behind the name of its project, such as "ollama docs/gpu.md", is ours
OURS = re.compile(rf"(?:^|[;,(]) *({PAGE})")


def own_pages(source: str) -> list[str]:
    """Return the pages of this project in a source, wherever in the text they are named."""
    ours = [match[1] for match in OURS.finditer(source)]
    return ours + [page for page in re.findall(r"\bdocs/[\w./-]*\.md\b", source) if (ROOT / page).exists()]


def sources(value: object) -> Iterator[str]:
    """Yield each source in a table, whatever it is in."""
    if isinstance(value, list):
        for each in value:
            yield from sources(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key in ("source", "sources"):
                yield from (
                    (each,) if isinstance(each, str) else filter(lambda text: isinstance(text, str), each)
                )
            yield from sources(each)


def test_no_source_of_a_fact_is_a_page_of_our_own() -> None:
    named = {
        f"{path.name}: {source}"
        for path in TABLES
        for source in sources(tomllib.loads(path.read_text()))
        if own_pages(source)
    }
    assert len(TABLES) > 100
    assert named == set()


def test_a_page_of_our_own_is_told_from_one_of_another_project() -> None:
    ours = (
        "docs/concepts.md",
        "rocwright rehearse; docs/nowhere.md",
        "built (docs/x/y.md)",
        "CONTRIBUTING.md, how",
    )
    assert all(own_pages(source) for source in ours)
    others = ("ollama docs/gpu.md (gfx1034)", "ROCm/TheRock docs/a.md @89553ce", "TheRock README.md")
    assert not any(own_pages(source) for source in others)
    assert own_pages("our docs/concepts.md")


def test_a_test_that_is_a_source_is_there() -> None:
    tests = {test for path in TABLES for test in re.findall(r"\"(tests/[\w/]+\.py)", path.read_text())}
    assert tests
    assert [test for test in tests if not (ROOT / test).exists()] == []
