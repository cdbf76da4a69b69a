"""The queue of builds and the turns of the cycle: what they stop."""

from __future__ import annotations

import threading
from pathlib import Path

from rocwheel_samples.reused_pids import lives, taken_over
from rocwright.home import Home
from rocwright.records.opening import open_records
from rocwright.web.cycling import Cycling
from rocwright.web.queue import Queue


def test_a_build_that_has_ended_is_not_stopped_by_its_number(home: Home, tmp_path: Path) -> None:
    with open_records(home) as records, taken_over() as (ended, living):
        queue = Queue(records, tmp_path)
        queue._child = ended
        queue.stop()
        assert lives(living)


def test_a_cycle_that_has_ended_is_not_stopped_by_its_number(tmp_path: Path) -> None:
    with taken_over() as (ended, living):
        cycling = Cycling(tmp_path, 1, threading.Lock())
        cycling._child = ended
        cycling.stop()
        assert lives(living)
