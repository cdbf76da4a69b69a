"""`rocwright targets`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import complete_gpu


@click.command("targets")
@click.argument("name", required=False, shell_complete=complete_gpu)
@click.option("--verbose", "-v", is_flag=True, help="All products; for one target, all that is known of it.")
@json_option
def command(name: str | None, verbose: bool, as_json: bool) -> None:
    """GPUs by any name (gfx1151, "RX 580", 780M, "Strix Halo", 1002:67df), and the ones in this machine.

    For one target: what can be expected of it, by evidence; with -v all that is known, with sources.
    """
    from rocbase.cli.tell import print_json, print_rows, print_table
    from rocwright.catalog.detect import find_gpus
    from rocwright.catalog.load import the_catalog
    from rocwright.cli.target_page import LABELS, page_rows, short_rows
    from rocwright.home import Home
    from rocwright.plan.resolve.gpus import targets_named
    from rocwright.verify.verdict import lines, verdict

    catalog = the_catalog()
    chosen = list(catalog.targets.values()) if name is None else targets_named(name, catalog)
    local_gpus, home = find_gpus(catalog), Home.default()
    if as_json:
        print_json(
            {
                "here": [
                    {"target": gpu.target, "pci_id": gpu.pci_id, "source": gpu.source} for gpu in local_gpus
                ],
                "targets": [target.model_dump(mode="json") for target in chosen],
            }
            | (
                {"verdicts": [verdict(target, catalog, home).model_dump() for target in chosen]}
                if name
                else {}
            )
        )
        return
    if name is not None and len(chosen) == 1:
        target = chosen[0]
        click.echo(f"{click.style(target.name, bold=True)}  {target.generation}")
        print_rows(lines(verdict(target, catalog, home)), indent="  ", width=LABELS)
        if verbose:
            click.echo()
        print_rows(page_rows(target, catalog) if verbose else short_rows(target), indent="  ", width=LABELS)
        if not verbose:
            click.echo(f"\nrocwright targets {target.name} -v tells all of it, with sources")
        return
    print_table(
        ("target", "generation", "products"),
        [(target.name, target.generation, _products(target.products, verbose)) for target in chosen],
    )
    summary = ", ".join(
        f"{gpu.target or 'unknown target'} ({gpu.pci_id}, {gpu.source})" for gpu in local_gpus
    )
    click.echo(f"\nin this machine: {summary or 'no AMD GPU found'}")


# Products that a line names where not all are asked for.
SHOWN = 3


def _products(products: Sequence[str], every: bool) -> str:
    suffix = "" if every or len(products) <= SHOWN else f" and {len(products) - SHOWN} more"
    return ", ".join(products if every else products[:SHOWN]) + suffix
