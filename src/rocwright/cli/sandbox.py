"""`rocwright sandbox`."""

from __future__ import annotations

import click

from rocwright.cli.common import json_option


@click.command("sandbox")
@json_option
def command(as_json: bool) -> None:
    """Which sandbox engines work here, in the order in which they are chosen, and why the others do not."""
    from dataclasses import asdict

    from rocwright import sandbox
    from rocwright.cli.tell import print_json, print_table
    from rocwright.home import Home

    probes = sandbox.probe_all(Home.default().probes)
    if as_json:
        print_json([asdict(one) for one in probes])
        return
    print_table(
        ("engine", "", "version", "probe", "why not"),
        [
            (one.engine, "works" if one.ok else "no", one.version, f"{one.seconds:.2f} s", one.reason)
            for one in probes
        ],
        right=(3,),
    )
    click.echo(f"\nchosen: {sandbox.choose(None, probes).name}   (another: rocwright build --engine NAME)")
