"""`rocwright targets`."""

from __future__ import annotations

import click

from rocwheel.cli.common import json_option
from rocwright.cli.common import complete_gpu


@click.command("targets")
@click.argument("name", required=False, shell_complete=complete_gpu)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """GPUs by any name (gfx1151, "RX 580", 780M, "Strix Halo", 1002:67df), and the ones in this machine.

    For one target: all that is known about it, with sources.
    """
    from rocwheel.cli.tell import print_json, print_table
    from rocwright.catalog.detect import find_gpus
    from rocwright.catalog.load import the_catalog
    from rocwright.cli.target_page import target_page
    from rocwright.resolve.gpus import targets_named

    catalog = the_catalog()
    chosen = list(catalog.targets.values()) if name is None else targets_named(name, catalog)
    here = find_gpus(catalog)
    if as_json:
        print_json(
            {
                "here": [{"target": one.target, "pci_id": one.pci_id, "source": one.source} for one in here],
                "targets": [one.model_dump(mode="json") for one in chosen],
            }
        )
        return
    if name is not None and len(chosen) == 1:
        click.echo(target_page(chosen[0], catalog))
        return
    print_table(
        ("target", "generation", "products"),
        [(one.name, one.generation, ", ".join(one.products)) for one in chosen],
    )
    found = ", ".join(f"{one.target or 'unknown target'} ({one.pci_id}, {one.source})" for one in here)
    click.echo(f"\nin this machine: {found or 'no AMD GPU found'}")
