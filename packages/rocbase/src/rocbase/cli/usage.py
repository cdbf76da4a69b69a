"""What click found wrong in a command line, told as every other failure."""

from __future__ import annotations

import re

import click

from rocbase.errors import InputError


def as_input(error: click.ClickException) -> InputError:
    """The same with its cause, how the command is called, and a next step."""
    summary, _, detail = error.format_message().partition("\n")
    context = getattr(error, "ctx", None)
    if context is None:
        return InputError(
            _as_clause(summary),
            detail=detail,
            cause="it is on the command line",
            next_step="correct the command line",
        )
    near = tuple(getattr(error, "possibilities", None) or ())
    # click says them itself too, in a way that differs between its releases
    summary = re.split(r" \(?(?:Did you mean|Possible options)", summary)[0] if near else summary
    help_command = f"{context.command_path} --help"
    usage = " ".join(context.command.collect_usage_pieces(context))
    return InputError(
        _as_clause(summary),
        detail=detail,
        cause=f"the command is {context.command_path} {usage}".rstrip(),
        next_step=_said_otherwise(error, context)
        or (f"{' or '.join(near)}? {help_command} lists all" if near else f"{help_command} explains it"),
    )


def _said_otherwise(error: click.ClickException, context: click.Context) -> str:
    """Return how to say an option that is another verb, or an argument: `plan --stack X` is `plan X`."""
    if isinstance(error, click.NoSuchOption):
        root = context.find_root()
        verb = getattr(root.command, "elsewhere", {}).get(f"{context.info_name} {error.option_name}")
        if verb:
            return f"{root.command_path} {verb}"
        name = error.option_name.lstrip("-").replace("-", "_")
        if any(isinstance(param, click.Argument) and param.name == name for param in context.command.params):
            return f"{name.upper()} is no option: {context.command_path} {name.upper()}"
    return ""


def _as_clause(text: str) -> str:
    """A sentence as messages begin and end here; names in capitals stay."""
    text = text.strip().removesuffix(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text
