"""A terminal for tests: a program runs in it, and what a person would see on its screen is read."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

_SEQUENCE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|\x1b[()][A-Z0-9]|\x1b[=>78]|[\r\n\b\a]|[^\x1b\r\n\b\a]")


@dataclass(slots=True)
class Screen:
    """What xterm shows of some output: lines that are too long wrap, and scroll off at the top."""

    columns: int
    rows: int = 24
    lines: list[list[str]] = field(default_factory=lambda: [[]])
    x: int = 0
    y: int = 0
    """From the top of all that was ever shown: what scrolled off stays in `lines`."""
    styled: bool = False
    """Whether a colour was ever set."""

    def write(self, text: str) -> None:
        """Take output in, as far as rich, click and simple programs use a terminal."""
        for match in _SEQUENCE.finditer(text):
            if match[2]:
                self._control(match[1], match[2])
            elif match[0] == "\r":
                self.x = 0
            elif match[0] == "\n":
                self._down()
            elif match[0] == "\b":
                self.x = max(self.x - 1, 0)
            elif match[0] != "\a" and match[0][0] != "\x1b":
                self._put(match[0])

    def _down(self) -> None:
        self.y += 1
        while len(self.lines) <= self.y:
            self.lines.append([])

    def _put(self, sign: str) -> None:
        if self.x >= self.columns:
            self.x = 0
            self._down()
        line = self.lines[self.y]
        line += [" "] * (self.x + 1 - len(line))
        line[self.x] = sign
        self.x += 1

    def _control(self, numbers: str, kind: str) -> None:
        number = int(numbers) if numbers.isdecimal() else 0
        top = max(len(self.lines) - self.rows, 0)
        match kind:
            case "A":
                self.y = max(self.y - max(number, 1), top)
            case "B":
                self.y = min(self.y + max(number, 1), len(self.lines) - 1)
            case "C":
                self.x = min(self.x + max(number, 1), self.columns - 1)
            case "G":
                self.x = max(number, 1) - 1
            case "K" if number == 2:
                self.lines[self.y] = []
            case "K":
                del self.lines[self.y][self.x :]
            case "J":
                del self.lines[self.y][self.x :]
                del self.lines[self.y + 1 :]
            case "m" if any(
                30 <= int(one) <= 49 or 90 <= int(one) <= 107 for one in numbers.split(";") if one
            ):
                self.styled = True
            case _:
                pass

    @property
    def text(self) -> list[str]:
        """Every line, what has scrolled off too."""
        return ["".join(line).rstrip() for line in self.lines]


def run_in_terminal(
    words: Sequence[str],
    columns: int,
    *,
    rows: int = 24,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    seen: Callable[[Screen], None] = lambda screen: None,
    seconds: float = 120,
) -> tuple[int, Screen]:
    """The exit status of a program, and the screen when it ended; `seen` looks at each on the way."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    clean = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")
    }
    program = subprocess.Popen(
        list(words),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=clean | {"TERM": "xterm-256color"} | dict(env or {}),
        cwd=cwd,
        start_new_session=True,
    )
    os.close(slave)
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    screen, pending, end = Screen(columns, rows), "", time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            if not select.select([master], [], [], 0.05)[0]:
                continue
            try:
                data = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not data:
                break
            pending += decoder.decode(data)
            whole, escape, rest = pending.rpartition("\x1b")
            # what was cut amid a sequence waits for its end
            cut = bool(escape) and not _SEQUENCE.match(escape + rest)
            screen.write(whole if cut else pending)
            pending = escape + rest if cut else ""
            seen(screen)
        return program.wait(max(end - time.monotonic(), 1)), screen
    finally:
        os.close(master)
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()
