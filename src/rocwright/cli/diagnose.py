"""`rocwright diagnose LOG`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocbase.cli.options import json_option, say
from rocwright.catalog.phase import Phase
from rocwright.cli.common import complete, complete_gpu

if TYPE_CHECKING:
    from rocwright.diagnosis.diagnose import Diagnosis, KnownIssue
    from rocwright.diagnosis.novel import Novelty

MOST_KNOWN = 4
"""Known issues told in full; the others by name."""


@click.command("diagnose")
@click.argument("log", required=False, type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option(
    "--component",
    default="",
    shell_complete=complete("component"),
    help="The component that failed, if the log is of one.",
)
@click.option("--version", default="", help="The version of the component.")
@click.option("--gpu", "gpus", multiple=True, shell_complete=complete_gpu, help="The GPU that it is for.")
@click.option("--base", default="", shell_complete=complete("base"), help="The base that it was built on.")
@click.option(
    "--good",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A log of the same step that went well: what it does not have is told first.",
)
@click.option(
    "--find-packages",
    is_flag=True,
    help="Look up which packages of --base have a missing header: its index of files is fetched.",
)
@click.option(
    "--elsewhere",
    is_flag=True,
    help="The log is of another machine: what this one has says nothing of it.",
)
@click.option("--phase", type=click.Choice([one.value for one in Phase]), help="The phase that failed.")
@json_option
def command(
    log: Path | None,
    component: str,
    version: str,
    gpus: tuple[str, ...],
    base: str,
    good: Path | None,
    find_packages: bool,
    elsewhere: bool,
    phase: str | None,
    as_json: bool,
) -> None:
    """Explain a failure from its LOG: the first error, and the known issue. - reads standard input.

    The log may come from any tool and have any size; compressed, truncated and coloured logs are read too.
    """
    from rocbase.cli.tell import print_json
    from rocwright import api

    if log is None:
        raise click.UsageError(
            "Name a LOG, or - for standard input; rocwright issues lists the known issues."
        )
    found = api.diagnose(
        sys.stdin.buffer if str(log) == "-" else log,
        component=component,
        version=version,
        gpu=gpus,
        base=base,
        phase=phase or "",
        good=good,
        find_packages=find_packages,
        elsewhere=elsewhere,
        say=say,
    )
    if as_json:
        print_json(_data(found))
    else:
        _tell(found)


def _data(found: Diagnosis) -> dict[str, Any]:
    issue = {"examples", "no_match", "patterns", "quotes"}
    return {
        "failure": found.failure,
        "success": found.success,
        "first": found.first.model_dump(mode="json") if found.first else None,
        "known": [
            {
                "issue": one.issue.model_dump(mode="json", by_alias=True, exclude=issue),
                "place": one.place.model_dump(mode="json"),
                "packages": list(one.packages),
                "here": list(one.here),
                "sure": one.sure,
            }
            for one in found.known
        ],
        "others": [one.model_dump(mode="json") for one in found.others],
        "ruled_out": [one.model_dump(mode="json") for one in found.ruled_out],
        "lines": found.lines,
        "size": found.size,
        "last": found.last,
        "kernel": found.kernel,
        "cards": list(found.cards),
        "new": found.new.model_dump(mode="json") if found.new else None,
    }


def _tell(found: Diagnosis) -> None:
    from rocbase.units import printable, size

    read = f"{found.lines:,} line{'' if found.lines == 1 else 's'}, {size(found.size)}"
    if found.new is not None:
        _new(found.new)
    nothing = found.first is None and found.cause is None
    if found.success:
        click.echo("this log is of a success: nothing below is a sure cause of a failure")
    if nothing:
        click.echo(f"no error found in {read}")
        if found.last.strip():
            _label("ends", printable(found.last))
    elif found.first is None:
        click.echo(_bold(f"{read}, of which none is an error by itself"))
    else:
        who = f", by {found.first.tool}" if found.first.tool else ""
        click.echo(_bold(f"first error, line {found.first.line:,} of {read}{who}"))
        for text in found.first.lines:
            click.echo(f"  {text}")
    others = [one for one in found.others if not nothing or one.line != found.lines]
    if others:
        click.echo("if it failed, look at these lines too:" if nothing else "or one of these lines tells it:")
    for one in others:
        click.echo(f"  {one.line:>6,}  {one.text}")
    for known in found.known[:MOST_KNOWN]:
        _known(known, found)
    more = [one.issue.name for one in found.known[MOST_KNOWN:]]
    if more:
        _label("more", f"other known issues, less likely: {', '.join(more)}")
    for out in found.ruled_out:
        _label("not", f"{out.issue} (line {out.line:,}): {out.why}")
    if nothing:
        _label("next", "the log may end before the failure, or belong to another step")
    elif found.cause is None and not found.success:
        _label("unknown", "no known issue explains this; above is the first error of the log")
        _label("next", "read the lines before it; you can add an issue to issues/*.toml of your catalog")


def _new(new: Novelty) -> None:
    """What the good log did not have."""
    from rocbase.units import count, size

    left = f", without its first {size(new.left_out)}" if new.left_out else ""
    if not new.count:
        click.echo(f"nothing in it is new: the good log has all its lines{left}\n")
        return
    click.echo(_bold(f"{count(new.count, 'line')} that the good log does not have{left}"))
    if new.strange:
        click.echo("  it has hardly a line of this one: is it of the same step?")
    width = max(len(f"{one.line:,}") for one in new.lines)
    for one in new.lines:
        click.echo(f"  {one.line:>{width},}  {one.text.strip()}")
    if new.count > len(new.lines):
        click.echo(f"  and {new.count - len(new.lines):,} more, which say less of a failure")
    click.echo()


def _known(one: KnownIssue, found: Diagnosis) -> None:
    issue = one.issue
    click.echo()
    click.echo(f"{_bold('known')}   {_bold(issue.name)}, line {one.place.line:,}: {issue.means}")
    click.echo(f"  {one.place.text}")
    if found.success:
        _label("unsure", "what this log is of went well")
    elif not one.sure:
        _label("unsure", f"it is of {', '.join(issue.targets)}, and the log names no card: say it with --gpu")
    _label("cause", issue.cause)
    for told in one.here:
        _label("here", told)
    _label("fix", issue.remedy)
    _label("source", f"{'; '.join(issue.source)} ({issue.confidence})")


def _label(label: str, text: str) -> None:
    click.echo(f"  {_bold(f'{label:<6}')}  {text}")


def _bold(text: str) -> str:
    return click.style(text, bold=True)
