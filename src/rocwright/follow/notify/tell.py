"""What commands call: how everything stands is noted before they begin, and what they changed is told."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rocbase.errors import ExplainedError, InterruptedByUser
from rocbase.processes.python import python_module
from rocbase.processes.run import detach
from rocwright.config import config
from rocwright.home import Home

# Seconds that a command waits for a look; the look goes on after that.
PATIENCE = 40.0

_FAILS = ExplainedError, OSError, subprocess.TimeoutExpired


def _audience(home: Home) -> tuple[bool, bool]:
    """Whether anybody is to be told, and whether changes are noted at all: there was a server here, which has
    a feed of them. Raises InputError for settings that cannot be read."""
    settings = config()
    asks = bool(settings.notify or settings.cycle.ping)
    return asks, asks or home.notices.exists()


@contextmanager
def changes_told(home: Home, say: Callable[[str], None]) -> Iterator[None]:
    """Whatever is changed meanwhile is told at the end, however that comes; nothing fails for it."""
    with suppress(*_FAILS):
        if _is_new(home):
            start(note=True).wait(PATIENCE)
    try:
        yield
    except (KeyboardInterrupt, InterruptedByUser):
        with suppress(*_FAILS):
            if _audience(home)[1]:
                start()
        raise
    except BaseException:
        tell_now(home, say)
        raise
    tell_now(home, say)


def _is_new(home: Home) -> bool:
    """Whether somebody is to be told of whom it is not noted how everything stood before."""
    if not _audience(home)[0]:
        return False
    from rocwright.follow.notify.ledger import read

    ledger = read(home)
    return ledger is None or any(destination.called not in ledger.told for destination in config().notify)


def tell_now(home: Home, say: Callable[[str], None]) -> None:
    """Look, and tell what changed; says what could not be told, and raises nothing."""
    try:
        asks, notes = _audience(home)
        if not notes:
            return
        look = start()
        if asks and look.wait(PATIENCE):
            say("changes could not be told: rocwright notify now says why")
            return
    except subprocess.TimeoutExpired:
        say("changes are still being told: rocwright notify status")
    except (ExplainedError, OSError) as error:
        say(f"changes are not told: {error}")
        return
    for line in untold(home):
        say(line)


def untold(home: Home) -> Iterator[str]:
    """Who could not be told, in lines."""
    from rocwright.follow.notify.ledger import read

    ledger = read(home)
    for name, delivery in {**ledger.told, "[cycle.ping]": ledger.ping}.items() if ledger else ():
        if delivery.error:
            again = f"tried again after {delivery.again}: rocwright notify status"
            yield f"not told: {name}: {delivery.error}; {again}"


def start(
    *, note: bool = False, folder: str = "", every: float = 0, since: str = ""
) -> subprocess.Popen[bytes]:
    """Begin a look in a process that a kill of this one does not end.

    Raises InputError where that process cannot be started.
    """
    order = {"note": note, "folder": folder, "every": every, "since": since}
    return detach(python_module("rocwright.follow.notify", json.dumps(order)))
