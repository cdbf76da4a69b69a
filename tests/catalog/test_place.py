"""Places in a recipe."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rocwheel_samples.tables import each
from rocwright.catalog.place import BuiltinPlace


@each("name", ["../../etc", "/etc", "..", ".", "", "a/b", "-x"])
def test_a_tree_that_is_carried_has_a_name_and_no_path(name: str) -> None:
    with pytest.raises(ValidationError):
        BuiltinPlace(builtin=name)
    assert BuiltinPlace(builtin="gfx-smoke").builtin == "gfx-smoke"
