"""Bases and components that come from images, locked; a registry and a package manager of a few lines."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from tests.making import lock_of
from tests.sources.bases.test_image import MANAGER

from rocbase.errors import FetchError, NetworkError
from rocwright.catalog.base import Base, BaseRelease
from rocwright.catalog.load import Catalog, builtin_catalog
from rocwright.catalog.place import ImagePlace
from rocwright.home import Home
from rocwright.model.architecture import host_architecture
from rocwright.model.steps import BaseAction, ImageOrigin, PackageOrigin
from rocwright.plan.resolve.images import lock_image
from rocwright.plan.resolve.model import Lock
from rocwright.plan.resolve.network import NetworkUpstream
from rocwright.sources import skopeo
from rocwright.sources.image import ARCHITECTURES
from rocwright.sources.skopeo import ImageLocation
from rocwright.store.local import LocalStore
from rocwright.store.model import verified

HOST = host_architecture()

ONE, TWO = (f"sha256:{digit * 64}" for digit in "12")
NAME = "registry.example/tiny"


class Registry:
    """A registry that has one image, under whatever digest the tag is said to name."""

    def __init__(self, saved: Path) -> None:
        self.saved, self.tag, self.pulls = saved, ONE, 0

    def digest(self, place: ImageLocation, folder: Path) -> str:
        if self.tag == "":
            raise NetworkError("the registry does not answer")
        return place.digest or self.tag

    def save(self, place: ImageLocation, target: Path, folder: Path) -> None:
        self.pulls += 1
        shutil.copytree(self.saved, target)


@pytest.fixture
def registry(tiny_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    from tests.sources.test_layers import bring

    plain = zstandard.ZstdDecompressor().stream_reader(tiny_root.open("rb")).read()
    config: dict[str, object] = {
        "architecture": ARCHITECTURES[HOST],
        "config": {"Env": ["GREETING=hello"]},
    }
    found = Registry(bring(tmp_path, plain, config=config))
    monkeypatch.setattr(skopeo, "digest", found.digest)
    monkeypatch.setattr(skopeo, "save", found.save)
    return found


@pytest.fixture
def catalog() -> Catalog:
    base = Base(
        name="tiny",
        summary="x",
        manager="tiny",
        made="image",
        release=(BaseRelease(name="1", image=f"{NAME}:1", source="x"),),
        architecture=dict.fromkeys(ARCHITECTURES, "amd64"),
        source="x",
    )
    catalog = builtin_catalog()
    managers = {**catalog.managers, "tiny": MANAGER}
    return replace(catalog, bases={**catalog.bases, "tiny": base}, managers=managers)


Ask = Callable[..., NetworkUpstream]


@pytest.fixture
def online(catalog: Catalog, store: LocalStore, home: Home, engine: str, lines: list[str]) -> Iterator[Ask]:
    opened: list[NetworkUpstream] = []

    def ask(before: Lock | None = None) -> NetworkUpstream:
        base, release = catalog.base("tiny:1")
        opened.append(NetworkUpstream(base, release, catalog, store, home, lines.append, before))
        return opened[-1]

    yield ask
    for one in opened:
        one.images.close()


@pytest.fixture
def lines() -> list[str]:
    return []


def locked(online: NetworkUpstream, catalog: Catalog, *wanted: str) -> Lock:
    """A lock of something, whose root to build is this base's."""
    base, release = catalog.base("tiny:1")
    root = online.root("build", base, release, wanted)
    return lock_of("gfx-smoke").model_copy(update={"roots": (root,)})


def test_a_root_is_locked_by_digest_and_its_packages_by_hash(
    registry: Registry, online: Ask, catalog: Catalog, store: LocalStore
) -> None:
    [root] = locked(online(), catalog, "b", "a").roots
    image, *packages = root.packages
    assert image.origin == ImageOrigin(reference=f"{NAME}:1", digest=ONE)
    assert (root.image, root.env, root.manager) == (f"{NAME}:1@{ONE}", {"GREETING": "hello"}, "tiny")
    assert root.lists == ("http://archive.example/list",)
    assert [pin.filename for pin in packages] == ["a-1.pkg", "b-1.pkg"]
    assert all(isinstance(pin.origin, PackageOrigin) and pin.origin.image == image.sha256 for pin in packages)
    assert all(verified(store, pin.sha256) for pin in root.packages)


