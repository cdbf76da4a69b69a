"""The log of a server: two files of a bounded size, the older of which ends in .1."""

from __future__ import annotations

import fcntl
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import Popen

from rocbase.processes.detached import detach_into
from rocwright.home import Home
from rocwright.serving import state

# Bytes of each of the two files: some weeks of a server that one person uses.
LARGEST_LOG = 16 * 2**20

_WRITER = Path(__file__).with_name("log_writer.py")


def start_logged(
    home: Home, name: str, argv: Sequence[str], env: Mapping[str, str], *, limit: int = LARGEST_LOG
) -> Popen[bytes]:
    """Start a server whose output goes to its log. Raises InputError where its program is not installed."""
    log = state.log_of(home, name)
    writer: list[str | Path] = [sys.executable, "-I", "-S", _WRITER, log, _lock(log), str(limit)]
    return detach_into(writer, argv, env=env)


def files_of(log: Path) -> list[Path]:
    """The files of a log that are there, the older first."""
    return [path for path in (_older(log), log) if path.is_file()]


def is_written(log: Path) -> bool:
    """Whether more can come: a server has ended a moment before its last words are in its log."""
    try:
        with _lock(log).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def wait_until_written(log: Path, seconds: float = 5.0) -> None:
    """Wait until all that an ended server printed is in its log."""
    until = time.monotonic() + seconds
    while is_written(log) and time.monotonic() < until:
        time.sleep(0.01)


def _older(log: Path) -> Path:
    return log.with_name(f"{log.name}.1")


def _lock(log: Path) -> Path:
    return log.with_name(f"{log.name}.lock")
