"""A shell in a sandbox, on a terminal."""

import os
import pty
import subprocess
import sys

from rocwright.sandbox import Engine

DRIVER = """
import sys
from pathlib import Path
from rocwright.sandbox import ENGINES, SandboxJob, interactive
job = SandboxJob(root=Path("/"), argv=("sh", "-c", "test -t 0 && read word && echo got $word && exit 3"),
          env={"PATH": "/usr/bin:/bin"}, workdir="/usr")
sys.exit(interactive(ENGINES[sys.argv[1]], job))
"""


def test_a_terminal_is_passed_on_and_the_status_comes_back(engine: Engine) -> None:
    ours, theirs = pty.openpty()
    argv = (sys.executable, "-c", DRIVER, engine.name)
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as shell:
        os.close(theirs)
        os.write(ours, b"hello\n")
        said = b""
        while b"got" not in said or shell.poll() is None:
            try:
                said += os.read(ours, 4096)
            except OSError:
                break
        assert shell.wait(30) == 3, said
    os.close(ours)
    assert b"got hello" in said
