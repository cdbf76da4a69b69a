"""What the tests on real things share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from tests.execution.conftest import workshop as workshop
from tests.real.registry import Registry, serving_registry
from tests.real.standins import make_compiler_root
from tests.sources.conftest import index as index
from tests.tools_root import give_tools, shared_tools

from rocwright.home import Home
from rocwright.sources.bases.roots import remove_tree

LONGEST = (
    "test_heal",
    "test_media_servers",
    "test_llama_vulkan",
    "test_torch_extensions",
    "test_faults",
    "test_reliability",
    "test_gfx_smoke",
    "test_rehearse",
    "test_fuzz",
    "test_managers",
    "test_two_builds",
    "test_debian",
)
"""Files that take longest, the longest first: begun early, they do not keep one worker busy at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


@pytest.fixture(scope="session")
def tools_home() -> Home:
    """The home whose tools root is that of all files of tests."""
    return shared_tools()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, tools_home: Home) -> Iterator[Home]:
    """One home for a file of tests, as on a user's machine; removed at the end, it is large."""
    path = tmp_path_factory.mktemp("home")
    give_tools(Home(path), tools_home)
    yield Home(path)
    remove_tree(path)


@pytest.fixture(scope="session")
def sources_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Where fetched sources are kept: for this run, or in $ROCWRIGHT_TEST_HOME for later ones too."""
    named = os.environ.get("ROCWRIGHT_TEST_HOME")
    return Home(Path(named) if named else tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="session")
def compiler_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the root with a compiler that all workers share; the first that needs it makes it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "compiler-root"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            made = make_compiler_root(tmp_path_factory.mktemp("compiler-root"))
            made.parent.rename(folder)
    return folder / "root.tar.zst"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """The Debian archive's docker-registry, for a file of tests."""
    with serving_registry(tmp_path_factory.mktemp("registry")) as found:
        yield found
