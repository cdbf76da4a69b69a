"""`rocwheel slim`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option
from rocwheel.cli.common import complete_gpu

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocwheel.wheels.slim.report import SlimReport
    from rocwheel.wheels.slim.wish import Compress


@click.command("slim")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    required=True,
    shell_complete=complete_gpu,
    help='A GPU to keep: gfx1151, gfx90a:xnack-, "RX 580"; auto: those here. Repeatable, or with commas.',
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="The new file or folder; for a wheel also the folder to write it into  [default: beside PATH]",
)
@click.option(
    "--compress",
    type=click.Choice(["keep", "none", "zlib", "zstd"]),
    default="keep",
    show_default=True,
    help="How the remaining code is compressed.",
)
@click.option("--strip", is_flag=True, help="Remove debug sections too.")
@click.option("--allow-missing", is_flag=True, help="Do not fail if there is no code for a GPU.")
@json_option
def command(
    path: Path,
    gpus: tuple[str, ...],
    out: Path | None,
    compress: Compress,
    strip: bool,
    allow_missing: bool,
    as_json: bool,
) -> None:
    """Write PATH again with only the machine code that the GPUs need: a wheel, a library or program, or a
    folder.

    Code for other GPUs is cut out of files, and files for other GPUs are left out. What loaded before still
    loads. A wheel gets a version that says so, such as 1.22.2+gfx1151.
    """
    from dataclasses import asdict

    from rocbase.cli.options import say
    from rocbase.cli.tell import print_json
    from rocwheel.cli.caller import gpus as known
    from rocwheel.wheels.slim import slim
    from rocwheel.wheels.write import epoch_from_environment

    report = slim(
        path,
        known().code_targets(gpus),
        out,
        compress=compress,
        strip=strip,
        allow_missing=allow_missing,
        epoch=epoch_from_environment(),
        tell=lambda name: say(f"  {name}"),
    )
    if as_json:
        print_json(asdict(report))
    else:
        _tell(report)


MOST_ROWS = 20


def _tell(report: SlimReport) -> None:
    from rocbase.cli.tell import print_table
    from rocbase.units import count

    files = [file for file in report.changed if file.after]
    print_table(
        ("file", "bytes before", "after", "code kept", "code gone"),
        [
            (file.path, f"{file.before:,}", f"{file.after:,}", _targets(file.stayed), _targets(file.went))
            for file in files[:MOST_ROWS]
        ],
        right=(1, 2),
    )
    if len(files) > MOST_ROWS:
        click.echo(f"... and {len(files) - MOST_ROWS} more")
    removed = [file for file in report.changed if not file.after]
    if removed:
        size = sum(file.before for file in removed)
        click.echo(f"{count(len(removed), 'file')} of other GPUs left out, {size:,} bytes")
    for name, reason in report.left.items():
        click.echo(f"{click.style('left', bold=True)}     {name}: {reason}")
    for name, missing in report.missing.items():
        click.echo(f"{click.style('missing', bold=True)}  {name}: no code for {', '.join(missing)}")
    click.echo(f"{report.out}   {report.before:,} -> {report.after:,} bytes")


def _targets(code: Mapping[str, int]) -> str:
    return ", ".join(sorted(code))