def test_the_plan_of_such_a_root_says_all_that_makes_it(
    registry: Registry, online: Ask, catalog: Catalog
) -> None:
    from rocwright.plan.roots import base_action

    [root] = locked(online(), catalog, "a").roots
    action = base_action(root, catalog)
    assert isinstance(action, BaseAction)
    assert (action.family, action.image, action.suite) == ("image", root.packages[0].sha256, "1")
    assert "{" not in "".join(action.install).replace("{ ", "")
    assert action.forget == MANAGER.forget


def test_all_roots_of_a_lock_are_of_one_pull_and_nothing_is_left_open(
    registry: Registry, online: Ask, catalog: Catalog, home: Home
) -> None:
    base, release = catalog.base("tiny:1")
    with online() as asked:
        first = asked.root("build", base, release, ("a",))
        assert asked.root("run", base, release, ()).packages == first.packages[:1]
    assert registry.pulls == 1
    assert not [path for path in (home.work / "image").rglob("*") if path.is_file()]


def test_an_image_whose_root_is_in_the_store_is_not_pulled_again(
    registry: Registry, store: LocalStore, home: Home
) -> None:
    first = lock_image(f"{NAME}:1", "", store, home, print, HOST)
    again = lock_image(f"{NAME}:other", "", store, home, print, HOST)
    assert registry.pulls == 1
    assert (again.pin.sha256, again.env) == (first.pin.sha256, first.env)
    assert again.pin.origin == ImageOrigin(reference=f"{NAME}:other", digest=ONE)
    [noted] = home.images.iterdir()
    noted.write_text("damaged")
    assert lock_image(f"{NAME}:1", "", store, home, print, HOST) == first
    assert registry.pulls == 2


def test_a_tag_that_has_moved_is_told_and_the_digest_of_the_lock_before_is_used(
    registry: Registry, online: Ask, catalog: Catalog, lines: list[str]
) -> None:
    before = locked(online(), catalog)
    registry.tag = TWO
    again = locked(online(before), catalog)
    assert again.roots[0].packages == before.roots[0].packages
    assert any(f"the tag {NAME}:1 has moved: {ONE} -> {TWO}" in line for line in lines)
    anew = locked(online(), catalog)
    assert anew.roots[0].image == f"{NAME}:1@{TWO}"


def test_a_component_that_is_an_image_is_locked_likewise(
    registry: Registry, online: Ask, store: LocalStore
) -> None:
    component = builtin_catalog().component("gfx-smoke")
    found = online().component(component, "1.0", [ImagePlace(image=f"{NAME}:1")])
    [pin] = found.files
    assert (found.commit, found.kind, found.env) == (ONE, "image", {"GREETING": "hello"})
    assert verified(store, pin.sha256)


def test_without_a_registry_a_lock_fails_for_the_network_and_keeps_nothing(
    registry: Registry, online: Ask, catalog: Catalog, store: LocalStore
) -> None:
    registry.tag = ""
    with pytest.raises(NetworkError):
        locked(online(), catalog, "a")
    assert list(store.local.files()) == []


def test_a_base_of_an_image_has_no_debian_archive(registry: Registry, online: Ask) -> None:
    with pytest.raises(FetchError, match="is not a suite of the Debian archive"):
        online().archive()


def test_a_component_that_the_image_brings_along_has_the_version_of_its_package(
    registry: Registry, online: Ask, catalog: Catalog
) -> None:
    from rocwright.catalog.base import Provided

    listing = MANAGER.model_copy(update={"list": ("sh", "-c", "echo python3-thing 1:2.6.0+dfsg-7")})
    online_catalog = replace(catalog, managers={**catalog.managers, "tiny": listing})
    asked = online()
    asked.images.manager = online_catalog.managers["tiny"]
    assert asked.package_version(Provided(package="python3-thing", source="x")) == "2.6.0"
    with pytest.raises(FetchError, match="has no package other"):
        asked.package_version(Provided(package="other", source="x"))
