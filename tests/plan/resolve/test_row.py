"""What rows are called."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rocwright.plan.resolve.model import Request
from rocwright.plan.resolve.settings import ProjectFile

WORDS = st.sampled_from(["a", "b", "a-b", "a_b", "A", "1.0", "a+b", "a/b", "", "long" * 60])
NAMES = WORDS.filter(bool)
PINS = st.one_of(NAMES, st.sampled_from(["1.0.1 like 1.0", f"@{'0' * 40}", f"@{'1' * 40}"]))
REQUESTS = st.builds(
    Request,
    stack=NAMES,
    gpu=st.sampled_from([("gfx803",), ("gfx803", "gfx1151")]),
    base=st.sampled_from(["debian:sid", "debian:trixie", "rocm-ubuntu-24.04:6.4"]),
    provider=WORDS,
    extra=st.lists(NAMES, max_size=2, unique=True).map(lambda names: tuple(sorted(names))),
    versions=st.dictionaries(NAMES, PINS, max_size=2),
)


@given(REQUESTS, REQUESTS)
def test_rows_that_ask_for_something_else_have_another_name(one: Request, other: Request) -> None:
    assert (one.name == other.name) == (one == other)
    assert len(one.name) < 200 and "/" not in one.name and not one.name.startswith((".", "-"))


def test_a_name_says_what_tells_a_row_from_others() -> None:
    plain = Request(stack="vllm", gpu=("gfx1151",), base="debian:sid")
    assert (plain.variant, plain.name) == ("", "vllm_gfx1151_debian-sid")
    asked = {
        "provider": "amd",
        "extra": ("xformers",),
        "versions": {"torch": "2.6.0", "triton": f"@{'1' * 40}"},
    }
    other = plain.model_copy(update=asked)
    assert other.variant == "amd +xformers torch=2.6.0 triton@111111111111"
    assert other.name == "vllm_gfx1151_debian-sid_amd_+xformers_torch=2.6.0_triton@111111111111"


def test_a_matrix_has_each_row_once_whatever_the_order_of_its_words() -> None:
    row = {"stack": "vllm", "gpu": "gfx1151", "base": "debian:sid"}
    matrix = [
        row | {"extra": ["a", "b"]},
        row | {"extra": ["b", "a"]},
        row | {"versions": {"torch": "2.6.0"}},
    ]
    project = ProjectFile.model_validate(row | {"gpu": ["gfx1151"], "matrix": matrix})
    assert [one.variant for one in project.rows] == ["+a +b", "torch=2.6.0"]
