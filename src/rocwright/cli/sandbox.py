"""`rocwright sandbox`."""

from __future__ import annotations

import click

from rocbase.cli.options import json_option
from rocwright import sandbox
from rocwright.cli.place import in_place
from rocwright.sandbox import Probe


@click.command("sandbox")
@json_option
def command(as_json: bool) -> None:
    """Which sandbox engines work here, in order of preference, and why the others do not."""
    from dataclasses import asdict

    from rocbase.cli.tell import print_json, print_table
    from rocwright.home import Home

    probes = sandbox.probe_all(Home.default().probes)
    if as_json:
        print_json([asdict(probe) for probe in probes])
        return
    print_table(
        ("engine", "state", "version", "probe", "why not"),
        [
            (probe.engine, _state(probe), probe.version, f"{probe.seconds:.2f} s", probe.reason)
            for probe in probes
        ],
        right=(3,),
    )
    alternative = in_place("rocwright build --engine NAME")
    click.echo(f"\nchosen: {sandbox.choose(None, probes).name}   (another: {alternative})")


def _state(probe: Probe) -> str:
    if not sandbox.ENGINES[probe.engine].isolates:
        return "only by name"
    return "works" if probe.ok else "no"
