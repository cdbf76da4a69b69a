"""The labels of images: every version and commit in them, and nothing that says when they were made."""

from __future__ import annotations

from tests.making import lock_of

from rocwright.catalog.load import builtin_catalog
from rocwright.model.steps import ImageAction
from rocwright.plan.labels import image_labels
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Lock

COMMIT = "b" * 40


def labels(lock: Lock) -> dict[str, str]:
    plan = make_plan(lock, builtin_catalog())
    return next(one.action.labels for one in plan.steps if isinstance(one.action, ImageAction))


def locked(*gpus: str) -> Lock:
    lock = lock_of("llama-vulkan", *gpus)
    parts = tuple(one.model_copy(update={"commit": COMMIT}) for one in lock.components)
    return lock.model_copy(update={"components": parts})


def test_an_image_tells_version_commit_hash_and_place_of_what_is_in_it() -> None:
    lock = locked()
    (one,) = lock.components
    found = labels(lock)
    assert found["org.opencontainers.image.revision"] == found["rocwright.llama-cpp.commit"] == COMMIT
    assert found["org.opencontainers.image.version"] == found["rocwright.llama-cpp.version"] == one.version
    assert found["rocwright.llama-cpp.sha256"] == one.files[0].sha256
    assert found["rocwright.stack"] == "llama-vulkan"
    assert all(found.values())


def test_the_time_and_the_maker_of_a_lock_change_no_label() -> None:
    lock = locked()
    other = lock.model_copy(update={"created": "2030-01-01T00:00:00Z", "rocwright": "9.9"})
    assert labels(other) == labels(lock)


def test_an_image_that_is_the_same_for_every_gpu_names_none() -> None:
    assert labels(locked("gfx1151")) == labels(locked("gfx1103"))
    lock, catalog = locked("gfx1151"), builtin_catalog()
    run = lock.root("run")
    assert run is not None
    hip = catalog.component("llama.cpp-hip")
    assert image_labels(hip, lock.components[0], lock, run, ())["rocwright.gpu"] == "gfx1151"


def test_a_base_that_is_an_image_is_named_by_its_digest() -> None:
    lock, catalog = locked(), builtin_catalog()
    run = lock.root("run")
    assert run is not None
    digest = f"sha256:{'c' * 64}"
    run = run.model_copy(update={"image": f"example.org/base:1@{digest}"})
    found = image_labels(catalog.component("llama.cpp"), lock.components[0], lock, run, ())
    assert found["org.opencontainers.image.base.name"] == "example.org/base:1"
    assert found["org.opencontainers.image.base.digest"] == digest
