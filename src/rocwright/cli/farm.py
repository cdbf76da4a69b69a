"""`rocwright farm`: machines that run steps for each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocwheel.cli.common import json_option, say

if TYPE_CHECKING:
    from distributed.security import Security

    from rocwright.farm.handed import Runs


@click.group("farm")
def command() -> None:
    """Run steps on many machines: one coordinator, and a worker on each.

    All of them build in one store (config.toml: store = "s3://..."), each with a key of its own. Then
    rocwright build --executor dask hands steps to whichever machine is free and fit.
    """


@command.command("init")
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Make the certificates of a farm in FOLDER, to be copied to each of its machines.

    Whoever has the files can run any program on all workers.
    """
    from rocwright.config import config_file
    from rocwright.farm.certificates import make_certificates

    make_certificates(folder)
    click.echo(f"made ca.pem, farm.pem and farm.key in {folder}")
    click.echo(f"copy it to each machine of the farm, and name it in {config_file()} there:")
    click.echo()
    click.echo("[farm]")
    click.echo('scheduler = "tls://HOST:8786"')
    click.echo(f'certificates = "{folder.absolute()}"')


@command.command("up")
@click.option(
    "--host",
    default="",
    help="Where to listen.  [default: everywhere with certificates, else this machine only]",
)
@click.option(
    "--port",
    default=8786,
    type=click.IntRange(0, 65535),
    show_default=True,
    help="The port; 0 for any that is free.",
)
def up(host: str, port: int) -> None:
    """Be the coordinator, until Ctrl-C: it knows the workers, and which of them runs what."""
    security = _security()
    from rocwright.farm.dask.coordinator import coordinate
    from rocwright.farm.dask.security import check_loopback

    if security is None:
        host = host or "127.0.0.1"
        check_loopback(host)
    coordinate(host or "0.0.0.0", port, security, say)  # noqa: S104 - who has no certificate is refused


@command.command("worker")
@click.argument("scheduler", required=False)
@click.option("--name", default="", help="What it is called.  [default: the name of this machine]")
def worker(scheduler: str | None, name: str) -> None:
    """Run steps here for others, until Ctrl-C: SCHEDULER is what `rocwright farm up` said.

    Asked to end, it takes nothing more and ends once what runs here has ended; asked twice, at once.
    """
    import os
    import platform

    address, security = _address(scheduler), _security(scheduler)
    from rocwright.config import store_of
    from rocwright.farm.dask.worker import serve
    from rocwright.home import Home

    store_of(Home.default())  # what is wrong with it is told before a step needs it
    serve(address, security, name or f"{platform.node()}-{os.getpid()}", say)


@command.command("status")
@click.argument("scheduler", required=False)
@json_option
def status(scheduler: str | None, as_json: bool) -> None:
    """What each worker is and offers."""
    from rocwheel.cli.tell import print_json, print_table
    from rocwheel.units import size

    address, security = _address(scheduler), _security(scheduler)
    from rocwright.farm.dask.coordinator import places

    found = places(address, security)
    if as_json:
        print_json([one.model_dump(mode="json") for one in found])
        return
    if not found:
        click.echo("there are no workers: rocwright farm worker, on each machine")
        return
    rows = [
        (
            one.name,
            str(one.cores),
            size(one.memory),
            size(one.disk),
            " ".join([one.machine, *sorted(one.features)]),
            f"takes nothing: {one.why}" if one.why else ", ".join(_runs(each) for each in one.runs) or "idle",
        )
        for one in found
    ]
    print_table(("worker", "cores", "memory", "disk", "is, and has", "does"), rows, right=(1, 2, 3))


def _runs(one: Runs) -> str:
    from rocwheel.units import count, duration

    what = f" with {count(one.jobs, 'job')}" if one.jobs else ", waiting"
    return f"{one.step} for {duration(one.seconds)}{what}"


def _address(scheduler: str | None) -> str:
    from rocwheel.errors import InputError
    from rocwright.config import config, config_file

    address = scheduler or config().farm.scheduler
    if not address:
        raise InputError(
            "no coordinator is named",
            cause=f"neither here nor in {config_file()}",
            next_step="rocwright farm up starts one and says its address",
        )
    return address


def _security(scheduler: str | None = None) -> Security | None:
    from rocwright.config import config
    from rocwright.farm.dask.security import security_of
    from rocwright.farm.extra import check_installed

    check_installed()

    settings = config().farm
    return security_of(settings.model_copy(update={"scheduler": scheduler}) if scheduler else settings)
