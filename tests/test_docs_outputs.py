"""What pages show of commands is what the commands print."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.docs_outputs import Marked, marked, output, pages, rewrite

BLOCKS = [one for page in pages() for one in marked(page)]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda one: f"{one.page.name}: {one.words}")
def test_a_page_shows_what_the_command_prints(block: Marked) -> None:
    assert block.told == output(block.words, refused=block.refused), "make docs-outputs writes it anew"


def test_there_are_marked_blocks() -> None:
    assert len(BLOCKS) >= 4


def test_what_a_page_shows_wrongly_is_written_anew(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n\n<!-- output: --version -->\n\n```\n$ rocwright --version\nold\n```\n\nafter\n")
    assert rewrite(page)
    assert "```\n$ rocwright --version\nrocwright, version " in page.read_text()
    assert page.read_text().endswith("```\n\nafter\n")
    assert not rewrite(page)


def test_a_mark_without_a_block_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("<!-- output: --version -->\n\nno block\n")
    with pytest.raises(ValueError, match="not followed by a block"):
        marked(tmp_path / "page.md")


def test_a_refusal_is_shown_as_it_is_and_nothing_else_as_one(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- refused: stacks nowhere -->\n\n```\nold\n```\n")
    assert rewrite(page)
    assert "$ rocwright stacks nowhere\nerror[input] " in page.read_text()
    page.write_text("<!-- refused: --version -->\n\n```\nold\n```\n")
    with pytest.raises(ValueError, match="was not refused"):
        rewrite(page)
