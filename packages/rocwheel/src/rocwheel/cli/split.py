"""`rocwheel split`."""

from __future__ import annotations

from pathlib import Path

import click

from rocwheel.cli.common import json_option


@click.command("split")
@click.argument("wheel", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o",
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="The folder to write into.",
)
@json_option
def command(wheel: Path, out: Path, as_json: bool) -> None:
    """Split WHEEL into a neutral wheel without GPU code, and one wheel with the code of each target.

    `rocwheel merge` makes a wheel for any choice of targets from them. All files get the time
    SOURCE_DATE_EPOCH, or 1980-01-01.
    """
    from dataclasses import asdict

    from rocwheel.cli.common import say
    from rocwheel.cli.tell import print_json, print_table
    from rocwheel.wheels.split.wheel import split_wheel
    from rocwheel.wheels.write import epoch_from_environment

    found = split_wheel(wheel, out, epoch=epoch_from_environment(), tell=lambda name: say(f"  {name}"))
    if as_json:
        print_json(asdict(found))
        return
    print_table(
        ("wheel", "for", "code objects", "bytes"),
        [(one.path.name, one.target, f"{one.code_objects:,}", f"{one.size:,}") for one in found.pieces],
        right=(2, 3),
    )
    for path, why in found.left.items():
        click.echo(f"{click.style('left', bold=True)}  {path}: {why}; its code stays in the neutral wheel")
