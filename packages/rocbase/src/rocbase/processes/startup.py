"""How a command starts: fast, and with its signals taken, before anything of pydantic's is imported."""

from __future__ import annotations

import gc
import os
import signal


def settle() -> None:
    """Set up the interpreter for a process that imports, lists and ends."""
    # importing and listing make no rubbish: by default a tenth of the time is spent looking for it
    gc.set_threshold(100_000)
    # looking for plugins of pydantic reads the metadata of every package that is installed
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def settle_command() -> None:
    """Let SIGTERM and SIGHUP end the program and what it runs, as Ctrl-C does, and settle."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, signal.default_int_handler)
    settle()
