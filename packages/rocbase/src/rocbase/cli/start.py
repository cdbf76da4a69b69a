"""How a command line begins: signals, then the quick answer, else the library of command lines."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from rocbase.processes.startup import settle_command
from rocbase.terminal import guard

if TYPE_CHECKING:
    import click


def start(
    load: Callable[[], click.Command],
    failed: Callable[[Exception], int],
    quick: Callable[[Sequence[str]], bool],
) -> None:
    """Run the command line; every failure ends with its class's exit code.

    `quick` answers some words without the library of command lines, which takes longer to import than many an
    answer; False says that it has said nothing. `load` gives the command for all others, `failed` prints what
    no verb foresaw, and gives the exit code.
    """
    settle_command()
    guard()
    problem: BaseException | None = None
    try:
        if quick(sys.argv[1:]):
            _leave()
    except (Exception, KeyboardInterrupt) as error:
        problem = error
    from rocbase.cli.run import run

    run(load(), failed, problem)


def _leave() -> NoReturn:
    """End well, without taking apart what was imported: that takes as long as to list a small file."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
