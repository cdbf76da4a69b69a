"""Every engine that isolates; steps in it whose commands leave what no honest step would."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.execution.conftest import Workshop, put_root
from tests.making import make_tiny_root

from rocwheel_samples.hostile_files import soon
from rocwright.home import Home
from rocwright.sandbox import ENGINES, probe_all
from rocwright.store.local import LocalStore

LATER = (pytest.mark.real, pytest.mark.nightly)
"""All forms in each engine take minutes: by day each engine sees a few of them."""


@pytest.fixture(
    params=[
        pytest.param(name, marks=() if name == "bubblewrap" else LATER)
        for name, each in ENGINES.items()
        if each.isolates
    ]
)
def engine(request: pytest.FixtureRequest, home: Home, probed: Path) -> str:
    """The name of an engine; one that does not work here is skipped with the reason."""
    name: str = request.param
    shutil.copy(probed, home.probes)
    found = {one.engine: one for one in probe_all(home.probes)}[name]
    if not found.ok:
        reason = f"{name}: {found.reason}"
        if os.environ.get("CI") == "true" and os.geteuid() == 0 and name != "docker":
            pytest.fail(reason)
        pytest.skip(reason)
    return name


@pytest.fixture(scope="session")
def whole_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with a Python, for what a shell cannot make."""
    folder = tmp_path_factory.mktemp("whole-root")
    make_tiny_root(folder / "root.tar.zst", folder, python=True, whole=True)
    return folder / "root.tar.zst"


@pytest.fixture
def shop(
    home: Home,
    store: LocalStore,
    engine: str,
    tiny_root: Path,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> Workshop:
    """Steps in that engine; only what asks for a Python has one, for its root takes long to unpack."""
    asked = "python3" in str(request.node.callspec.params)
    root: Path = request.getfixturevalue("whole_root") if asked else tiny_root
    return Workshop(home, store, engine, tmp_path, put_root(store, root))


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    """A reader that hangs is a failure, and not a test that never ends."""
    with soon(240):
        yield
