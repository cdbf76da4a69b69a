"""`rocwheel diff`."""

from __future__ import annotations

from pathlib import Path

import click

from rocbase.cli.options import json_option

_PATH = click.Path(exists=True, path_type=Path)


@click.command("diff")
@click.argument("before", type=_PATH)
@click.argument("after", type=_PATH)
@click.option("--all", "every", is_flag=True, help="List every name, not only the first ones.")
@json_option
def command(before: Path, after: Path, every: bool, as_json: bool) -> None:
    """Show what differs between two wheels, from the name down to the kernel.

    BEFORE and AFTER are wheels, unpacked wheels, or libraries. Exit code 0: it makes no difference which
    one is installed; 1: it does; others are errors.
    """
    from dataclasses import asdict

    from rocbase.cli.tell import print_json
    from rocwheel.cli.caller import sboms
    from rocwheel.wheels.diff.text import lines, summary
    from rocwheel.wheels.diff.wheels import diff

    difference = diff(before, after)
    # an SBOM that differs is told by what it tells of, not only as a file
    differ = any("/sboms/" in file.path for file in difference.files)
    bills, sbom_lines = sboms().compared(before, after, every) if differ else ({}, ())
    if as_json:
        sbom = {"sbom": bills} if bills else {}
        print_json({"same": difference.same, "summary": summary(difference), **asdict(difference), **sbom})
    else:
        click.echo(click.style(summary(difference), bold=True))
        for line in lines(difference, every=every):
            click.echo(line)
        for line in sbom_lines:
            click.echo(f"  SBOM: {line}")
    raise SystemExit(0 if difference.same else 1)
