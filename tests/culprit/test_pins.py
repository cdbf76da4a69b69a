"""The difference of two locks in pieces."""

from __future__ import annotations

import pytest

from rocwright.culprit.pins import mix, parts, pins
from rocwright.errors import InputError
from rocwright.plan.model import FilePin
from rocwright.resolve.model import Lock
from tests.making import deb, lock_of


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


def test_locks_of_two_stacks_have_no_common_difference() -> None:
    with pytest.raises(InputError, match="different requests"):
        pins(lock_of("gfx-smoke"), lock_of("llama-vulkan"))
