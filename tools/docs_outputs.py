"""Outputs in pages, made by the commands: `make docs-outputs` writes those that a mark names anew.

A mark is a comment above a block, `<!-- output: targets "RX 580" -->`: the block is what `rocwright` prints
for these words in an empty folder, with an empty home folder, without a network, in 100 columns. Below
`<!-- refused: ... -->` stands what it prints where it refuses. Below `<!-- served: ... -->` stands what it
prints of a server that must be built before: the tests that build it compare that.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = 100
NOWHERE = "http://127.0.0.1:1"

_MARKED = re.compile(
    r"<!-- (?P<kind>output|refused): (?P<words>[^\n]+) -->\n\n?```\n(?P<told>.*?)```\n",
    re.DOTALL,
)
_SERVED = re.compile(r"<!-- served: (?P<words>[^\n]+) -->\n\n?```\n(?P<told>.*?)```\n", re.DOTALL)
_STARTED = re.compile(r".*?^starting [^\n]*\n", re.DOTALL | re.MULTILINE)
# What is another from one start of a server to the next.
_VARIES = (
    (re.compile(r"(127\.0\.0\.1):\d+"), r"\1:PORT"),
    (re.compile(r"after [\d.]+ s$", re.MULTILINE), "after SECONDS"),
    (re.compile(r"[\d,]+ bytes"), "BYTES"),
    (re.compile(r"@/\S*/servers/"), "@HOME/servers/"),
)

_MARK = re.compile(r"^ *<!-- (output|refused):", re.MULTILINE)


class Marked(NamedTuple):
    """A block of a page: the words behind `rocwright`, what it says now, where that begins and ends, and
    whether it is a refusal."""

    page: Path
    words: str
    told: str
    begin: int
    end: int
    refused: bool


def marked(page: Path) -> list[Marked]:
    """The marked blocks of a page. Raises ValueError for a mark without a block."""
    text = page.read_text()
    found = [
        Marked(page, one["words"], one["told"], *one.span("told"), one["kind"] == "refused")
        for one in _MARKED.finditer(text)
    ]
    if len(found) != len(_MARK.findall(text)):
        raise ValueError(f"{page}: a mark is not followed by a block")
    return found


def served(page: Path) -> dict[str, str]:
    """What a page shows of servers once they are started, by the words behind `rocwright`, without what
    varies from one start to the next. Raises ValueError for a mark without such a block."""
    text = page.read_text()
    found = {one["words"]: unvarying(_STARTED.sub("", one["told"], 1)) for one in _SERVED.finditer(text)}
    if len(found) != text.count("<!-- served:"):
        raise ValueError(f"{page}: a mark is not followed by a block, or there twice")
    return found


def unvarying(text: str) -> str:
    """What is printed of a server, without its port, seconds, sizes and folder."""
    for pattern, instead in _VARIES:
        text = pattern.sub(instead, text)
    return text


def output(words: str, *, refused: bool = False) -> str:
    """The command and what it prints, as a page shows it. Raises CalledProcessError where it fails,
    ValueError where it was to be `refused` and is not."""
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), NOWHERE)
    with tempfile.TemporaryDirectory(prefix="rocwright-outputs-") as folder:
        done = subprocess.run(
            [sys.executable, "-m", "rocwright", *shlex.split(words)],
            cwd=folder,
            env=os.environ | proxies | {"ROCWRIGHT_HOME": f"{folder}/home", "COLUMNS": str(COLUMNS)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=not refused,
        )
    if refused and done.returncode == 0:
        raise ValueError(f"rocwright {words} was not refused")
    return f"$ rocwright {words}\n{done.stdout}"


def pages() -> Iterator[Path]:
    """The pages that may have marks."""
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").rglob("*.md"))


def rewrite(page: Path) -> bool:
    """Make the marked blocks of a page anew; whether it changed."""
    text = before = page.read_text()
    for one in reversed(marked(page)):
        text = text[: one.begin] + output(one.words, refused=one.refused) + text[one.end :]
    if text != before:
        page.write_text(text)
    return text != before


def main() -> None:
    for page in pages():
        if rewrite(page):
            print(f"written: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
