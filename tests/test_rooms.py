"""The floor plan that CONTRIBUTING tells is that of the folders, and that which `make lint` holds."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAYERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0][
    "layers"
]


def test_contributing_names_every_room_the_highest_first() -> None:
    told = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    floors = [re.split(r" [|:] ", floor) for floor in LAYERS]
    assert sorted(told) == sorted(room for floor in floors for room in floor if room != "__main__")
    place = {room: at for at, floor in enumerate(floors) for room in floor}
    assert told == sorted(told, key=place.__getitem__)


def test_every_room_says_in_a_line_what_it_is_for() -> None:
    package = ROOT / "src/rocwright"
    rooms = [path.parent for path in package.glob("*/__init__.py")]
    assert rooms
    silent = [room.name for room in rooms if not (room / "__init__.py").read_text().startswith('"""')]
    assert not silent
