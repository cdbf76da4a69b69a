"""`rocwheel split`."""

from __future__ import annotations

from pathlib import Path

import click

from rocbase.cli.options import json_option


@click.command("split")
@click.argument("wheel", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o",
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="The folder to write into.",
)
@click.option(
    "--kpack",
    is_flag=True,
    help="Write the code into kpack archives, which ROCm 7.14 and later find beside the libraries.",
)
@json_option
def command(wheel: Path, out: Path, kpack: bool, as_json: bool) -> None:
    """Split WHEEL into a neutral wheel without GPU code, and one wheel with the code of each target.

    `rocwheel merge` makes a wheel for any choice of targets from them. With --kpack they are a host wheel and
    device wheels, which are installed together as they are. All files get the time SOURCE_DATE_EPOCH, or
    1980-01-01.
    """
    from dataclasses import asdict

    from rocbase.cli.options import say
    from rocbase.cli.tell import print_json, print_table
    from rocwheel.wheels.split.device_wheels import split_device_wheels
    from rocwheel.wheels.split.wheel import split_wheel
    from rocwheel.wheels.write import epoch_from_environment

    split = split_device_wheels if kpack else split_wheel
    written = split(wheel, out, epoch=epoch_from_environment(), tell=lambda name: say(f"  {name}"))
    if as_json:
        print_json(asdict(written))
        return
    print_table(
        ("wheel", "for", "code objects", "bytes"),
        [
            (piece.path.name, piece.target, f"{piece.code_objects:,}", f"{piece.size:,}")
            for piece in written.pieces
        ],
        right=(2, 3),
    )
    base = "host" if kpack else "neutral"
    for path, reason in written.left.items():
        click.echo(f"{click.style('left', bold=True)}  {path}: {reason}; its code stays in the {base} wheel")
