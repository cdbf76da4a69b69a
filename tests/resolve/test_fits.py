"""Whether a request, a lock and the recipes fit together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.making import lock_of

from rocwright.catalog.load import builtin_catalog
from rocwright.errors import ConflictError, InputError
from rocwright.home import Home
from rocwright.resolve.fits import check_fits, check_request, wanted_packages
from rocwright.resolve.lock import make_lock
from rocwright.resolve.online import Online
from rocwright.store.local import LocalStore

CATALOG = builtin_catalog()


@pytest.mark.parametrize("stack", sorted(CATALOG.stacks))
def test_a_lock_of_these_recipes_fits_them(stack: str) -> None:
    check_fits(lock_of(stack), CATALOG)


@pytest.mark.parametrize("stack", sorted(CATALOG.stacks))
def test_a_stack_may_be_asked_for_on_each_of_its_bases(stack: str) -> None:
    for named in CATALOG.stack(stack).bases:
        base, release = check_request(lock_of(stack, base=named).request, CATALOG)
        assert f"{base.name}:{release.name}" == named


def test_a_package_that_a_recipe_needs_now_makes_the_lock_unfit() -> None:
    component = CATALOG.component("gfx-smoke")
    system = component.system.model_copy(update={"build": (*component.system.build, "cmake")})
    changed = component.model_copy(update={"system": system})
    catalog = replace(CATALOG, components={**CATALOG.components, "gfx-smoke": changed})
    with pytest.raises(InputError, match="the lock does not fit the recipes") as caught:
        check_fits(lock_of("gfx-smoke"), catalog)
    assert "packages to build: cmake" in caught.value.cause
    assert caught.value.next_step == "rocwright lock"


def test_a_release_that_is_gone_makes_the_lock_unfit() -> None:
    lock = lock_of("gfx-smoke")
    gone = lock.components[0].model_copy(update={"version": "0.0.1"})
    with pytest.raises(InputError) as caught:
        check_fits(lock.model_copy(update={"components": (gone,)}), CATALOG)
    assert "gfx-smoke has no release 0.0.1 any more" in caught.value.cause


def test_a_component_that_was_added_to_a_stack_makes_the_lock_unfit() -> None:
    stack = CATALOG.stack("gfx-smoke").model_copy(update={"components": ("gfx-smoke", "torchvision")})
    catalog = replace(CATALOG, stacks={**CATALOG.stacks, "gfx-smoke": stack})
    with pytest.raises(InputError) as caught:
        check_fits(lock_of("gfx-smoke"), catalog)
    assert "the stack has torchvision now" in caught.value.cause


def test_a_gpu_that_a_stack_does_not_serve_is_a_conflict() -> None:
    stack = CATALOG.stack("gfx-smoke").model_copy(update={"targets": ("gfx803",)})
    catalog = replace(CATALOG, stacks={**CATALOG.stacks, "gfx-smoke": stack})
    with pytest.raises(ConflictError, match="cannot be built for gfx1151") as caught:
        check_request(lock_of("gfx-smoke").request, catalog)
    assert "gfx803" in caught.value.cause


def test_what_is_wanted_of_a_root_is_sorted_and_named_once() -> None:
    components = [CATALOG.component(name) for name in ("torchvision", "torchaudio")]
    base, release = CATALOG.base("debian:trixie")
    wanted = wanted_packages(CATALOG, components, base, release, ("pytorch",), rocm_packages=False)
    for names in wanted.values():
        assert list(names) == sorted(set(names))


def test_a_base_that_comes_from_an_image_is_refused_in_words_before_anything_is_fetched(
    tmp_path: Path,
) -> None:
    stack = CATALOG.stack("gfx-smoke").model_copy(update={"bases": ("fedora:43",)})
    catalog = replace(CATALOG, stacks={**CATALOG.stacks, "gfx-smoke": stack})
    request = lock_of("gfx-smoke").request.model_copy(update={"base": "fedora:43"})
    with pytest.raises(InputError, match="fedora:43 cannot be locked") as caught:
        base, release = catalog.base("fedora:43")
        home, store = Home(tmp_path), LocalStore(tmp_path / "store")
        make_lock(
            request,
            catalog,
            Online(base, release, store, home, catalog.source, lambda _: None),
            lambda _: None,
        )
    assert "registry.fedoraproject.org/fedora:43" in caught.value.cause
    assert "debian:sid" in caught.value.next_step
