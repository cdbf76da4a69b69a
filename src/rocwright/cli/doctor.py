"""`rocwright doctor`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocwheel.cli.common import json_option, say
from rocwright.cli.common import complete, complete_gpu

if TYPE_CHECKING:
    from rocwright.catalog.load import Catalog
    from rocwright.doctor.able import Able
    from rocwright.doctor.doctor import Report
    from rocwright.doctor.findings.model import Finding
    from rocwright.home import Home

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan", "ok": "green"}
_MANY = 4
"""Stacks that are named; of more it is said how many."""


@click.command("doctor")
@click.argument("stack", required=False, shell_complete=complete("stack"))
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    shell_complete=complete_gpu,
    help="Check only for these GPUs of the machine.",
)
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path("/"),
    help="A folder with another machine's /sys, /proc, /dev and /etc, in place of this one.",
)
@click.option("--fix", is_flag=True, help="Run the commands marked safe, after asking for each.")
@click.option(
    "--bundle",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a bug report (.tar.gz or .zip): this report, versions, the last failed run; secrets "
    "are removed.",
)
@click.option(
    "--no-engines", is_flag=True, help="Do not try the sandbox engines; the rest takes less than a second."
)
@json_option
def command(
    stack: str | None,
    gpus: tuple[str, ...],
    root: Path,
    fix: bool,
    bundle: Path | None,
    no_engines: bool,
    as_json: bool,
) -> None:
    """Is this machine ready to build STACK (or any stack) and run it? What is wrong, why, and how to fix it.

    Reads what the kernel reports; ROCm does not need to be installed. Exit code 12: an error was found.
    """
    from rocwheel.cli.tell import print_json
    from rocwheel.errors import FailureClass
    from rocwright.catalog.load import the_catalog
    from rocwright.diagnosis.facts import host_facts
    from rocwright.doctor.attachments import last_failure, versions
    from rocwright.doctor.bundle import secrets, write_bundle
    from rocwright.doctor.doctor import examine, here, only
    from rocwright.home import Home
    from rocwright.machine.tree import Tree

    catalog, facts, home = the_catalog(), host_facts(), Home.default()
    stacks = [catalog.stack(stack).name] if stack else list(catalog.stacks)
    targets = _targets(catalog, gpus)
    with Tree(root.absolute()) as tree:
        engines = _engines(home) if tree.live and not no_engines else None
        machine = only(here(tree, catalog, facts, home, engines), targets)
        known = secrets(tree, machine.user.name, str(Path.home()), os.environ) if bundle else {}
        report = examine(machine, catalog, facts, stacks, home if tree.live else None)
        live = tree.live
    lines = list(_lines(report))
    if bundle:
        files: dict[str, object] = {
            "report.json": report.model_dump(mode="json"),
            "report.txt": click.unstyle("\n".join(lines)),
            "versions.json": versions(),
            # of another machine's folders nothing was run here
            **({"failure.json": last_failure(home)} if live else {}),
        }
        write_bundle(bundle, files, known)
        say(f"written: {bundle}")
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        click.echo("\n".join(lines))
    if fix:
        _fix(report, live=live)
    if report.worst == "error":
        raise SystemExit(FailureClass.CHECK.exit_code)


def _targets(catalog: Catalog, asked: tuple[str, ...]) -> set[str]:
    from rocwright.api.gpus import AUTO, named_gpus
    from rocwright.resolve.gpus import target_named

    return {target_named(name, catalog).name for name in named_gpus(asked) if name != AUTO}


def _engines(home: Home) -> dict[str, str]:
    from rocwright import sandbox

    isolating = tuple(one for one in sandbox.ENGINES.values() if one.isolates)
    probes = sandbox.probe_all(home.probes, isolating)
    return {one.engine: "" if one.ok else one.reason or "no" for one in probes}


def _lines(report: Report) -> Iterator[str]:
    for finding in report.findings:
        yield from _finding(finding)
    tools = ", ".join(f"{name} {version}" for name, version in report.machine.tools.items())
    if tools:
        yield f"{'':9}tools on the host: {tools}"
    if report.able:
        yield ""
        head = "What it can build (times and disk space from the catalog, for two cores, partly estimated):"
        yield click.style(head, bold=True)
        yield from _table(report.able)


def _finding(one: Finding) -> Iterator[str]:
    yield f"{click.style(f'{one.grade:<7}', fg=_COLOURS[one.grade])}  {one.what}"
    if one.grade == "ok":
        return
    many = f"{len(one.stacks)} stacks"
    for label, text in (
        ("why", one.why),
        ("for", ", ".join(one.stacks) if len(one.stacks) <= _MANY else many),
        ("fix", f"{one.mend}{'   (safe: --fix)' if one.safe else ''}" if one.mend else ""),
    ):
        if text:
            yield f"{'':9}{label:<5} {text}"


def _table(every: Sequence[Able]) -> Iterator[str]:
    from rocwheel.units import duration, size

    for one in every:
        took = f"took {duration(one.took)} here" if one.took else ""
        expected = f"about {duration(one.need.seconds)}" if one.need.seconds else "time unknown"
        if one.how == "not served":
            words = [f"not supported: {one.why}"]
        else:
            words = [
                f"{one.how}{f' ({one.why})' if one.why else ''}",
                took or expected,
                size(one.need.disk) if one.need.disk else _others(one),
                "1 job" if one.jobs == 1 else f"{one.jobs} jobs",
                one.said or ("has a lock, not tested yet" if one.row else "never tried"),
                *(f"{name}: {told}" for name, told in one.lacks.items()),
            ]
        yield f"  {one.target:<8} {one.stack:<18} {' · '.join(words)}"


def _others(one: Able) -> str:
    """What building for the target took others, where no recipe says it."""
    from rocwheel.units import size

    if one.others is None:
        return "disk unknown"
    said = [f"{size(one.others.memory)} of memory"] if one.others.memory else []
    said += [f"{size(one.others.disk)} of disk"] if one.others.disk else []
    said += [f"{one.others.hours} h"] if one.others.hours else []
    return f"other machines took {', '.join(said)}" if said else "disk unknown"


def _fix(report: Report, *, live: bool) -> None:
    from rocwheel.errors import InputError
    from rocwright.doctor.mend import mend

    if not live:
        raise InputError(
            "--fix cannot be used with --root",
            cause="--fix changes this machine, and --root describes another one",
            next_step="run rocwright doctor --fix on that machine, without --root",
        )
    done = mend(report.findings, lambda one: click.confirm(f"{one.what}\nrun: {one.mend} ?", err=True))
    if not done:
        say("no fix is safe to run automatically; read the commands above and run those that you want")
    for one in done:
        told = "not run" if one.status is None else "done" if one.status == 0 else f"ended with {one.status}"
        say(f"{told}: {one.command}")
