"""How a command line takes signals, before anything else of it is loaded."""

from __future__ import annotations

import signal

from rocbase.processes import startup


def settle() -> None:
    """Asked to end, or with its terminal closed, the program ends what it runs, as with Ctrl-C."""
    for asked in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(asked) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(asked, signal.default_int_handler)
    startup.settle()
