"""The table of docs/extending.md: ten changes, each with few files, all of them where it says."""

from __future__ import annotations

import re
from pathlib import Path

from rocwheel_samples.tables import each

ROOT = Path(__file__).parents[1]
MOST = 6
PATH = re.compile(r"(\*new\* )?`((?:src|packages)/[^`]+|pyproject\.toml)`")


COMING = ("packages/rocwheel", "src/rocwright/model/architecture.py")
"""Where files are about to move: what lies there counts from the day on which that is there."""


def rows() -> dict[str, list[tuple[str, bool]]]:
    """Change -> its files, each with whether it is new."""
    table = (ROOT / "docs/extending.md").read_text().partition("| change |")[2].partition("\n\n")[0]
    cells = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return {name: [(path, bool(new)) for new, path in PATH.findall(" ".join(more))] for name, *more in cells}


def is_coming(path: str) -> bool:
    return any(path.startswith(one) and not (ROOT / one).exists() for one in COMING)


def test_the_eleven_changes_are_there() -> None:
    assert len(rows()) == 11


@each("change", rows())
def test_a_change_touches_few_files_and_each_is_there_unless_it_is_new(change: str) -> None:
    files = rows()[change]
    assert 1 <= len({path for path, _ in files}) <= MOST
    for path, new in files:
        if is_coming(path):
            continue
        place = ROOT / path
        assert place.is_file() is not new, path
        assert place.parent.is_dir(), path
