"""A build over a farm ends right, whatever happens to its machines, its network and its store.

Two faults of each kind are nightly; `python -m tests.farm.faults` tries hundreds.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.farm.faults import FAKETIME, KINDS, Scene

pytestmark = pytest.mark.real

STOPPED = 6.0
"""Seconds for which a worker is stopped."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(tmp_path_factory.mktemp("farm"), stack, STOPPED)


def test_a_machine_that_was_killed_is_started_again_by_who_looks_at_once(scene: Scene) -> None:
    machine = scene.machines["one"]
    before = machine.up().process.pid
    machine.signal(signal.SIGKILL)
    assert machine.up().process.pid != before


def test_a_build_ends_right_when_a_worker_is_killed(scene: Scene) -> None:
    told = scene.try_("kill_worker", seed=1 + KINDS.index("kill_worker"))
    assert told.right, told.why


@pytest.mark.nightly
@pytest.mark.parametrize("round_", range(2))
@pytest.mark.parametrize("kind", KINDS)
def test_a_build_ends_right_whatever_happens(scene: Scene, kind: str, round_: int) -> None:
    if kind == "clock" and FAKETIME is None:
        pytest.skip("faketime is not installed")
    told = scene.try_(kind, seed=1 + KINDS.index(kind) + round_ * len(KINDS))
    assert told.right, told.why
