"""What is otherwise about a release on some bases: its source, settings, packages and preparation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rocwheel_samples.tables import each
from rocwright.catalog.load import Catalog, builtin_catalog
from rocwright.catalog.model import Component, Release, Stack, SystemNeeds
from rocwright.catalog.place import BuiltinPlace, DebianPlace
from rocwright.model.steps import Plan, RunAction
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.aliases import catalog_for
from rocwright.plan.resolve.lock import make_lock
from rocwright.plan.resolve.model import Lock, Request
from rocwright.plan.resolve.upstream import OfflineUpstream

CATALOG = builtin_catalog()
BASES = ("debian:sid", "debian:trixie")


@pytest.fixture
def catalog() -> Catalog:
    """A component that is built from another source, with other settings, on debian:sid."""
    it = Component.model_validate(
        {
            "name": "it",
            "summary": "x",
            "license": "MIT",
            "kind": "archive",
            "python": ["wheel"],
            "prepare": ["last"],
            "run": ["make"],
            "system": {"build": ["c++"]},
            "env": {"A": "recipe", "B": "recipe", "C": "recipe"},
            "release": [
                {
                    "version": "1.0",
                    "places": [{"builtin": "it"}],
                    "needs": {"cmake": "<4"},
                    "env": {"B": "release", "C": "release"},
                    "source": "x",
                    "on": [
                        {
                            "bases": ["debian:s*"],
                            "places": [{"debian": "it", "packaging": ["headers"]}],
                            "needs": {"cmake": ">=3.27"},
                            "env": {"C": "base"},
                            "system": {"build": ["ninja"]},
                            "python": ["six"],
                            "prepare": ["first"],
                            "why": "the archive has its own",
                        }
                    ],
                }
            ],
        }
    )
    stack = Stack(name="it", summary="x", components=("it",), bases=BASES, source="x")
    return replace(CATALOG, components={**CATALOG.components, "it": it}, stacks={"it": stack})


def locked(catalog: Catalog, base: str) -> tuple[Lock, Plan]:
    request = Request(stack="it", gpu=("gfx803",), base=base)
    lock = make_lock(request, catalog, OfflineUpstream(), lambda _: None)
    return lock, make_plan(lock, catalog)


def commands(plan: Plan, name: str) -> RunAction:
    (step,) = (one for one in plan.steps if one.name == name)
    assert isinstance(step.action, RunAction)
    return step.action


def test_on_its_bases_it_has_another_source_settings_packages_and_preparation(catalog: Catalog) -> None:
    lock, plan = locked(catalog, "debian:sid")
    (it,) = lock.components
    assert (it.kind, it.packaging) == ("debian", ("headers",))
    root = lock.root("build")
    assert root is not None
    assert root.wanted == ("g++", "ninja-build")
    assert lock.python is not None
    assert {"six", "wheel"} < set(lock.python.wanted)
    assert {name: commands(plan, "it").env[name] for name in "ABC"} == {
        "A": "recipe",
        "B": "release",
        "C": "base",
    }
    assert commands(plan, "prepare/it").commands[:2] == ("first", "last")
    tree = next(one for one in plan.steps if one.name == "tree/it").action
    assert tree.model_dump()["packaging"] == ("headers",)


def test_on_other_bases_it_is_as_the_release_says(catalog: Catalog) -> None:
    lock, plan = locked(catalog, "debian:trixie")
    (it,) = lock.components
    assert (it.kind, it.packaging) == ("builtin", ())
    root = lock.root("build")
    assert root is not None
    assert root.wanted == ("g++",)
    assert commands(plan, "it").env["C"] == "release"
    assert commands(plan, "prepare/it").commands[:1] == ("last",)


def test_what_it_needs_of_others_is_otherwise_too(catalog: Catalog) -> None:
    def needs(base: str) -> dict[str, str]:
        request = Request(stack="it", gpu=("gfx803",), base=base)
        return catalog_for(request, catalog).component("it").released("1.0").needs

    assert needs("debian:sid") == {"cmake": ">=3.27"}
    assert needs("debian:trixie") == {"cmake": "<4"}


def test_the_first_entry_that_names_a_base_holds(catalog: Catalog) -> None:
    release = catalog.component("it").released("1.0")
    (one,) = release.on
    other = one.model_copy(update={"env": {"C": "other"}})
    both = release.model_copy(update={"on": (one, other)})
    assert both.for_base("debian:sid").env["C"] == "base"
    assert both.for_base("debian:sid").on == ()


def test_all_places_of_a_release_are_there_for_who_looks_at_all() -> None:
    release = Release.model_validate(
        {
            "version": "1",
            "places": [{"builtin": "a"}],
            "on": [{"bases": ["debian:*"], "places": [{"debian": "a"}], "why": "x"}],
            "source": "x",
        }
    )
    assert release.every_place == (BuiltinPlace(builtin="a"), DebianPlace(debian="a"))


def test_packages_of_both_are_wanted() -> None:
    both = SystemNeeds(build=("a",), run=("b",)) + SystemNeeds(build=("c",), rocm=("d",), check=("e",))
    assert both == SystemNeeds(build=("a", "c"), rocm=("d",), run=("b",), check=("e",))


def test_a_release_has_names_of_packages_of_its_own() -> None:
    """Debian's experimental has a newer clang than sid, and an RCCL that can be installed."""

    def packages(base: str) -> set[str]:
        request = Request(stack="pytorch", gpu=("gfx1100",), base=base)
        root = make_lock(request, CATALOG, OfflineUpstream(), lambda line: None).root("build")
        assert root is not None
        return {*root.wanted}

    above, below = packages("debian:experimental"), packages("debian:sid")
    assert above - below >= {"librccl-dev", "librocm-core-dev", "rocm-device-libs-22"}
    assert "rocm-device-libs-21" in below - above


@each(("base", "packages"), [("5.4.2", ("hip-dev",)), ("6.4.1", ("hipcc",))])
def test_the_compiler_of_hip_is_in_the_package_that_has_it_in_that_release(
    base: str, packages: tuple[str, ...]
) -> None:
    found, _ = CATALOG.base(f"rocm-ubuntu-22.04:{base}")
    assert CATALOG.system_packages(found, ("hip-compiler",)) == packages
