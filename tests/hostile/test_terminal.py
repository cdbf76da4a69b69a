"""No text of a stranger is obeyed by the terminal on which a command prints it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import rocbase
import rocwheel
import rocwright
from rocwheel_samples.tables import each

PACKAGES = [Path(package.__file__ or "").parent for package in (rocwright, rocwheel, rocbase)]
HOSTILE = "a\x1b]0;title\x07b\x1b]52;c;ZXZpbA==\x07c\x1b[2Jd\x1b[8me\x1bcf\x9b2Jg\rh\u202ei\x08j\x1b[?1049hk"
SEEN = re.compile(r"ab?c?de.*f.*2Jg.*h.*ij?.*k")
COMMAND = """
import sys, click
from rocbase.cli.start import start
from rocbase.cli.tell import tell_any
from rocbase.errors import InputError

def print_it():
    {code}

start(lambda: click.Command("x", callback=print_it), tell_any, lambda words: {quick})
"""
WAYS = {
    "a quick answer": COMMAND.format(code="pass", quick="print(HOSTILE) or True"),
    "output": COMMAND.format(code="click.echo(HOSTILE)", quick="False"),
    "errors": COMMAND.format(code="click.secho(HOSTILE, fg='red', err=True)", quick="False"),
    "lines": COMMAND.format(code="sys.stdout.writelines([HOSTILE])", quick="False"),
    "a failure": COMMAND.format(
        code="raise InputError('x', cause=HOSTILE, next_step='y', detail=HOSTILE)", quick="False"
    ),
    "a traceback": COMMAND.format(
        code="import traceback; traceback.print_exception(ValueError(HOSTILE))", quick="False"
    ),
    "live lines": """
import sys, time
from rocbase.terminal import guard
from rocwright.execution.progress import LiveProgress, RunningStep
guard()
with LiveProgress() as progress:
    running = RunningStep(HOSTILE, 1)
    progress.started(running)
    progress.line(running, HOSTILE)
    progress.say(HOSTILE)
    print(HOSTILE, file=sys.stderr)
    time.sleep(0.4)
    progress.ended(running, HOSTILE)
""",
}
"""Programs that print it, each in its way."""

OWN = re.compile(r"\x1b\[(?:[012]|3[1-6])m|\r\n|\n")
RICH = re.compile(r"\x1b\[(?:[0-9;]*m|1A|2K|\?25[hl])|\r")


def on_terminal(program: str) -> str:
    """Return what a program writes to its terminal."""
    controller, terminal = pty.openpty()
    words = [sys.executable, "-c", f"HOSTILE = {HOSTILE!r}\n{program}"]
    env = os.environ | {"TERM": "xterm-256color", "COLUMNS": "250"}
    with subprocess.Popen(words, stdin=terminal, stdout=terminal, stderr=terminal, env=env):
        os.close(terminal)
        data = b""
        try:
            while piece := os.read(controller, 65536):
                data += piece
        except OSError:  # the other end is closed
            os.close(controller)
    return data.decode()


@each("way", [*WAYS])
def test_what_a_stranger_wrote_is_printed_and_not_obeyed(way: str) -> None:
    written = on_terminal(WAYS[way])
    shown = OWN.sub("\n", RICH.sub("", written) if way == "live lines" else written)
    assert SEEN.search(shown), written
    assert shown.replace("\n", "").isprintable(), written


def test_nothing_goes_past_the_guard() -> None:
    texts = {
        path: path.read_text()
        for package in PACKAGES
        for path in package.rglob("*.py")
        if "data" not in path.parts
    }
    past = r"\bsys\.__std|std(?:out|err)\.buffer|os\.write\([12],|\bConsole\((?!file=unguarded\()"
    assert [path for path, text in texts.items() if re.search(past, text)] == []
    cleaned = {path.name for path, text in texts.items() if re.search(r"\bunguarded\(", text)}
    assert cleaned == {"terminal.py", "logs.py", "progress.py"}
