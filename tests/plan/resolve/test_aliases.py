"""Releases that the catalog does not know, with the facts of one that it does."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.making import lock_of

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.place import GitPlace
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.aliases import catalog_for, name_of_version
from rocwright.plan.resolve.files import read_project, read_request
from rocwright.plan.resolve.lock import make_lock
from rocwright.plan.resolve.model import Request
from rocwright.plan.resolve.upstream import OfflineUpstream

VISION = Request(
    stack="torch-extensions",
    gpu=("gfx803",),
    base="debian:trixie",
    versions={"torchvision": "0.21.9 like 0.21.0"},
)


def test_an_unknown_release_is_solved_locked_and_planned_with_the_facts_of_a_known_one() -> None:
    lock = make_lock(VISION, builtin_catalog(), OfflineUpstream(), lambda _: None)
    (vision,) = (one for one in lock.components if one.name == "torchvision")
    assert (vision.version, vision.commit) == ("0.21.9", "")
    assert vision.place.endswith("v0.21.9")
    known = builtin_catalog().component("torchvision").released("0.21.0")
    taken = catalog_for(VISION, builtin_catalog()).component("torchvision").released("0.21.9")
    assert (taken.needs, taken.evidence) == (known.needs, "")
    made = lock.model_copy(update={"components": lock_of("torch-extensions", "gfx803").components})
    assert {one.name for one in make_plan(made, builtin_catalog()).steps} >= {"torchvision"}


def test_a_release_that_is_known_by_now_stands_as_the_catalog_has_it() -> None:
    request = VISION.model_copy(update={"versions": {"torchvision": "0.22.1 like 0.21.0"}})
    catalog = builtin_catalog()
    taken = catalog_for(request, catalog).component("torchvision")
    assert taken.released("0.22.1") == catalog.component("torchvision").released("0.22.1")


def test_what_is_like_nothing_known_is_refused_by_name() -> None:
    request = VISION.model_copy(update={"versions": {"torchvision": "0.21.9 like 0.1.0"}})
    with pytest.raises(InputError, match=r"torchvision 0\.21\.9 cannot use the facts of 0\.1\.0"):
        catalog_for(request, builtin_catalog())


def test_a_provider_of_rocm_has_a_version_that_is_like_one_of_its_own() -> None:
    request = Request(
        stack="pytorch", gpu=("gfx1151",), base="debian:sid", versions={"rocm": "7.14.1 like 7.14.0"}
    )
    providers = catalog_for(request, builtin_catalog()).providers
    assert "7.14.1" in providers["therock-wheels"].versions
    assert "7.14.1" not in providers["amd"].versions


def test_a_place_that_does_not_name_its_version_is_not_taken_over() -> None:
    catalog = builtin_catalog()
    version = catalog.component("flash-attention").release[0].version
    request = VISION.model_copy(update={"versions": {"flash-attention": f"99.0 like {version}"}})
    places = catalog_for(request, catalog).component("flash-attention").released("99.0").places
    assert not [one for one in places if isinstance(one, GitPlace)]


@each(
    ("name", "known", "expected"),
    [
        ("v2.6.0", "2.6.0", "v2.6.1"),
        ("therock-2.6", "2.6.0", "therock-2.6.1"),
        ("v12.6.0", "2.6.0", None),
        ("nightly", "2.6.0", None),
    ],
)
def test_a_tag_names_its_version_or_nothing_is_known_of_the_next(
    name: str, known: str, expected: str | None
) -> None:
    assert name_of_version(name, known, "2.6.1") == expected


def test_the_settings_of_watch_stand_beside_the_request_and_are_no_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "rocwright.toml"
    asked = 'stack = "gfx-smoke"\ngpu = ["gfx1151"]\nbase = "debian:sid"\n'
    path.write_text(asked)
    before = read_request(path)
    path.write_text(f'{asked}[watch]\ncool-down = 3\ntake = "patch"\n')
    assert read_request(path) == before
    assert read_project(path).watch.cool_down == 3
    path.write_text(f"{asked}[watch]\ncooldown = 3\n")
    with pytest.raises(InputError, match="is not a valid"):
        read_project(path)
