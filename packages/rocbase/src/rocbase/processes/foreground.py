"""A program on the caller's own terminal, behind others that only hold it: signals reach the program
alone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from rocbase.processes.run import not_installed

FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
"""What the terminal sends to every process in front of it: the program gets these by itself."""

HANDED_ON = (*FROM_TERMINAL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""What goes on to the program when this process is sent it."""

DEFAULTS = ("/usr/bin/env", *(f"--default-signal={one.name.removeprefix('SIG')}" for one in FROM_TERMINAL))
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
    with _deaf():
        try:
            running = subprocess.Popen(words, cwd=cwd, env=env)
        except FileNotFoundError as error:
            raise not_installed(words[0]) from error
        with _blocked():
            while running.poll() is None:
                told = signal.sigwaitinfo({*HANDED_ON, signal.SIGCHLD})
                number = signal.Signals(told.si_signo)
                if number is signal.SIGCHLD or (number in FROM_TERMINAL and told.si_code == _BY_KERNEL):
                    continue
                meant = program(running.pid)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    # nothing but the command is there yet: it is ended, and nothing is begun
                    os.kill(meant if meant is not None else running.pid, number if meant else signal.SIGTERM)
    return running.returncode


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """What is started meanwhile ignores what the terminal sends."""
    before = {one: signal.signal(one, signal.SIG_IGN) for one in FROM_TERMINAL}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@contextlib.contextmanager
def _blocked() -> Iterator[None]:
    """Signals wait until they are asked for."""
    wanted = {*HANDED_ON, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
    try:
        yield
    finally:
        # one that came with the end has nobody left to go to
        while signal.sigtimedwait(wanted, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
