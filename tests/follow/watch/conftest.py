"""A small field: a catalog of two components whose sources lie in real repositories, and a lock of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.follow.watch.answering import upstream as upstream
from tests.making import lock_of
from tests.sources.conftest import Index, Repository, make_repository
from tests.sources.conftest import index as index
from tests.sources.conftest import repository as repository

from rocwright.catalog.issue import Issue
from rocwright.catalog.load import Catalog, builtin_catalog
from rocwright.catalog.model import Component, Stack
from rocwright.follow.watch.look import UpdateChecker
from rocwright.follow.watch.memory import Memory
from rocwright.follow.watch.model import WatchReport
from rocwright.follow.watch.question import Question
from rocwright.follow.watch.upstream import Answer, Upstream
from rocwright.home import Home
from rocwright.model.steps import FilePin, GitOrigin
from rocwright.plan.resolve.model import Lock, LockedComponent, LockedPython, Request
from rocwright.plan.resolve.settings import WatchSettings

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def release(version: str, place: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"version": version, "places": [place], "source": "x"} | more


def component(name: str, *releases: dict[str, Any], **more: Any) -> Component:
    told = {"name": name, "summary": "x", "license": "MIT", "kind": "archive", "release": releases}
    return Component.model_validate(told | more)


def catalog_of(*components: Component) -> Catalog:
    """The catalog of rocwright with these components, and a stack `field` of all of them."""
    catalog = builtin_catalog()
    stack = Stack(
        name="field",
        summary="x",
        components=tuple(one.name for one in components),
        bases=("debian:trixie",),
        source="x",
    )
    return replace(
        catalog,
        components={**catalog.components, **{one.name: one for one in components}},
        stacks={**catalog.stacks, "field": stack},
    )


def request_of(**versions: str) -> Request:
    return Request(stack="field", gpu=("gfx1151",), base="debian:trixie", versions=versions)


def git_component(name: str, version: str, repository: Repository, tag: str) -> LockedComponent:
    """A component locked from a tag, as it stands now."""
    commit = repository.git("rev-parse", f"{tag}^{{commit}}")
    pin = FilePin(
        filename=f"{commit}.tar.zst",
        sha256=commit + "0" * 24,
        size=1,
        origin=GitOrigin(url=repository.url, commit=commit),
    )
    place = f"git {repository.url} {tag} (commit {commit})"
    return LockedComponent(name=name, version=version, kind="git", place=place, commit=commit, files=(pin,))


def lock_with(*components: LockedComponent, **more: Any) -> Lock:
    told = {"request": request_of(), "components": components, "roots": (), "provided": {}}
    return lock_of("gfx-smoke").model_copy(update=told | more)


def python_lock(*pins: FilePin, wanted: tuple[str, ...] = ()) -> Lock:
    """A lock of Python packages alone."""
    return lock_with(python=LockedPython(version="3.13", wanted=wanted, files=pins))


def tag(repository: Repository, name: str, day: str, text: str = "x") -> str:
    """An annotated tag of that day, on a new commit; gives the commit."""
    commit = repository.commit("file", f"{name} {text}\n")
    who = {"GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t", "GIT_COMMITTER_DATE": f"{day}T00:00:00Z"}
    subprocess.run(
        ["git", "-C", repository.path, "tag", "--force", "-a", "-m", name, name],
        env=os.environ | who,
        check=True,
        capture_output=True,
    )
    return commit


Look = Callable[..., WatchReport]


@dataclass
class Field:
    """What the tests look at, and how."""

    home: Home
    kept: bool = True

    def look(
        self,
        catalog: Catalog,
        *locks: Lock,
        issues: dict[str, Issue] | None = None,
        ask: Callable[[Question], Answer] | None = None,
        **settings: Any,
    ) -> WatchReport:
        eyes = UpdateChecker(
            settings=WatchSettings.model_validate({"cool_down": 7} | settings),
            catalog=catalog,
            issues=issues or {},
            has=lambda _: self.kept,
            now=NOW,
            memory=Memory(),
        )
        labelled = {f"lock {number}": lock for number, lock in enumerate(locks)}
        report, _ = eyes.look(labelled, ask or Upstream(self.home, eyes.settings.seconds).ask)
        return report


@pytest.fixture
def field(home: Home) -> Field:
    return Field(home)


@pytest.fixture
def other(tmp_path: Path, repository: Repository) -> Iterator[Repository]:
    """A second repository."""
    yield make_repository(tmp_path / "other")


__all__ = ["Index", "index", "repository", "upstream"]
