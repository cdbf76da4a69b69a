"""`rocwheel targets`."""

from __future__ import annotations

import click

from rocbase.cli.options import json_option
from rocwheel.cli.common import complete_gpu


@click.command("targets")
@click.argument("name", required=False, shell_complete=complete_gpu)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """Find GPUs by any name (gfx1151, "RX 580", 780M, "Strix Halo", 1002:67df), and those in this machine."""
    from dataclasses import asdict

    from rocbase.cli.tell import print_json, print_table
    from rocwheel.wheels.asked import every_gpu, here
    from rocwheel.wheels.gpu_names import find

    chosen = find(name, every_gpu()) if name else every_gpu().gpus
    present = here()
    if as_json:
        print_json({"here": present, "targets": [asdict(gpu) for gpu in chosen]})
        return
    print_table(("target", "products"), [(gpu.target, ", ".join(gpu.products)) for gpu in chosen])
    click.echo(f"\nin this machine: {', '.join(present) or 'no AMD GPU found'}")
