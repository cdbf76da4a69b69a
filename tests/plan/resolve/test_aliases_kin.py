"""A release that is like one that is itself only like another."""

from __future__ import annotations

from rocwheel_samples.tables import each
from rocwright.plan.resolve.aliases import known_kin


@each(
    ("pin", "before", "says"),
    [
        ("0.1.2 like 0.1.1", "0.1.1 like 0.1.0", "0.1.2 like 0.1.0"),
        ("0.1.2 like 0.1.0", "0.1.1 like 0.1.0", "0.1.2 like 0.1.0"),
        ("0.1.2 like 0.1.1", "", "0.1.2 like 0.1.1"),
        ("0.1.2", "0.1.1 like 0.1.0", "0.1.2"),
        ("", "0.1.1 like 0.1.0", ""),
    ],
)
def test_a_pin_names_a_release_that_the_catalog_knows(pin: str, before: str, says: str) -> None:
    assert known_kin(pin, before) == says
