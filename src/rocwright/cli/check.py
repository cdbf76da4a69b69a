"""`rocwright check`."""

from __future__ import annotations

import re
import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option, say
from rocwright.cli.common import complete_gpu

if TYPE_CHECKING:
    from rocwright.doctor.requirements.check import CheckedList

_GRADES = {"error": "red", "warning": "yellow", "note": "cyan"}


def _version(_: click.Context, __: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"3\.[0-9]{1,2}", value):
        raise click.BadParameter(f"{value!r} is not a version such as 3.12.")
    return value


@click.command("check")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option("--gpu", default="", shell_complete=complete_gpu, help='Such as gfx1151 or "RX 580".')
@click.option(
    "--python",
    default=f"{sys.version_info.major}.{sys.version_info.minor}",
    show_default=True,
    callback=_version,
    help="The Python that installs the list.",
)
@click.option(
    "--write",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the list that works to a new file.",
)
@json_option
@click.pass_context
def command(
    context: click.Context, file: Path, gpu: str, python: str, write: Path | None, as_json: bool
) -> None:
    """Check a list of Python packages for a GPU: what brings CUDA or CPU builds, and what to write instead.

    FILE is a requirements.txt, environment.yml, pyproject.toml, uv.lock, pylock.toml, poetry.lock, or the
    folder of an environment. Wheels are looked into on the package index, not fetched. If you omit --gpu, the
    project's GPU counts, else that of this machine. Exit code 12: a line stops what the list is for; 13: it
    cannot be told of a line, as its index was not reached.
    """
    from rocbase.cli.tell import print_json
    from rocbase.errors import FailureClass, InputError
    from rocbase.files.atomic import write_atomic
    from rocwheel.cli.check_gpu import CANNOT_TELL
    from rocwright import api

    if write and write.exists():
        raise InputError(
            f"{write} exists, and is not overwritten",
            cause="--write makes a new list",
            next_step="choose another name, or remove that file",
        )
    checked = api.check(file, gpu, python=python, say=say)
    if write:
        write_atomic(write, "".join(f"{line}\n" for line in checked.lines))
        say(f"written: {write}")
    if as_json:
        print_json(checked.model_dump(mode="json"))
    else:
        _print(checked, is_written=write is not None)
    if checked.findings:
        context.exit(FailureClass.CHECK.exit_code if checked.stops else CANNOT_TELL * checked.unsure)


def _print(checked: CheckedList, *, is_written: bool) -> None:
    from rocbase.cli.tell import print_rows
    from rocbase.units import count, printable, size

    notes = Counter(finding.problem for finding in checked.findings if finding.grade == "note")
    shown = [
        finding for finding in checked.findings if finding.grade != "note" or notes[finding.problem] == 1
    ]
    width = max((len(finding.line) + 2 for finding in shown if finding.line), default=0)
    for finding in shown:
        grade = "" if finding.grade == "error" else f"{finding.grade}: "
        head = f"{printable(finding.line):<{width}}{finding.name}: {grade}{finding.problem}"
        label = "write" if finding.write else "do"
        instead = printable(finding.write or finding.advice)
        click.echo(click.style(head, fg=_GRADES[finding.grade]))
        if instead:
            click.echo(f"{'':<{width}}{label:<5}  {instead}")
    for problem, number in notes.items():
        if number > 1:
            click.echo(click.style(f"{number} packages: note: {problem}", fg=_GRADES["note"]))
    if checked.findings:
        click.echo()
    print_rows(("with", f"--extra-index-url {index}") for index in checked.indexes)
    looked_up = f"looked into {checked.looked_up}"
    fetched = f" on the index, {size(checked.received)} fetched" if checked.received else ""
    for_gpu = f"for {checked.gpu}, Python {checked.python}"
    click.echo(f"{count(checked.entries, 'package')} {for_gpu}: {_total(checked)}; {looked_up}{fetched}")
    if checked.stops and not is_written:
        command = shlex.join(["rocwright", "check", checked.path, "--gpu", checked.gpu, "--write", "NEW"])
        print_rows([("next", f"{command} writes the list that works")])


def _total(checked: CheckedList) -> str:
    from rocbase.units import count

    numbers = Counter(str(finding.grade) for finding in checked.findings)
    return ", ".join(count(numbers[grade], grade) for grade in _GRADES if numbers[grade]) or "no problem"
