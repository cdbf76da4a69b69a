"""The difference of two locks in pieces."""

from __future__ import annotations

import pytest
from tests.making import deb, lock_of

from rocbase.errors import InputError
from rocwright.follow.bisection.pins import mix, parts, pins
from rocwright.model.steps import FilePin
from rocwright.plan.resolve.model import Lock


def with_packages(lock: Lock, *packages: FilePin, **provided: str) -> Lock:
    roots = tuple(root.model_copy(update={"packages": packages}) for root in lock.roots)
    return lock.model_copy(update={"roots": roots, "provided": {**lock.provided, **provided}})


def test_packages_of_one_source_are_one_piece() -> None:
    lock = lock_of("gfx-smoke")
    good = with_packages(lock, deb("gcc", "14.1-1"), deb("cpp", "14.1-1"), deb("zlib", "1-1"), python="3.13")
    bad = with_packages(lock, deb("gcc", "15.1-1"), deb("cpp", "15.1-1"), deb("zlib", "1-2"), python="3.14")
    (base,) = pins(good, bad)
    assert base.name == "the base"
    pieces = {one.label for one in parts(base)}
    assert pieces == {"cpp and 1 more 14.1-1 -> 15.1-1", "zlib 1-1 -> 1-2", "python 3.13 -> 3.14"}
    assert mix(good, bad, [base]) == bad
    assert mix(good, bad, parts(base)) == bad
    assert mix(good, bad, []) == good


def test_what_a_base_brings_along_goes_with_its_package() -> None:
    lock = lock_of("gfx-smoke")
    good = with_packages(lock, deb("python3-torch", "2.6.0+dfsg-7"), deb("zlib", "1-1"), pytorch="2.6.0")
    bad = with_packages(lock, deb("python3-torch", "2.7.1+dfsg-1"), deb("zlib", "1-2"), pytorch="2.7.1")
    (base,) = pins(good, bad)
    names = {frozenset(change.name for change in piece.changes) for piece in parts(base)}
    assert names == {frozenset({"pytorch", "python3-torch"}), frozenset({"zlib"})}


def test_a_version_that_is_asked_for_goes_with_its_component() -> None:
    def at(version: str, **asked: str) -> Lock:
        lock = lock_of("gfx-smoke")
        (part,) = lock.components
        request = lock.request.model_copy(update={"versions": asked})
        moved = part.model_copy(update={"version": version})
        return lock.model_copy(update={"request": request, "components": (moved,)})

    good = at("0.1.1", **{"gfx-smoke": "0.1.1 like 0.1.0", "other": "1"})
    bad = at("0.1.2", **{"gfx-smoke": "0.1.2 like 0.1.0", "other": "2"})
    one, rest = pins(good, bad)
    assert (one.label, one.part) == ("gfx-smoke 0.1.1 -> 0.1.2", "component")
    assert rest.name == "what is asked for"
    assert mix(good, bad, [one]).request.versions == {"gfx-smoke": "0.1.2 like 0.1.0", "other": "1"}
    assert mix(good, bad, [rest]).request.versions == {"gfx-smoke": "0.1.1 like 0.1.0", "other": "2"}


def test_locks_of_two_stacks_have_no_common_difference() -> None:
    with pytest.raises(InputError, match="different requests"):
        pins(lock_of("gfx-smoke"), lock_of("llama-vulkan"))
