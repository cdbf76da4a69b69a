from __future__ import annotations

import pytest

from rocbase.errors import InputError
from rocwheel.wheels.choose import ANY_GPU, ProcessorCode, Target, needed, targets
from rocwheel_samples.tables import each

KNOWN = {"gfx803", "gfx90a", "gfx1100", "gfx1151", "gfx11-generic"}
COVERED = {"gfx11-generic": {"gfx1100", "gfx1151"}}


def kept(held: list[str], *wanted: str) -> tuple[list[str], list[str]]:
    codes = [ProcessorCode({text.split(":")[0]}, tuple(text.split(":")[1:])) for text in held]
    numbers, missing = needed(codes, targets(wanted, KNOWN), COVERED)
    return [held[number] for number in sorted(numbers)], [str(one) for one in missing]


@each(
    ("held", "wanted", "stays"),
    [
        (["gfx803", "gfx1100"], "gfx803", ["gfx803"]),
        (["gfx803", "gfx1100", "gfx1151"], "gfx1151,gfx803", ["gfx803", "gfx1151"]),
        # a feature that is left open runs on either setting, a fixed one on its own
        (["gfx90a"], "gfx90a:xnack+", ["gfx90a"]),
        (["gfx90a:xnack+", "gfx90a:xnack-"], "gfx90a", ["gfx90a:xnack+", "gfx90a:xnack-"]),
        (["gfx90a:xnack+", "gfx90a:xnack-"], "gfx90a:xnack-", ["gfx90a:xnack-"]),
        (
            ["gfx90a:sramecc+:xnack-", "gfx90a:sramecc-:xnack-", "gfx90a:xnack+"],
            "gfx90a:sramecc+",
            ["gfx90a:sramecc+:xnack-", "gfx90a:xnack+"],
        ),
        # code of its own, else generic code, else SPIR-V
        (["gfx1100", "gfx11-generic", ANY_GPU], "gfx1100", ["gfx1100"]),
        (["gfx1100", "gfx11-generic", ANY_GPU], "gfx1151", ["gfx11-generic"]),
        (["gfx1100", ANY_GPU], "gfx1151", [ANY_GPU]),
        (["gfx1100", "gfx11-generic"], "gfx1100,gfx1151", ["gfx1100", "gfx11-generic"]),
        (["gfx1100", "gfx11-generic"], "gfx11-generic", ["gfx11-generic"]),
    ],
)
def test_what_runs_on_the_target_stays(held: list[str], wanted: str, stays: list[str]) -> None:
    assert kept(held, wanted) == (stays, [])


@each(
    ("held", "wanted"),
    [
        (["gfx803"], "gfx1151"),
        (["gfx90a:xnack+"], "gfx90a:xnack-"),
        (["gfx11-generic"], "gfx803"),
        ([], "gfx803"),
    ],
)
def test_a_target_that_nothing_runs_on_is_missing(held: list[str], wanted: str) -> None:
    assert kept(held, wanted) == ([], [wanted])


def test_targets_are_read_with_commas_and_each_once() -> None:
    found = targets(["gfx1151, gfx803", "gfx90a:xnack-:sramecc+", "gfx803"], KNOWN)
    assert found == (
        Target("gfx1151"),
        Target("gfx803"),
        Target("gfx90a", ("sramecc+", "xnack-")),
    )
    assert found[2].in_version == "gfx90a.srameccon.xnackoff"


@each("text", ["", "gfx9999", "all", "gfx90a:xnack", "gfx1151;rm -rf", "../gfx803", ","])
def test_what_is_no_target_is_an_input_error(text: str) -> None:
    with pytest.raises(InputError, match="unknown GPU target"):
        targets([text], KNOWN)
