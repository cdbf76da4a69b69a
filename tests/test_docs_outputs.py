"""What pages show of commands is what the commands print."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.docs_outputs import ROOT, Marked, marked, output, pages, rewrite, served, unvarying

BLOCKS = [one for page in pages() for one in marked(page)]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda one: f"{one.page.name}: {one.words}")
def test_a_page_shows_what_the_command_prints(block: Marked) -> None:
    assert block.told == output(block.words, refused=block.refused), "make docs-outputs writes it anew"


def test_there_are_marked_blocks() -> None:
    assert BLOCKS


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


def test_what_a_page_shows_of_a_server_is_compared_without_what_varies(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    told = "it runs: x 1.8 on cpu, after 0.5 s\n  page  http://127.0.0.1:8080/\n"
    told += "  curl -F a=@/home/you/servers/it/a\n"
    shown = f"$ rocwright run it\non: the processor\nstarting it on http://127.0.0.1:8080\n{told}"
    page.write_text(f"<!-- served: run it -->\n\n```\n{shown}```\n")
    (kept,) = served(page).values()
    other = told.replace("8080", "41234").replace("0.5 s", "12.0 s").replace("/home/you", "/tmp/x")
    assert kept == unvarying(other)
    for one in (other.replace("1.8", "1.9"), other.replace("curl", "wget"), other + "more\n"):
        assert kept != unvarying(one)


def test_each_block_of_a_server_has_what_is_printed_once_it_runs() -> None:
    shown = served(ROOT / "docs" / "run.md")
    assert len(shown) >= 3
    for words, told in shown.items():
        stack = words.split()[1]
        assert told.startswith(f"{stack} runs: ") and told.endswith(f"\nrocwright stop {stack}\n")


def test_a_mark_of_a_server_without_a_block_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("<!-- served: run it -->\n\nno block\n")
    with pytest.raises(ValueError, match="not followed by a block"):
        served(tmp_path / "page.md")
