"""Wheel stacks that are to be built first."""

from __future__ import annotations

from rocwright.plan.resolve.model import Request
from rocwright.serving.wheels import not_built


def test_the_build_to_type_is_of_all_that_was_asked_for() -> None:
    asked = Request(
        stack="pytorch",
        gpu=("gfx803", "gfx1103"),
        base="debian:sid",
        extra=("gloo",),
        versions={"pytorch": "2.6.0"},
    )
    words = (
        "rocwright build pytorch --base debian:sid --gpu gfx803 --gpu gfx1103 --with gloo --set pytorch=2.6.0"
    )
    assert not_built(asked).next_step == words
