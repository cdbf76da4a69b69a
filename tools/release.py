"""What a release must hold: `check TAG` before anything is published, `notes TAG` from the changelog."""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Stands in settings that are filled in where the project gets a home.
PLACEHOLDER = "OWNER"


def version(root: Path = ROOT) -> str:
    """The version, from the one place that has it. Raises SystemExit where it has none."""
    text = (root / "packages/rocwheel/src/rocwheel/version.py").read_text()
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise SystemExit('packages/rocwheel/src/rocwheel/version.py has no line __version__ = "..."')
    return found[1]


def notes(number: str, root: Path = ROOT) -> str:
    """The changelog's section of a version. Raises SystemExit where there is none with a day."""
    text = (root / "CHANGELOG.md").read_text()
    head = rf"^## \[{re.escape(number)}\] - \d{{4}}-\d{{2}}-\d{{2}}$"
    found = re.search(head + r"\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit(f"CHANGELOG.md has no section `## [{number}] - YYYY-MM-DD`")
    return found[1].strip() + "\n"


def projects(root: Path = ROOT) -> dict[str, Path]:
    """Each distribution's name and its pyproject.toml."""
    files = [root / "pyproject.toml", *sorted(root.glob("packages/*/pyproject.toml"))]
    return {tomllib.loads(file.read_text())["project"]["name"]: file for file in files}


def wrong(tag: str, root: Path = ROOT) -> Iterator[str]:
    """What is not as a release of `tag` must be."""
    number = version(root)
    if tag != f"v{number}":
        yield f"the tag is {tag}, the version in packages/rocwheel/src/rocwheel/version.py is {number}"
    try:
        if not notes(number, root).strip():
            yield f"the section of {number} in CHANGELOG.md is empty"
    except SystemExit as error:
        yield str(error)
    for file in (*projects(root).values(), root / ".github/CODEOWNERS"):
        if PLACEHOLDER in file.read_text():
            yield f"{file.relative_to(root)} still has the placeholder {PLACEHOLDER}"
    for name in projects(root):
        number_of = number if name == "rocwright" else "*"
        for pattern in (f"{name}-{number_of}-*.whl", f"{name}-{number_of}.tar.gz"):
            if not [*(root / "dist").glob(pattern)]:
                yield f"there is no dist/{pattern}: make dist"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("check", "notes"))
    parser.add_argument("tag")
    asked = parser.parse_args()
    if asked.what == "notes":
        sys.stdout.write(notes(asked.tag.removeprefix("v")))
        return
    if found := list(wrong(asked.tag)):
        raise SystemExit("\n".join(found))


if __name__ == "__main__":
    main()
