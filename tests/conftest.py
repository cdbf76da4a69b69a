"""Fixtures of all tests: a home folder that is never the user's, stores, a tiny root, a working sandbox."""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from rocwheel_samples.fixtures import (
    no_fixture_reads_the_users_settings,
    no_test_touches_the_users_home,
    nothing_is_left_that_pytest_cannot_remove,
)
from rocwright.home import Home
from rocwright.sandbox import probe_all
from rocwright.sources.bases.roots import remove_tree
from rocwright.store.local import LocalStore
from tests.collected import pytest_collection_modifyitems, pytest_ignore_collect
from tests.engines import must_work
from tests.forked import Forking
from tests.making import make_tiny_root
from tests.skips import (
    pytest_collectreport,
    pytest_runtest_logreport,
    pytest_sessionfinish,
    pytest_terminal_summary,
)
from tests.tools_root import give_tools, shared_tools

__all__ = [
    "no_fixture_reads_the_users_settings",
    "no_test_touches_the_users_home",
    "nothing_is_left_that_pytest_cannot_remove",
    "pytest_collection_modifyitems",
    "pytest_collectreport",
    "pytest_ignore_collect",
    "pytest_runtest_logreport",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
]

# A shell has what it starts in the background ignore Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No run fails by chance or by slowness: the same cases are tried each time (fuzzing tries new ones).
settings.register_profile("rocwright", deadline=None, derandomize=True)
settings.load_profile("rocwright")


def pytest_collection_finish() -> None:
    """Leave what was collected out of each later look for garbage: it stays, and is most of what there is."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def memory_is_given_back() -> Iterator[None]:
    """Give the memory of a file's tests back: a worker takes some hundred files."""
    yield
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture(scope="session")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the sandboxes of this machine were found to do: found once, for all tests."""
    cache = tmp_path_factory.mktemp("probed") / "sandboxes.json"
    probe_all(cache)
    return cache


@pytest.fixture
def home(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Home]:
    """The home folder of one test; that of a real one has the tools root."""
    home = Home(tmp_path / "home")
    home.path.mkdir()
    if request.node.get_closest_marker("real"):
        give_tools(home, shared_tools())
    yield home
    remove_tree(home.path)


@pytest.fixture
def store(home: Home) -> LocalStore:
    """The store of one test."""
    return LocalStore(home.store)


@pytest.fixture
def engine(home: Home, probed: Path) -> str:
    """bubblewrap, where it works: the conformance suite says that the others do the same."""
    shutil.copy(probed, home.probes)
    must_work({one.engine: one for one in probe_all(home.probes)}["bubblewrap"])
    return "bubblewrap"


@pytest.fixture(scope="session")
def tiny_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root file system with a shell and some tools, as .tar.zst."""
    folder = tmp_path_factory.mktemp("tiny-root")
    make_tiny_root(folder / "root.tar.zst", folder)
    return folder / "root.tar.zst"


@pytest.fixture(scope="session")
def python_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a Python."""
    folder = tmp_path_factory.mktemp("python-root")
    make_tiny_root(folder / "root.tar.zst", folder, python=True)
    return folder / "root.tar.zst"


Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def forking() -> Iterator[Forking]:
    """Runs `rocwright` in processes of their own, within moments."""
    forking = Forking()
    yield forking
    forking.close()


@pytest.fixture
def rocwright(home: Home, tmp_path: Path, forking: Forking) -> Command:
    """Run the command as a user does, in an empty folder."""
    folder = tmp_path / "project"
    folder.mkdir()

    def run(
        *words: str, env: dict[str, str] | None = None, before: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        variables = os.environ | {"ROCWRIGHT_HOME": str(home.path)} | (env or {})
        if not before:
            return forking.run(words, folder, variables)
        argv = [*before, sys.executable, "-m", "rocwright", *words]
        return subprocess.run(argv, cwd=folder, env=variables, capture_output=True, text=True, timeout=120)

    return run
