"""`rocwright history`."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import complete

if TYPE_CHECKING:
    from rocwright.records.model import Finding, Run

NOTHING = "nothing has been built yet; start with: rocwright build llama-vulkan"
# Columns from which what a run was of has columns of its own; in fewer their words would be broken.
WIDE = 100

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@click.command("history")
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option(
    "--last", default=20, show_default=True, type=click.IntRange(min=1), help="Maximum number of runs."
)
@click.option("--failed", is_flag=True, help="Only runs that failed.")
@click.option("--stack", default="", shell_complete=complete("stack"), help="Only runs of this stack.")
@click.option("--step", default="", help="Only runs with this step: torch, or source for source/...")
@click.option("--since", default="", metavar="WHEN", help="A day such as 2026-11-20, or 12h, 7d, 2w.")
@click.option(
    "--markdown", is_flag=True, help="With a RUN: a page of what it took and what came of it, to keep."
)
@click.option("--verbose", "-v", is_flag=True, help="Every step of each run, and times to the second.")
@json_option
def command(
    run_id: str | None,
    last: int,
    failed: bool,
    stack: str,
    step: str,
    since: str,
    markdown: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Earlier runs, the newest first; with a RUN, its steps, failures and findings."""
    from rocbase.cli.tell import print_json
    from rocbase.errors import InputError
    from rocwright.home import Home
    from rocwright.records.model import Which
    from rocwright.records.opening import read_records
    from rocwright.records.place import there

    if markdown and (as_json or not run_id):
        raise click.UsageError("--markdown wants a RUN, and goes without --json.")
    home = Home.default()
    if not run_id and not there(home):
        print_json([]) if as_json else click.echo(NOTHING)
        return
    with read_records(home) as records:
        if run_id:
            run = records.run(run_id)
            if run is None:
                raise InputError(
                    f"there is no run {run_id}",
                    cause="it is not in the records of this machine",
                    next_step="rocwright history --json lists the newest runs with their names",
                )
            if markdown:
                from rocwright.config import store_of
                from rocwright.plugins import load

                build_page = load("rocwright.pages", "build")
                click.echo(build_page(records, store_of(home), run), nl=False)
                return
            findings = records.findings(run=run_id)
            if as_json:
                print_json({"run": run.model_dump(mode="json"), "findings": _plain(findings)})
            else:
                _show_one(run, findings, str(home.runs / run.id))
            return
        outcome = "failed" if failed else ""
        which = Which(stack=stack, step=step, outcome=outcome, since=_since(since) if since else "")
        runs = records.runs(which, limit=last)
    if as_json:
        print_json([run.model_dump(mode="json") for run in runs])
    elif runs:
        _show(runs, verbose)
    elif which != Which():
        click.echo("no run matches")
    else:
        click.echo(NOTHING)


def _since(text: str) -> str:
    """A day or a time as it is; 12h, 7d, 2w: so long ago. Raises a usage error for anything else."""
    ago = re.fullmatch(r"(\d{1,5})([hdw])", text)
    if ago:
        then = datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return then.strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"--since {text!r} is neither a day (2026-11-20) nor 12h, 7d or 2w.") from None
    aware = then if then.tzinfo else then.replace(tzinfo=UTC)
    return aware.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _show(runs: list[Run], verbose: bool) -> None:
    from rocbase.cli.tell import print_table
    from rocbase.terminal import columns
    from rocbase.units import duration

    if 0 < columns() < WIDE:
        print_table(
            ("when", "outcome", "time", "run", "steps"),
            [
                (
                    run.started if verbose else run.started[:16].replace("T", " "),
                    run.outcome or run.state,
                    duration(_lasted(run)),
                    f"{run.stack} {', '.join(run.gpu)} {run.base} {run.variant}".rstrip(),
                    _steps(run, verbose),
                )
                for run in runs
            ],
            right=(2,),
        )
        return
    print_table(
        ("when", "stack", "gpu", "base", "outcome", "time", "steps"),
        [
            (
                run.started if verbose else run.started[:16].replace("T", " "),
                run.stack,
                ",".join(run.gpu),
                f"{run.base} {run.variant}".strip(),
                run.outcome or run.state,
                duration(_lasted(run)),
                _steps(run, verbose),
            )
            for run in runs
        ],
        right=(5,),
    )


def _lasted(run: Run) -> float:
    """Seconds that a run took; that it has taken, where it has not ended."""
    if run.state != "running":
        return run.seconds
    return (datetime.now(UTC) - datetime.fromisoformat(run.started)).total_seconds()


def _steps(run: Run, verbose: bool) -> str:
    """Every step as it went; in short how many went how, and which failed."""
    if verbose:
        return ", ".join(f"{step.name} {step.outcome or step.state}" for step in run.steps)
    counts = Counter(step.outcome or step.state for step in run.steps)
    failed = ", ".join(step.name for step in run.steps if step.outcome == "failed")
    return ", ".join(
        f"{number} {how}{f': {failed}' if how == 'failed' else ''}" for how, number in counts.items()
    )


def _show_one(run: Run, findings: list[Finding], logs: str) -> None:
    from rocbase.cli.tell import print_table
    from rocbase.units import duration, size
    from rocwright.verify.lines import table_rows

    words: tuple[tuple[str, str], ...] = (
        ("run", run.id),
        ("what", f"{run.command} {run.stack} {','.join(run.gpu)} {run.base} {run.variant}".rstrip()),
        ("asked by", run.origin),
        ("begun", f"{run.started} on {run.machine}" if run.machine else run.started),
        ("outcome", f"{run.outcome or run.state} after {duration(_lasted(run))}"),
        ("versions", ", ".join(f"{name} {version}" for name, version in run.versions.items())),
        ("logs", logs),
    )
    for label, text in words:
        if text:
            click.echo(f"{click.style(f'{label:<9}', bold=True)} {text}")
    if run.steps:
        click.echo()
        print_table(
            ("step", "outcome", "time", "memory", "failure"),
            [
                (
                    step.name,
                    f"{step.outcome}, resumed" if step.resumed else step.outcome or step.state,
                    duration(step.seconds),
                    size(step.peak_memory) if step.peak_memory else "",
                    ": ".join(
                        text for text in (step.failure, step.issue or step.error.get("message", "")) if text
                    ),
                )
                for step in run.steps
            ],
            right=(2, 3),
        )
    if findings:
        click.echo()
        print_table(("component", "check", "outcome", "on", "detail"), table_rows(findings))


def _plain(findings: list[Finding]) -> list[dict[str, object]]:
    return [finding.model_dump(mode="json") for finding in findings]
