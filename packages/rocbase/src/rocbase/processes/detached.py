"""A process that outlives its starter, and one that reads what it prints."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from rocbase.errors import InternalError
from rocbase.processes.run import not_installed


def detach_into(
    into: Sequence[str | Path], argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, without input; both outputs go to the input of `into`.

    That is a program that leaves its starter at once and reads on. Raises InputError where a program is not
    installed, InternalError where `into` fails before that.
    """
    words = tuple(str(word) for word in argv)
    read, write = os.pipe()
    try:
        _start_reader(tuple(str(word) for word in into), read)
        return subprocess.Popen(
            words,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=write,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise not_installed(words[0]) from error
    finally:
        os.close(read)
        os.close(write)


def _start_reader(words: tuple[str, ...], source: int) -> None:
    with subprocess.Popen(
        words,
        env={},
        stdin=source,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as reader:
        errors = reader.communicate()[1].decode(errors="replace")
    if reader.returncode != 0:
        raise InternalError(
            "what a program prints cannot be read",
            cause=errors.strip()[-500:] or f"{words[0]} ended with status {reader.returncode}",
            next_step="look for room on the disk, and at the rights of its folder",
        )
