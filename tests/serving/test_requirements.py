"""What wheels require, and what of it is lacking."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.requirements import Requirement
from samples.making import index_pin

from rocwright.model.steps import FilePin
from rocwright.serving.prepare import lacking, needed

MARKERS = {"python_version": "3.13", "sys_platform": "linux", "platform_machine": "x86_64"}


def wants(*texts: str) -> list[Requirement]:
    return [Requirement(text) for text in texts]


def test_what_nothing_brings_is_lacking() -> None:
    there = {"numpy": "2.2.4", "jinja2": "3.1.6"}
    assert lacking(wants("numpy", "Jinja2>=3", "sympy==1.13.1"), there, MARKERS) == ("sympy==1.13.1",)


def test_another_version_than_is_asked_for_is_lacking() -> None:
    assert lacking(wants("numpy<2"), {"numpy": "2.2.4"}, MARKERS) == ("numpy<2",)


def test_a_pre_release_that_is_there_answers() -> None:
    assert not lacking(wants("torch>=2.9"), {"torch": "2.10.0a0"}, MARKERS)


def test_the_markers_are_those_of_the_environment() -> None:
    wanted = wants("old; python_version < '3.11'", "extra; extra == 'test'", "new; python_version >= '3.13'")
    assert lacking(wanted, {}, MARKERS) == ("new",)


def pins(*names: str) -> tuple[FilePin, ...]:
    return tuple(index_pin(f"{name}-1.0-py3-none-any.whl", name, "1.0") for name in names)


REQUIRES = {
    "server": ["torch", "web[standard]", "old; python_version < '3'"],
    "torch": ["giant-of-the-index"],
    "web": ["loop; extra == 'standard'", "other; extra == 'other'"],
}


def requires(some: Sequence[FilePin]) -> list[list[Requirement]]:
    return [wants(*REQUIRES.get(pin.filename.partition("-1.0")[0], ())) for pin in some]


def test_what_is_there_and_what_only_that_requires_does_not_come_from_the_index() -> None:
    all_ = pins("server", "torch", "giant-of-the-index", "web", "loop", "other", "old")
    found = needed(["server"], all_, requires, {"torch": "2.8.0"}, MARKERS)
    assert {one.filename.partition("-1.0")[0] for one in found} == {"server", "web", "loop"}


def test_extras_that_are_asked_for_later_are_followed_too() -> None:
    found = needed(["web", "web[standard]"], pins("web", "loop"), requires, {}, MARKERS)
    assert len(found) == 2
