"""What a running build needs stays, whatever a clean-up is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.making import put_output, small_plan

from rocwright.execution.cleanup.inside import what_can_go
from rocwright.home import Home
from rocwright.model.steps import Plan
from rocwright.sources.bases.roots import remove_tree
from rocwright.store.gc import remove
from rocwright.store.leases import cleaning, holding, locked, running
from rocwright.store.local import LocalStore
from rocwright.store.model import records

pytestmark = pytest.mark.timing


def filled(store: LocalStore, folder: Path) -> Plan:
    plan = small_plan()
    for step in plan.steps:
        put_output(store, step, "out", step.name.encode() * 100, folder)
    return plan


def clean(home: Home, store: LocalStore) -> int:
    """Remove everything that may go; how many records."""
    found = what_can_go(home, store, set(), 0)
    remove(store, found, remove_tree)
    return len(found.records)


def test_what_a_running_build_noted_stays_until_it_ends(
    home: Home, store: LocalStore, tmp_path: Path
) -> None:
    plan = filled(store, tmp_path)
    keys = [step.key for step in plan.steps]
    work = home.work / keys[-1][:16]
    work.mkdir(parents=True)
    with holding(store, dict.fromkeys(keys[1:], "x")):
        clean(home, store)
        assert [key for key in keys if store.record(key) is None] == keys[:1]
        assert work.exists()
    assert running(store) == []
    clean(home, store)
    assert (records(store), work.exists()) == ([], False)


def test_a_build_that_begins_between_the_look_and_the_removal_keeps_what_it_needs(
    home: Home, store: LocalStore, tmp_path: Path
) -> None:
    plan = filled(store, tmp_path)
    found = what_can_go(home, store, set(), 0)
    with holding(store, {step.key: step.name for step in plan.steps}):
        remove(store, found, remove_tree)
        for step in plan.steps:
            record = store.record(step.key)
            assert record is not None
            assert all(store.has(one.sha256, one.size) for one in record.outputs)


def test_a_file_that_a_running_step_may_have_put_stays_until_a_record_can_name_it(
    home: Home, store: LocalStore, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"an output")
    sha256, _ = store.put_file(tmp_path / "file")
    found = what_can_go(home, store, set(), 0)
    assert found.blobs == (sha256,)
    with locked(store, "ab" * 32):
        remove(store, found, remove_tree)
        assert store.has(sha256)
    remove(store, found, remove_tree)
    assert not store.has(sha256)


def test_a_build_waits_for_a_removal_and_says_so(store: LocalStore) -> None:
    said: list[str] = []
    begun = threading.Event()

    def build() -> None:
        with holding(store, {}, lambda: said.append("waits")):
            begun.set()

    thread = threading.Thread(target=build)
    with cleaning(store):
        thread.start()
        assert not begun.wait(0.5)
    thread.join()
    assert said == ["waits"]
    assert begun.is_set()


HOLDER = """
import sys, time
from pathlib import Path
from rocwright.store import open_store
from rocwright.store.leases import holding
with holding(open_store(Path(sys.argv[1])), dict.fromkeys(sys.argv[2:], "x")):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_word_of_a_build_that_was_killed_is_void(home: Home, store: LocalStore, tmp_path: Path) -> None:
    keys = [step.key for step in filled(store, tmp_path).steps]
    build = subprocess.Popen(
        [sys.executable, "-c", HOLDER, store.path, *keys], stdout=subprocess.PIPE, text=True
    )
    assert build.stdout is not None
    build.stdout.readline()
    assert running(store) == [dict.fromkeys(keys, "x")]
    assert clean(home, store) == 0
    os.kill(build.pid, signal.SIGKILL)
    build.wait()
    assert running(store) == []
    assert clean(home, store) == len(keys)
    assert [*(store.path / "builds").iterdir()] == []
