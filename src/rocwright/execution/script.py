"""The script of a step's shell: its commands, each told as it begins; and from where on it goes on."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from rocwright.model.step_environment import BUILD, FIXED
from rocwright.model.steps import RunAction

# What a step's shell prints before each command, with how many have ended.
BEGINS = "rocwright begins command "

# Where a step's shell writes down what the commands behind need of it, with how many have ended.
SHELL = f"{BUILD}/shell-before-command-"


def script_of(action: RunAction, env: Mapping[str, str], opens: str = "", ended: int = 0) -> str:
    """The commands behind the first `ended`, for a shell that begins with `env`, after what it `opens`.

    Before each command from which the step can go on, the exported variables and the folder are written
    down. They are taken up where the shell goes on, but for variables that depend on the machine and that no
    command has changed: they are those of the attempt.
    """
    own = {name for name in env if name in FIXED or name in action.env}
    lines = [opens] if opens else []
    if action.resume:
        lines += _keeping({name: value for name, value in env.items() if name not in own})
    if ended:
        lines += [f"unset {' '.join(sorted(own))}", f". {SHELL}{ended}", 'cd "$ROCWRIGHT_AT"']
        lines += ["unset ROCWRIGHT_AT"]
    for number, command in enumerate(action.commands[ended:], ended):
        if number > ended and 0 < action.resume <= number + 1:
            lines.append(f"rocwright_keep > {SHELL}{number}")
        lines += [f"printf '{BEGINS}%s\\n' {number}", command]
    return "\n".join(lines)


def _keeping(machine: Mapping[str, str]) -> Iterator[str]:
    """A function of the shell that prints commands which bring it there again."""
    yield "rocwright_keep() ("
    for name, value in machine.items():
        # gone in a later attempt too; else only where a command has changed it
        yield f"""[ "${{{name}+x}}" ] || echo 'unset {name}'"""
        yield f"""[ "${{{name}-}}" != {shlex.quote(value)} ] || unset {name}"""
    yield 'ROCWRIGHT_AT="$(pwd)"'
    yield "export ROCWRIGHT_AT"
    yield "export -p"
    yield ")"


def started_command(line: str, commands: Sequence[str]) -> tuple[str, int | None]:
    """A line of output, and the number from 0 of the command that begins with it: None for any other line.

    What the command before said last may stand in the same line, where no newline ended it.
    """
    text, mark, number = line.rpartition(BEGINS)
    valid = bool(mark) and number.isdecimal() and int(number) < len(commands)
    return (text, int(number)) if valid else (line, None)
