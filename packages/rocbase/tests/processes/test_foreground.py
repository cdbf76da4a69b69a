from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timing

DRIVER = """
import os, subprocess, sys, time
from pathlib import Path
from rocbase.processes import foreground

class SignalledEarly(subprocess.Popen):
    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        while not Path("ready").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), int(sys.argv[1]))

subprocess.Popen = SignalledEarly
sys.exit(foreground.attend([*foreground.DEFAULTS, *sys.argv[2:]], lambda pid: pid))
"""
"""Receives a signal while the program runs already and Popen has not returned yet."""

PROGRAM = """
import signal, sys
from pathlib import Path
signal.signal(int(sys.argv[1]), lambda *_: sys.exit(40))
Path("ready").touch()
signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_reaches_a_program_that_has_only_just_begun(tmp_path: Path, number: signal.Signals) -> None:
    program = [sys.executable, "-c", PROGRAM, str(int(number))]
    words = [sys.executable, "-c", DRIVER, str(int(number)), *program]
    with subprocess.Popen(words, cwd=tmp_path, start_new_session=True) as running:
        try:
            assert running.wait(30) == 40
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
