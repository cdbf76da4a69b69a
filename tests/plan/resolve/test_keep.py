"""A lock made anew as its remedies want it: only what must change is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from packaging.version import Version
from pydantic import TypeAdapter
from tests.making import deb, lock_of

from rocbase.errors import ConflictError
from rocwright.catalog.base import Base, BaseRelease
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.model import Component
from rocwright.catalog.place import Place
from rocwright.catalog.remedy import RemedyAction
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.lock import make_lock, versions_in
from rocwright.plan.resolve.model import Lock, LockedComponent, LockedPython, LockedRoot, Remedy, Role
from rocwright.plan.resolve.upstream import OfflineUpstream

ACTION: TypeAdapter[RemedyAction] = TypeAdapter(RemedyAction)


class Asked(OfflineUpstream):
    """Notes what is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def root(self, role: Role, base: Base, release: BaseRelease, wanted: tuple[str, ...]) -> LockedRoot:
        self.asked.append(role)
        found = super().root(role, base, release, wanted)
        return found.model_copy(update={"packages": (deb("new"),), "pending": ""})

    def component(self, component: Component, version: str, places: Sequence[Place]) -> LockedComponent:
        self.asked.append(f"{component.name} {version}")
        return super().component(component, version, places)

    def python(self, version: str, wanted: tuple[str, ...]) -> LockedPython:
        self.asked.append("python")
        return super().python(version, wanted)


def remedy(of: str, **said: Any) -> Remedy:
    return Remedy(
        issue="an-issue",
        component=of,
        version="1",
        action=ACTION.validate_python(said),
        why="it is known",
        source=("a report",),
        step=of,
        since="2026-01-01T00:00:00Z",
        outcome="trial",
    )


def whole(lock: Lock) -> Lock:
    """The lock as an online one would be: nothing pending."""
    assert lock.python is not None and lock.python_run is not None
    found = {"pending": "", "files": (deb("wheel"),)}
    parts = {"python": lock.python, "python_run": lock.python_run}
    return lock.model_copy(update={name: part.model_copy(update=found) for name, part in parts.items()})


def version_of(lock: Lock, name: str) -> Version:
    return Version(versions_in(lock)[name])


def again(lock: Lock, *remedies: Remedy) -> tuple[Lock, list[str]]:
    outside = Asked()
    made = make_lock(
        lock.request,
        builtin_catalog(),
        outside,
        lambda _: None,
        remedies=remedies,
        keep=lock,
    )
    return made, outside.asked


def test_nothing_is_asked_for_where_nothing_must_change() -> None:
    lock = whole(lock_of("pytorch", "gfx1151", base="debian:sid"))
    made, asked = again(lock)
    assert asked == []
    assert made == lock.model_copy(update={"created": made.created})


def test_packages_of_a_remedy_change_the_root_that_builds_and_the_plan_fits_the_lock() -> None:
    lock = lock_of("llama-vulkan", "gfx1151", base="debian:sid")
    made, asked = again(lock, remedy("llama.cpp", kind="packages", names=["python-headers"]))
    assert asked == ["build"]
    before, after = lock.root("build"), made.root("build")
    assert before is not None and after is not None
    assert set(after.wanted) > set(before.wanted)
    assert made.components == lock.components
    make_plan(made, builtin_catalog())


def test_a_tool_of_another_version_is_taken_and_all_else_stays() -> None:
    lock = whole(lock_of("pytorch", "gfx1151", base="debian:sid"))
    assert version_of(lock, "cmake") >= Version("4")
    made, asked = again(lock, remedy("pytorch", kind="version", component="cmake", versions="<4"))
    assert asked == ["python"]
    assert version_of(made, "cmake") < Version("4")
    assert lock.python is not None and made.python is not None
    assert len(set(made.python.wanted) - set(lock.python.wanted)) == 1
    assert made.components == lock.components


def test_what_no_version_satisfies_is_told_with_the_remedy() -> None:
    lock = lock_of("llama-vulkan", "gfx1151", base="debian:sid")
    wanted = remedy("llama.cpp", kind="version", component="llama.cpp", versions="<0")
    with pytest.raises(ConflictError) as error:
        again(lock, wanted)
    assert "the remedy for an-issue needs llama.cpp <0   [a report]" in error.value.detail
