"""A program on the caller's own terminal, behind others that only hold it: signals reach the program
alone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from rocbase.processes.run import not_installed

FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
"""What the terminal sends to every process in front of it: the program gets these by itself."""

HANDED_ON = (*FROM_TERMINAL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""What goes on to the program when this process is sent it."""

_AWAITED = frozenset({*HANDED_ON, signal.SIGCHLD})

DEFAULTS = (
    "/usr/bin/env",
    *(f"--default-signal={signum.name.removeprefix('SIG')}" for signum in FROM_TERMINAL),
)
"""Words before the program: the programs around it ignore these signals, which it would inherit."""

_BY_KERNEL = 128
"""`si_code` of a signal that the terminal sent (SI_KERNEL, asm-generic/siginfo.h)."""


def attend(
    argv: Sequence[str | Path],
    program: Callable[[int], int | None],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> int:
    """Run to the end on the caller's terminal; the exit status (negative for a signal).

    The command holds the program that is meant, begun with `DEFAULTS`: `program` gives its number from that
    of the command, or None before it is there. Raises InputError where the command is not installed.
    """
    words = tuple(str(word) for word in argv)
    with _deaf(), _blocked() as mask:
        # On a busy machine a signal can come before Popen returns. Python may run in the child here: the one
        # system call takes no lock.
        unblock = partial(signal.pthread_sigmask, signal.SIG_SETMASK, mask)
        try:
            running = subprocess.Popen(words, cwd=cwd, env=env, preexec_fn=unblock)  # noqa: PLW1509 - see above
        except FileNotFoundError as error:
            raise not_installed(words[0]) from error
        while running.poll() is None:
            _hand_on(signal.sigwaitinfo(_AWAITED), running.pid, program)
    return running.returncode


def _hand_on(received: signal.struct_siginfo, launcher: int, program: Callable[[int], int | None]) -> None:
    """Send the program a signal that this process received; without a program yet, end the launcher."""
    number = signal.Signals(received.si_signo)
    if number is signal.SIGCHLD or (number in FROM_TERMINAL and received.si_code == _BY_KERNEL):
        return
    pid = program(launcher)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid or launcher, number if pid else signal.SIGTERM)


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """What is started meanwhile ignores what the terminal sends."""
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in FROM_TERMINAL}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _blocked() -> Iterator[set[int]]:
    """Let signals wait until they are read; yield the previous mask."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    try:
        yield mask
    finally:
        # a signal that came with the end has nobody left to go to
        while signal.sigtimedwait(_AWAITED, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
