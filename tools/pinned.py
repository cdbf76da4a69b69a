"""Print what rocbase, rocwheel and their build need, with hashes, for pip --require-hashes."""

from __future__ import annotations

import re
from pathlib import Path

ROWS = Path(__file__).parent.parent / "requirements/dev.txt"


def pinned(text: str) -> dict[str, str]:
    """Return the rows of rocbase and rocwheel, of what builds them, and of all that these need, by name."""
    rows = {row.partition("==")[0]: row for row in re.split(r"\n(?=\S)", text.strip())}
    needed_by = {name: {*re.findall(r"# (?:via|  ) *([\w.-]+)", row)} for name, row in rows.items()}
    needed, before = {"rocbase", "rocwheel", "hatchling"}, set[str]()
    while needed != before:
        before = needed
        needed = before | {name for name, parents in needed_by.items() if before & parents}
    return {name: row for name, row in rows.items() if name in needed}


if __name__ == "__main__":
    print("\n".join(pinned(ROWS.read_text()).values()))
