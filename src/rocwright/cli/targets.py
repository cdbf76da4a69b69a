"""`rocwright targets`."""

from __future__ import annotations

import click

from rocwright.cli.common import complete, json_option


@click.command("targets")
@click.argument("name", required=False, shell_complete=complete("gpu"))
@json_option
def command(name: str | None, as_json: bool) -> None:
    """GPUs by target, product or PCI id (gfx1151, "RX 580", 1002:67df), and the ones in this machine."""
    from rocwright.catalog.detect import find_gpus
    from rocwright.catalog.load import builtin_catalog
    from rocwright.cli.tell import print_json, print_table

    catalog = builtin_catalog()
    here = find_gpus(catalog)
    chosen = list(catalog.targets.values())
    if name is not None:
        wanted = name.lower()
        chosen = [
            one
            for one in chosen
            if wanted == one.name
            or wanted in one.pci_ids
            or any(all(word in product.lower() for word in wanted.split()) for product in one.products)
        ] or [catalog.target(name)]
    if as_json:
        print_json(
            {
                "here": [{"target": one.target, "pci_id": one.pci_id, "source": one.source} for one in here],
                "targets": [one.model_dump(mode="json") for one in chosen],
            }
        )
        return
    print_table(
        ("target", "generation", "products"),
        [(one.name, one.generation, ", ".join(one.products)) for one in chosen],
    )
    found = ", ".join(f"{one.target or 'unknown target'} ({one.pci_id}, {one.source})" for one in here)
    click.echo(f"\nin this machine: {found or 'no AMD GPU found'}")
