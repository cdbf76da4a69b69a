"""`rocwheel merge`."""

from __future__ import annotations

from pathlib import Path

import click

from rocbase.cli.options import json_option


@click.command("merge")
@click.argument(
    "wheels", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path(),
    help="The folder to write into  [default: the current one]",
)
@json_option
def command(wheels: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Put WHEELS together: the neutral piece of a wheel, and the pieces of the targets that you want.

    With all targets you get the wheel that was split; with some, what `slim` would make of it.
    """
    from dataclasses import asdict

    from rocbase.cli.options import say
    from rocbase.cli.tell import print_json
    from rocwheel.wheels.split.merge import merge_wheels

    merged = merge_wheels(wheels, out, tell=lambda name: say(f"  {name}"))
    if as_json:
        print_json(asdict(merged))
        return
    click.echo(f"{merged.path}   {merged.size:,} bytes, for {', '.join(merged.targets)}")
    if merged.exact:
        click.echo("byte for byte the wheel that was split, in canonical form")
