"""Places in a recipe."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from rocwheel_samples.tables import each
from rocwright.catalog.place import BuiltinPlace, Place


@each("name", ["../../etc", "/etc", "..", ".", "", "a/b", "-x"])
def test_a_tree_that_is_carried_has_a_name_and_no_path(name: str) -> None:
    with pytest.raises(ValidationError):
        BuiltinPlace(builtin=name)
    assert BuiltinPlace(builtin="gfx-smoke").builtin == "gfx-smoke"


@each(
    "place, faults",
    [
        ({"git": "https://h.test/x", "tagg": "v1"}, [("git", "tagg")]),
        ({"git": "https://h.test/x"}, [("git",)]),
        ({"git": "https://h.test/x", "tag": "v1", "paths": ["../x"]}, [("git", "paths", 0)]),
        ({"gitt": "https://h.test/x"}, [()]),
        ({"url": "https://h.test/x", "sha": ""}, [("archive", "sha")]),
    ],
)
def test_a_wrong_place_is_told_once(place: dict[str, object], faults: list[tuple[str | int, ...]]) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Place).validate_python(place)
    assert [error["loc"] for error in caught.value.errors()] == faults
