"""`rocwright doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option, say
from rocwright.cli.common import complete, complete_gpu

if TYPE_CHECKING:
    from rocwright.doctor.doctor import DoctorReport

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan", "ok": "green"}


@click.command("doctor")
@click.argument("stack", required=False, shell_complete=complete("stack"))
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    shell_complete=complete_gpu,
    help="Check only for these GPUs of the machine.",
)
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path("/"),
    help="A folder with another machine's /sys, /proc, /dev and /etc, in place of this one.",
)
@click.option("--fix", is_flag=True, help="Run the commands marked safe, after asking for each.")
@click.option(
    "--bundle",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a bug report (.tar.gz or .zip): this report, versions, the last failed run; secrets "
    "are removed.",
)
@click.option(
    "--no-engines", is_flag=True, help="Do not try the sandbox engines; the rest takes less than a second."
)
@json_option
def command(
    stack: str | None,
    gpus: tuple[str, ...],
    root: Path,
    fix: bool,
    bundle: Path | None,
    no_engines: bool,
    as_json: bool,
) -> None:
    """Is this machine ready to build STACK (or any stack) and run it? What is wrong, why, and how to fix it.

    Reads what the kernel reports; ROCm does not need to be installed. Exit code 12: an error was found.
    """
    from rocbase.cli.tell import print_json
    from rocbase.errors import FailureClass
    from rocwright import api
    from rocwright.doctor.lines import lines

    report = api.doctor(stack or "", gpus, root=root, engines=not no_engines, bundle=bundle)
    if bundle:
        say(f"written: {bundle}")
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        click.echo("\n".join(lines(report, _coloured)))
    if fix:
        _fix(report)
    if report.worst == "error":
        raise SystemExit(FailureClass.CHECK.exit_code)


def _coloured(text: str, kind: str) -> str:
    return click.style(text, fg=_COLOURS.get(kind), bold=kind == "head" or None)


def _fix(report: DoctorReport) -> None:
    from rocwright import api

    applied = api.apply_remedies(
        report, lambda finding: click.confirm(f"{finding.what}\nrun: {finding.remedy} ?", err=True)
    )
    if not applied:
        say("no fix is safe to run automatically; read the commands above and run those that you want")
    for entry in applied:
        outcome = (
            "not run"
            if entry.status is None
            else "done"
            if entry.status == 0
            else f"ended with {entry.status}"
        )
        say(f"{outcome}: {entry.command}")
