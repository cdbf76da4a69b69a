"""Whether a request, a lock and the recipes fit together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.making import lock_of

from rocbase.errors import ConflictError, InputError
from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.plan.resolve.model import Request
from rocwright.plan.resolve.validate import check_fits, check_request, wanted_packages

CATALOG = builtin_catalog()


@each("stack", sorted(CATALOG.stacks))
def test_a_lock_of_these_recipes_fits_them(stack: str) -> None:
    check_fits(lock_of(stack), CATALOG)


@each("stack", sorted(CATALOG.stacks))
def test_a_stack_may_be_asked_for_on_each_of_its_bases(stack: str) -> None:
    gpus = {row.base: row.gpu for row in CATALOG.stack(stack).row}
    for named in CATALOG.stack(stack).bases:
        gpu = gpus.get(named, "gfx1103" if named.startswith("fedora") else "gfx1151")
        base, release = check_request(lock_of(stack, gpu, base=named).request, CATALOG)
        assert f"{base.name}:{release.name}" == named


def test_a_package_that_a_recipe_needs_now_makes_the_lock_unfit() -> None:
    component = CATALOG.component("gfx-smoke")
    system = component.system.model_copy(update={"build": (*component.system.build, "cmake")})
    changed = component.model_copy(update={"system": system})
    catalog = replace(CATALOG, components={**CATALOG.components, "gfx-smoke": changed})
    with pytest.raises(InputError, match="the lock does not match the recipes") as caught:
        check_fits(lock_of("gfx-smoke"), catalog)
    assert "packages to build: cmake" in caught.value.cause
    assert caught.value.next_step == "rocwright lock"


def test_a_release_that_is_gone_makes_the_lock_unfit() -> None:
    lock = lock_of("gfx-smoke")
    gone = lock.components[0].model_copy(update={"version": "0.0.1"})
    with pytest.raises(InputError) as caught:
        check_fits(lock.model_copy(update={"components": (gone,)}), CATALOG)
    assert "gfx-smoke no longer has the release 0.0.1" in caught.value.cause


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
    versions = {one.name: one.release[0].version for one in components}
    wanted = wanted_packages(CATALOG, components, versions, base, release, ("pytorch",), rocm_packages=False)
    for names in wanted.values():
        assert list(names) == sorted(set(names))


PUBLISHED = sorted(
    name
    for name, stack in CATALOG.stacks.items()
    if any(CATALOG.component(one).kind == "wheels" for one in stack.components)
)


@each("stack", PUBLISHED)
def test_wheels_that_others_published_have_a_root_with_a_python_to_run_in(stack: str) -> None:
    root = lock_of(stack).root("check")
    assert root is not None
    assert {"python3", "python3-pip", "gcc"} <= {*root.wanted}


def test_a_lock_without_the_root_of_a_check_that_runs_a_script_does_not_fit() -> None:
    lock = lock_of("llama-vulkan")
    without = lock.model_copy(update={"roots": tuple(one for one in lock.roots if one.role != "check")})
    assert without != lock
    with pytest.raises(InputError, match="does not match the recipes"):
        check_fits(without, CATALOG)


def test_a_day_of_the_archive_stands_behind_the_base_and_is_in_all_words_of_the_request() -> None:
    day = Request(stack="gfx-smoke", gpu=("gfx1103",), base="debian:sid@20261101")
    today = Request(stack="gfx-smoke", gpu=("gfx1103",), base="debian:sid")
    assert (day.base, day.snapshot) == ("debian:sid", "20261101")
    assert "debian:sid@20261101" in day.words
    assert "20261101" in day.variant
    assert day.digest != today.digest
    assert "snapshot" not in today.model_dump()
    assert Request(**day.model_dump()) == day
    assert check_request(day, CATALOG)[1].snapshot == "20261101"
    with pytest.raises(InputError, match="has no snapshots by date"):
        check_request(Request(stack="vllm", gpu=("gfx1151",), base="fedora:43@20261101"), CATALOG)
