"""The programs that a tree's CMake files call by name, which its build needs a system package for."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from rocwright.sources.archive import walk

# Larger files of a build are lists that somebody generated.
_LARGEST = 1024 * 1024

_COMMAND = re.compile(r"\bCOMMAND\s+((?:[^\s()]+\s+){0,12}[^\s()]+)")

# What stands before a program: `${CMAKE_COMMAND} -E env A=B --`, or a variable with such words.
_BEFORE = re.compile(r'"?\$\{[A-Za-z_]*\}"?|-E|env|--|--unset=.*|"?[A-Za-z_]+=.*')


def programs_called(tree: Path, names: Collection[str]) -> dict[str, str]:
    """The programs among `names` that commands of a tree's CMake files begin with -> the first file and line.

    Files through links are left out.
    """
    called: dict[str, str] = {}
    for path in walk(tree):
        if not (path.suffix == ".cmake" or path.name == "CMakeLists.txt") or path.is_symlink():
            continue
        if not path.is_file() or path.stat().st_size > _LARGEST:
            continue
        text = path.read_text(errors="replace")
        for program, start in _commands(text):
            if program in names:
                called.setdefault(program, f"{path.relative_to(tree)}:{text.count(chr(10), 0, start) + 1}")
    return called


def _commands(text: str) -> Iterator[tuple[str, int]]:
    for match in _COMMAND.finditer(text):
        words = (word for word in match[1].split() if not _BEFORE.fullmatch(word))
        yield next(words, "").strip('"').rpartition("/")[2], match.start(1)
