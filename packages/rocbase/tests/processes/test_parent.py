"""Processes that end with the one that started them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rocwheel_samples.reused_pids import lives

pytestmark = pytest.mark.timing

CHILD = """
import time
from rocbase.processes import parent
parent.{call}
print('ready', flush=True)
# a signal that comes right before one long sleep would be seen behind it
while True:
    time.sleep(0.05)
"""
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("call", ["die_with_parent()", "stop_with(__import__('os').getppid())"])
def test_a_child_ends_when_its_parent_is_killed(call: str) -> None:
    words = [sys.executable, "-c", PARENT, CHILD.format(call=call)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        descriptor = os.pidfd_open(pid := int(running.stdout.readline()))
        assert Path(f"/proc/{pid}").exists()
        running.kill()
        running.wait()
        assert select.select([descriptor], [], [], 20)[0], "it lives on"
        os.close(descriptor)


def test_one_whose_parent_ended_before_it_could_ask_stops_at_once() -> None:
    """Another process has adopted it by then: the number that it was told is not its parent's."""
    words = [sys.executable, "-c", CHILD.format(call="stop_with(999999999)")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "ready" not in done.stdout


def test_one_whose_parent_lives_goes_on() -> None:
    words = [sys.executable, "-c", CHILD.format(call=f"stop_with({os.getpid()})")]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        assert lives(running)
        running.kill()


SAYS_AND_NOTES = """
import sys, time
from rocbase.processes.parent import stop_with
stop_with({parent})
try:
    print("ready", flush=True)
    # a signal that comes right before one long sleep would be seen behind it
    while True:
        time.sleep(0.05)
except KeyboardInterrupt:
    print("it stops", flush=True)
    open({note!r} + ".begun", "w").close()
    time.sleep(0.5)
    open({note!r}, "w").write("it stopped in order")
"""


def test_one_whose_parent_is_gone_stops_in_order_though_nobody_reads_what_it_says(tmp_path: Path) -> None:
    """The kernel tells it of the end before its parent's number changes: the signal itself says it."""
    note = tmp_path / "note"
    words = [sys.executable, "-c", SAYS_AND_NOTES.format(parent=os.getpid(), note=str(note))]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        running.stdout.close()
        running.send_signal(signal.SIGHUP)
        end = time.monotonic() + 60
        while not (tmp_path / "note.begun").exists():
            assert time.monotonic() < end
            time.sleep(0.01)
        # the kernel says it again for each thread of the parent that ends after the first
        running.send_signal(signal.SIGHUP)
        assert running.wait(60) == 0
    assert note.read_text() == "it stopped in order"
