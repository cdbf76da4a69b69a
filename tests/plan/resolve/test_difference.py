"""What differs between two locks, and locks that take some of it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.making import deb, digest, index_pin, lock_of

from rocwheel_samples.tables import each
from rocwright.catalog.remedy import SetVariables
from rocwright.model.steps import FilePin, ImageOrigin, PackageOrigin
from rocwright.model.versions import package_order, step_between
from rocwright.plan.resolve.difference import BUILD_PYTHON, ROOT, PinChange, difference, taking
from rocwright.plan.resolve.model import Lock, LockedPython, Remedy
from rocwright.plan.resolve.tell_difference import tell_difference

BEFORE = lock_of("torch-extensions", "gfx803")


def changed(lock: Lock, **update: Any) -> Lock:
    return lock.model_copy(update=update)


def with_component(lock: Lock, name: str, **update: Any) -> Lock:
    parts = tuple(one.model_copy(update=update) if one.name == name else one for one in lock.components)
    return changed(lock, components=parts)


def with_packages(lock: Lock, role: str, *pins: FilePin, wanted: tuple[str, ...] = ()) -> Lock:
    roots = tuple(
        root.model_copy(update={"packages": pins, "wanted": wanted}) if root.role == role else root
        for root in lock.roots
    )
    return changed(lock, roots=roots)


def with_python(lock: Lock, **versions: str) -> Lock:
    files = tuple(index_pin(f"{name}-{one}-py3-none-any.whl", name, one) for name, one in versions.items())
    return changed(lock, python=LockedPython(version="3.13", wanted=("setuptools<90",), files=files))


def test_the_same_pins_are_no_difference_whenever_and_however_they_were_locked() -> None:
    assert not difference(BEFORE, changed(BEFORE, created="2026-01-01T00:00:00Z", rocwright="9"))
    assert tell_difference(difference(BEFORE, BEFORE)) == ["no difference"]


def test_a_components_version_is_told_with_its_step_and_its_age() -> None:
    after = with_component(BEFORE, "torchvision", version="0.21.1")
    found = difference(BEFORE, after)
    assert found.changes == (
        PinChange(part="component", name="torchvision", before="0.21.0", after="0.21.1", kind="patch"),
    )
    assert tell_difference(found, ages={"torchvision": 12}, again=("torchvision",)) == [
        "torchvision 0.21.0 -> 0.21.1 (patch, 12 days old)",
        "1 step will run again: torchvision",
    ]


def test_another_commit_under_the_same_version_is_told_by_its_commit() -> None:
    before = with_component(BEFORE, "torchvision", commit="a" * 40)
    after = with_component(BEFORE, "torchvision", commit="b" * 40)
    assert tell_difference(difference(before, after)) == [
        "torchvision 0.21.0 aaaaaaaaaaaa -> 0.21.0 bbbbbbbbbbbb (same version, another source)"
    ]


def test_packages_are_counted_once_for_all_roots_and_those_that_recipes_name_are_told() -> None:
    old = [deb(f"lib{number}", "1.0-1") for number in range(13)]
    new = [deb(f"lib{number}", "1.0-2") for number in range(13)]
    before = with_packages(BEFORE, "build", *old, deb("gcc", "14.2.0-16"), wanted=("gcc",))
    after = with_packages(BEFORE, "build", *new, deb("gcc", "14.2.0-19"), deb("more"), wanted=("gcc",))
    before, after = (
        with_packages(lock, "check", *pins, wanted=()) for lock, pins in ((before, old[:2]), (after, new[:2]))
    )
    newer, more = tell_difference(difference(before, after))
    assert newer.startswith(
        "14 packages of the roots to build and check newer, of them gcc 14.2.0-16 -> -19, "
    )
    assert more == "1 package of the root to build more: more 1.0-1"


def test_an_image_is_told_by_its_digest_and_packages_of_images_by_name() -> None:
    def image(digit: str) -> FilePin:
        origin = ImageOrigin(reference="registry.example/tiny:1", digest=f"sha256:{digit * 64}")
        return FilePin(filename="tiny.tar.zst", sha256=digit * 64, size=1, origin=origin)

    def package(asked: str) -> FilePin:
        origin = PackageOrigin(base="tiny", release="1", manager="tiny", image="1" * 64, package=asked)
        return FilePin(filename=f"{asked}.pkg", sha256=digest(asked), size=1, origin=origin)

    before = with_packages(BEFORE, "build", image("1"), package("a=1-1"), package("b-c-0:2.0-1.fc43.x86_64"))
    after = with_packages(BEFORE, "build", image("2"), package("a=1-2"), package("b-c-0:2.1-1.fc43.x86_64"))
    assert tell_difference(difference(before, after)) == [
        "image registry.example/tiny:1 sha256:111111111111 -> sha256:222222222222 "
        "(same version, another source)",
        "2 packages of the root to build newer: a 1-1 -> -2, b-c 2.0-1.fc43 -> 2.1-1.fc43",
    ]


def test_what_is_asked_for_is_told_first() -> None:
    request = BEFORE.request.model_copy(update={"gpu": ("gfx803", "gfx900")})
    assert tell_difference(difference(BEFORE, changed(BEFORE, request=request))) == [
        "request: gpu gfx803 -> gfx803, gfx900"
    ]


def test_taking_nothing_and_taking_all_give_the_two_locks() -> None:
    before = with_python(BEFORE, setuptools="80.0", six="1.0")
    after = with_component(with_python(BEFORE, setuptools="81.0", new="1.0"), "torchvision", version="0.22.1")
    found = difference(before, after).changes
    assert taking(before, after, ()) == before
    assert taking(before, after, found) == after


def remedy(issue: str, outcome: str = "helped", **variables: str) -> Remedy:
    told = {"issue": issue, "component": "torchvision", "version": "0.21.0", "step": "torchvision"}
    action = {"kind": "set", "variables": variables or {"A": "1"}}
    more = {"action": action, "why": "x", "since": "2026-01-01T00:00:00Z", "outcome": outcome}
    return Remedy.model_validate(told | more)


def test_remedies_that_builds_have_are_differences_and_are_taken_one_by_one() -> None:
    before = changed(BEFORE, remedies=(remedy("old"), remedy("same"), remedy("vain", "useless")))
    after = changed(BEFORE, remedies=(remedy("same", B="2"), remedy("new"), remedy("other", "useless")))
    found = difference(before, after)
    assert [(one.name, one.kind) for one in found.of("remedy")] == [
        ("old for torchvision", "gone"),
        ("same for torchvision", "other"),
        ("new for torchvision", "new"),
    ]
    for one in found.changes:
        mixed = taking(before, after, [one])
        assert difference(before, mixed).changes == (one,)
        assert remedy("vain", "useless") in mixed.remedies
    assert taking(before, after, ()) == before
    trial = changed(before, remedies=(remedy("old", "trial"), remedy("same")))
    assert not difference(before, trial), "what a remedy's outcome is called changes no build"


def test_the_root_itself_and_the_python_of_builds_are_taken_too() -> None:
    before = with_python(BEFORE, six="1.0")
    python = before.python
    assert python is not None
    other = tuple(root.model_copy(update={"env": {"A": "1"}}) for root in before.roots)
    after = changed(before, roots=other, python=python.model_copy(update={"version": "3.14"}))
    found = difference(before, after)
    assert {one.name for one in found.changes} == {ROOT, BUILD_PYTHON}
    for one in found.changes:
        assert difference(before, taking(before, after, [one])).changes == (one,)


@given(st.sets(st.integers(0, 5)))
def test_taking_some_differences_leaves_exactly_the_others(chosen: set[int]) -> None:
    before = with_packages(with_python(BEFORE, setuptools="80.0", six="1.0"), "build", deb("a"), deb("b"))
    after = with_packages(
        with_component(with_python(BEFORE, setuptools="81.0", new="1.0"), "torchvision", version="0.22.1"),
        "build",
        *(deb("a", "2.0-1"), deb("b", "2.0-1")),
    )
    every = difference(before, after).changes
    assert len(every) == 6
    some = [change for number, change in enumerate(every) if number in chosen]
    mixed = taking(before, after, some)
    assert set(difference(before, mixed).changes) == set(some)
    assert set(difference(mixed, after).changes) == set(every) - set(some)


@each(
    ("before", "after", "step"),
    [
        ("2.6.0", "2.6.1", "patch"),
        ("2.6", "2.6.0", "build"),
        ("2.6.0", "2.7.0", "minor"),
        ("2.6.0", "3.0.0", "major"),
        ("2.6.1", "2.6.0", "older"),
        ("14.2.0-16", "14.2.0-19", "build"),
        ("1:2.6.0+dfsg-7", "1:2.6.1+dfsg-1", "patch"),
        ("2.0-1", "1:1.0-1", "major"),
        ("1.0~rc1-1", "1.0-1", "build"),
        ("11312", "11400", "major"),
        ("2.6.0rc1", "2.6.0", "build"),
    ],
)
def test_how_far_one_version_is_from_another(before: str, after: str, step: str) -> None:
    assert step_between(before, after) == step


def test_versions_of_packages_stand_in_the_order_of_debians_policy() -> None:
    # each is older than the next; examples of deb-version(7) among them
    rising = [
        "~~",
        "~~a",
        "~",
        "0",
        "0a",
        "0+",
        "1.0~rc1",
        "1.0",
        "1.0-1",
        "1.0-1.1",
        "1.0-2",
        "1.0a",
        "1.0+b",
    ]
    rising += ["1.2", "1.10", "1:0.1"]
    assert sorted(rising, key=package_order) == rising


def test_a_remedy_that_is_in_force_is_told_and_taken() -> None:
    action = SetVariables(kind="set", variables={"CMAKE": "1"})
    remedy = Remedy(
        issue="old-cmake",
        component="torchvision",
        version="0.21.0",
        action=action,
        why="x",
        step="torchvision",
        outcome="helped",
        since="2026-01-01T00:00:00Z",
    )
    after = changed(BEFORE, remedies=(remedy,))
    found = difference(BEFORE, after)
    assert tell_difference(found) == ["remedy for old-cmake for torchvision in force (new)"]
    more = with_component(after, "torchvision", version="0.22.1")
    assert taking(BEFORE, more, found.changes) == after
