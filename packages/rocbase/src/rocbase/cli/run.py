"""A command line from its start to its exit code: no failure of a user's ends in a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import click

from rocbase.processes.startup import settle_command
from rocbase.terminal import colours


def run(
    command: click.Command, failed: Callable[[Exception], int], problem: BaseException | None = None
) -> None:
    """Run the command line; every failure ends with its class's exit code.

    `failed` prints what no verb foresaw, and gives the exit code. With `problem` nothing is run any
    more: that is the failure.
    """
    debug = "--debug" in sys.argv
    settle_command()
    # around the command's own context, so that errors are printed by it too
    with click.Context(command, color=None if colours() else False).scope(cleanup=False):
        try:
            if problem is not None:
                raise problem
            code = command.main(standalone_mode=False, color=None if colours() else False)
            sys.exit(code if isinstance(code, int) else 0)
        except click.exceptions.Abort:
            click.echo("stopped", err=True)
            sys.exit(130)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(error.exit_code)
        except click.ClickException as error:
            from rocbase.cli.usage import as_input

            sys.exit(failed(as_input(error)))
        except KeyboardInterrupt:
            sys.exit(130)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(141)
        except Exception as error:
            if debug:
                raise
            sys.exit(failed(error))
