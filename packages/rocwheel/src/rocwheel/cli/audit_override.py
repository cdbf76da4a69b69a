"""`rocwheel audit-override`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocbase.cli.options import json_option
from rocwheel.cli.common import complete_gpu

if TYPE_CHECKING:
    from rocwheel.wheels.audit.run import Advice, AuditReport

LONGEST_NAME = 60


@click.command("audit-override")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--code",
    required=True,
    shell_complete=complete_gpu,
    help="The target that the code is for, such as gfx1100.",
)
@click.option(
    "--on",
    required=True,
    shell_complete=complete_gpu,
    help="The target that it would run on, such as gfx1151.",
)
@click.option(
    "--llvm",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder with LLVM's tools  [default: the newest one found that knows both targets]",
)
@json_option
@click.pass_context
def command(context: click.Context, path: Path, code: str, on: str, llvm: Path | None, as_json: bool) -> None:
    """Check, kernel by kernel, whether code in PATH for one target is valid on another.

    Each kernel is disassembled for both targets and compared, including registers, memory, and what LLVM
    knows of hardware bugs and differences. The exit code is 0 only if every kernel is safe, otherwise 12.
    """
    from rocbase.cli.tell import print_json
    from rocbase.errors import FailureClass
    from rocwheel.cli.caller import gpus as known
    from rocwheel.wheels.audit.judge import AuditVerdict
    from rocwheel.wheels.audit.run import advice, audit_override

    code, on = known().code_target(code), known().code_target(on)
    report = audit_override(path, code, on, llvm=llvm, tell=_progress if sys.stderr.isatty() else _silent)
    override = advice(code, on)
    if as_json:
        print_json(_as_data(report, override))
    else:
        _show(report, override)
    context.exit(0 if report.verdict is AuditVerdict.SAFE else FailureClass.CHECK.exit_code)


def _silent(completed: int, total: int) -> None:
    pass


def _progress(completed: int, total: int) -> None:
    click.echo(
        f"\r{completed} of {total} code objects" + ("\n" if completed == total else ""), err=True, nl=False
    )


def _as_data(report: AuditReport, override: Advice) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "code": report.code,
        "on": report.on,
        "verdict": report.verdict,
        "kernels": dict(report.counts),
        "llvm": {"path": str(report.llvm.path), "version": report.llvm.version},
        "override": asdict(override),
        "unread": list(report.unread),
        "objects": [asdict(audited) for audited in report.objects],
    }


def _show(report: AuditReport, override: Advice) -> None:
    from rocbase.cli.tell import print_table
    from rocbase.units import count
    from rocwheel.wheels.audit.judge import AuditVerdict

    click.echo(f"code for {report.code} on {report.on}, read with LLVM {report.llvm.version}\n")
    paths = dict.fromkeys(audited.path for audited in report.objects)
    rows = []
    for path in paths:
        objects = [audited for audited in report.objects if audited.path == path]
        kernels = [kernel for audited in objects for kernel in audited.kernels]
        counts = [sum(kernel.verdict is verdict for kernel in kernels) for verdict in AuditVerdict]
        rows.append((path, *(f"{count:,}" for count in (len(objects), *counts))))
    print_table(("file", "code objects", *AuditVerdict), rows, right=(1, 2, 3, 4))
    for number, kernel, reason in report.reasons:
        name = kernel.name if len(kernel.name) <= LONGEST_NAME else f"{kernel.name[:LONGEST_NAME]}..."
        many = count(number, "kernel")
        click.echo(f"\n{reason.verdict}: {many} ({reason.kind}), such as {name or 'a whole object'}")
        click.echo(f"  {reason.text}")
    for unread in report.unread:
        click.echo(f"\nnot checked: {unread}")
    click.echo()
    if override.value and report.code != report.on:
        click.echo(
            f"override  {override.variable}={override.value} makes a {report.on} pass for {report.code}"
        )
    if override.warning or override.tried:
        tried = f"tried: {', '.join(override.tried)}" if override.tried else ""
        click.echo(f"reported  {'; '.join(filter(None, (tried, override.warning)))}")
    summary = {
        AuditVerdict.SAFE: "every kernel is safe, as far as machine code tells; checked without a GPU",
        AuditVerdict.NOT_SAFE: "some kernels are not safe",
        AuditVerdict.NOT_CHECKED: "not every kernel could be checked",
    }
    click.echo(f"verdict   {report.verdict}: {summary[report.verdict]}")
