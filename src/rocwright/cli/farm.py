"""`rocwright farm`: machines that run steps for each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import Selection, project_options, the_project
from rocwright.cli.place import say

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
    from rocwright.config import config
    from rocwright.farm.dask.coordinator import coordinate
    from rocwright.farm.dask.security import check_loopback

    if not config().farm.certificates:
        host = host or "127.0.0.1"
        check_loopback(host)
    coordinate(host or "0.0.0.0", port, security, say)  # noqa: S104 - who has no certificate is refused


@command.command("worker")
@click.argument("scheduler", required=False)
@click.option("--name", default="", help="What it is called.  [default: the name of this machine]")
@click.option(
    "--only",
    type=click.Choice(["verify"]),
    help="verify: build nothing, and run the checks that others want of this machine's GPU.",
)
@click.option(
    "--store",
    "url",
    default="",
    help="With --only verify: the store to look in.  [default: that of config.toml]",
)
@click.option("--once", is_flag=True, help="With --only verify: end when nothing is left to do.")
@click.option("--dry-run", is_flag=True, help="With --only verify: say what would run, and end.")
@json_option
def worker(
    scheduler: str | None, name: str, only: str | None, url: str, once: bool, dry_run: bool, as_json: bool
) -> None:
    """Run steps here for others, until Ctrl-C: SCHEDULER is what `rocwright farm up` said.

    Asked to end, it takes nothing more and ends once what runs here has ended; asked twice, at once.

    With --only verify it lends this machine's GPU: what keys that are trusted here want verified
    (rocwright farm verify, on their machine) is run in a sandbox without a network, and the findings are
    signed and put into the store.
    """
    if only:
        if scheduler or name:
            raise click.UsageError("--only verify needs no coordinator: leave out SCHEDULER and --name.")
        _lend(url, once=once, dry_run=dry_run, as_json=as_json)
        return
    if url or once or dry_run or as_json:
        raise click.UsageError("--store, --once, --dry-run and --json are for --only verify.")
    import os
    import platform

    address, security = _address(scheduler), _security(scheduler)
    from rocwright.config import store_of
    from rocwright.farm.dask.worker import serve
    from rocwright.home import Home

    store_of(Home.default())  # what is wrong with it is told before a step needs it
    serve(address, security, name or f"{platform.node()}-{os.getpid()}", say)


@command.command("explain")
@click.argument("step")
@project_options
@click.option("--scheduler", help="What `rocwright farm up` said.  [default: that of config.toml]")
@json_option
def explain(step: str, selection: Selection, scheduler: str | None, as_json: bool) -> None:
    """On which workers STEP of the stack can run, and why not on the others."""
    from rocbase.cli.tell import print_json, print_table
    from rocbase.errors import InputError
    from rocbase.units import size
    from rocwright import api

    project = the_project(selection)
    steps = {decision.step.name: decision.step for decision in api.plan(project)}
    if step not in steps:
        raise InputError(
            f"the plan of {project.request.stack} has no step {step}",
            cause=f"its steps: {', '.join(steps)}",
            next_step="rocwright plan shows them",
        )
    address, security = _address(scheduler), _security(scheduler)
    from rocwright.farm.dask.coordinator import places
    from rocwright.farm.needs import needs_of, short_of

    needs, all_workers = needs_of(steps[step]), places(address, security)
    verdicts = [
        (worker, short_of(needs, worker) or ([worker.why] if worker.why else [])) for worker in all_workers
    ]
    if as_json:
        data = {"memory": needs.memory, "disk": needs.disk, "machine": needs.machine}
        workers = [{"name": worker.name, "fits": not lacks, "lacks": lacks} for worker, lacks in verdicts]
        print_json({"step": step, "needs": data | {"features": sorted(needs.features)}, "workers": workers})
        return
    requirements = [
        f"{size(needs.memory)} memory",
        f"{size(needs.disk)} disk",
        needs.machine,
        *sorted(needs.features),
    ]
    click.echo(f"{step} needs {', '.join(requirement for requirement in requirements if requirement)}")
    rows = [
        (
            worker.name,
            "no" if lacks else "yes",
            "; ".join(lacks) or ", ".join(map(_runs, worker.runs)) or "idle",
        )
        for worker, lacks in verdicts
    ]
    print_table(("worker", "fits", "why"), rows)
    if all(lacks for _, lacks in verdicts):
        click.echo("no worker can run it: start one on a machine that has what it needs")


@command.command("verify")
@project_options
@click.option("--cpu", is_flag=True, help="On any machine's processor, instead of the GPU of the lock.")
@click.option(
    "--wait",
    type=float,
    default=0,
    metavar="MINUTES",
    help="Wait so long for evidence.  [default: not at all]",
)
@json_option
def verify(selection: Selection, cpu: bool, wait: float, as_json: bool) -> None:
    """Have what is built here verified on a machine that lends its GPU, and take the evidence that came.

    It is put into the store that all see (config.toml: store = "s3://..."); whoever trusts this machine's key
    and runs `rocwright farm worker --only verify` on a machine with the GPU runs it. The same command takes
    what was found: evidence of keys that are trusted here goes on record, as of a verification.
    """
    from rocbase.cli.tell import print_json
    from rocbase.errors import CheckError
    from rocwright import api

    project = the_project(selection)
    evidence = api.verify_elsewhere(project, cpu=cpu, wait=wait * 60, say=say)
    if as_json:
        print_json(
            [
                {"device": device, "by": lent.by, "keyid": lent.keyid, "new": lent.new}
                | lent.evidence.model_dump(mode="json")
                for device, all_ in evidence.items()
                for lent in all_
            ]
        )
    else:
        from rocwright.verify.lending.lend import evidence_line

        for device, all_ in evidence.items():
            place = device or "a processor"
            for lent in all_:
                click.echo(f"{place}: {evidence_line(lent.evidence)}")
                click.echo(f"  on a machine of {lent.by}: {lent.evidence.card}")
                click.echo(f"  evidence  rocwright history {lent.evidence.run}")
            if not all_:
                click.echo(f"{place}: it is wanted, and nobody has verified it yet")
                click.echo("  there: rocwright farm worker --only verify; then the same command here")
    if not all(lent.ok for all_ in evidence.values() for lent in all_):
        raise CheckError(
            "checks failed on a machine that lends its GPU",
            cause="the findings are above",
            next_step="rocwright history RUN shows each",
        )


def _lend(url: str, *, once: bool, dry_run: bool, as_json: bool) -> None:
    from rocwright import api

    lender = api.lender(url, say=say)
    if dry_run or as_json:
        from rocbase.cli.tell import print_json, print_table

        requests = lender.look()
        if as_json:
            print_json(
                [
                    {
                        "what": request.what,
                        "device": request.wanted.device,
                        "by": request.by,
                        "runs": not request.why_not,
                        "why_not": request.why_not,
                        "artifacts": request.wanted.artifacts,
                    }
                    for request in requests
                ]
            )
        elif not requests:
            click.echo("nothing is wanted there by keys that are trusted here")
        else:
            rows = [
                (request.what, request.wanted.device or "cpu", request.by, request.why_not or "it would run")
                for request in requests
            ]
            print_table(("what", "on", "wanted by", "here"), rows)
        return
    import signal
    import threading

    # an ordinary end, like Ctrl-C: what runs is ended, and its lease given back
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    devices = ", ".join(sorted(lender.devices - {""})) or "no AMD GPU: only what runs on a processor"
    say(f"lends {devices}; looks in {lender.store}")
    lender.serve(threading.Event(), once=once)


@command.command("status")
@click.argument("scheduler", required=False)
@json_option
def status(scheduler: str | None, as_json: bool) -> None:
    """What each worker is and offers."""
    from rocbase.cli.tell import print_json, print_table
    from rocbase.units import size

    address, security = _address(scheduler), _security(scheduler)
    from rocwright.farm.dask.coordinator import places

    workers = places(address, security)
    if as_json:
        print_json([worker.model_dump(mode="json") for worker in workers])
        return
    if not workers:
        click.echo("there are no workers: rocwright farm worker, on each machine")
        return
    rows = [
        (
            worker.name,
            str(worker.cores),
            size(worker.memory),
            size(worker.disk),
            " ".join([worker.machine, *sorted(worker.features)]),
            f"takes nothing: {worker.why}"
            if worker.why
            else ", ".join(_runs(run) for run in worker.runs) or "idle",
        )
        for worker in workers
    ]
    print_table(("worker", "cores", "memory", "disk", "is, and has", "does"), rows, right=(1, 2, 3))


def _runs(run: Runs) -> str:
    from rocbase.units import count, duration

    suffix = f" with {count(run.jobs, 'job')}" if run.jobs else ", waiting"
    return f"{run.step} for {duration(run.seconds)}{suffix}"


def _address(scheduler: str | None) -> str:
    from rocbase.errors import InputError
    from rocwright.config import config, config_file

    address = scheduler or config().farm.scheduler
    if not address:
        raise InputError(
            "no coordinator is named",
            cause=f"neither here nor in {config_file()}",
            next_step="rocwright farm up starts one and says its address",
        )
    return address


def _security(scheduler: str | None = None) -> Security:
    from rocwright.config import config
    from rocwright.plugins import require_extra

    require_extra("rocwright", "farm", "running steps on other machines")
    from rocwright.farm.dask.security import security_of

    settings = config().farm
    return security_of(settings.model_copy(update={"scheduler": scheduler}) if scheduler else settings)
