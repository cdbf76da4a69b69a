"""The process that a build starts for each step: what it leaves, and what it does not load."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.execution.conftest import Workshop

from rocbase.errors import InterruptedByUser
from rocwright.execution.options import StepOptions
from rocwright.execution.step_process import Asked

UNUSED = ("click", "psutil", "re2", "sqlalchemy", "rocwright.catalog.model", "rocwright.catalog.issue")
"""Each takes long to load, and serves a step that ends well in nothing."""


def start(workshop: Workshop, asked: Asked, setup: str = "") -> subprocess.Popen[str]:
    """As a build starts it; `setup` is Python that comes before."""
    run = f"{setup}\nimport sys\nfrom rocwright.execution.__main__ import main\nsys.exit(main(sys.argv[1:]))"
    words = ["-c", run] if setup else ["-m", "rocwright.execution"]
    return subprocess.Popen(
        [sys.executable, *words, *asked.words()],
        env=os.environ | {"ROCWRIGHT_HOME": str(workshop.home.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def asked(workshop: Workshop, command: str, report: Path) -> Asked:
    step = workshop.step(command)
    workshop.store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    options = StepOptions(engine="bubblewrap")
    return Asked(key=step.key, store=workshop.store.url, options=options, report=str(report))


def test_a_step_leaves_its_record_and_loads_nothing_that_it_does_not_use(
    workshop: Workshop, tmp_path: Path
) -> None:
    wanted = asked(workshop, "echo said; echo made > $OUT/result", tmp_path / "report")
    look = f"import atexit, sys\natexit.register(lambda: print('loaded', {{*sys.modules}} & {{*{UNUSED!r}}}))"
    running = start(workshop, wanted, look)
    said = running.communicate(timeout=60)[0].splitlines()
    assert running.returncode == 0, said
    assert "said" in said
    assert said[-1] == "loaded set()"
    record = json.loads((tmp_path / "report").read_text())["record"]
    assert record["key"] == wanted.key
    assert [one["filename"] for one in record["outputs"]] == ["result"]


def test_a_step_that_fails_leaves_its_error(workshop: Workshop, tmp_path: Path) -> None:
    wanted = asked(workshop, "echo 'x.c:1: error: no'; exit 3", tmp_path / "report")
    running = start(workshop, wanted)
    running.communicate(timeout=60)
    assert running.returncode == 6
    error = json.loads((tmp_path / "report").read_text())["error"]
    assert (error["class"], error["cause"]) == ("compile", "x.c:1: error: no")


def test_a_fault_of_ours_is_told_as_one(workshop: Workshop, tmp_path: Path) -> None:
    wanted = asked(workshop, "true", tmp_path / "report")
    broken = "import rocwright.execution.exec_step as it\nit.load_step = None"
    running = start(workshop, wanted, broken)
    said = running.communicate(timeout=60)[0]
    assert "Traceback" in said
    error = json.loads((tmp_path / "report").read_text())["error"]
    assert error["class"] == "internal"


def test_a_step_that_is_asked_to_end_leaves_that_it_was_stopped(workshop: Workshop, tmp_path: Path) -> None:
    wanted = asked(workshop, "echo waiting; sleep 75.5", tmp_path / "report")
    running = start(workshop, wanted)
    assert running.stdout is not None
    assert any("waiting" in line for line in running.stdout)
    running.send_signal(signal.SIGTERM)
    assert running.wait(30) == InterruptedByUser("").failure.exit_code
    running.stdout.close()
    error = json.loads((tmp_path / "report").read_text())["error"]
    assert (error["class"], error["message"]) == ("interrupted", "stopped")
