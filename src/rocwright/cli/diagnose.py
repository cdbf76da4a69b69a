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

# Known issues told in full; the others by name.
MOST_KNOWN = 4


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
@click.option("--phase", type=click.Choice([phase.value for phase in Phase]), help="The phase that failed.")
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
    diagnosis = api.diagnose(
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
        print_json(_data(diagnosis))
    else:
        _tell(diagnosis)


def _data(diagnosis: Diagnosis) -> dict[str, Any]:
    issue = {"examples", "no_match", "patterns", "quotes"}
    return {
        "failure": diagnosis.failure,
        "success": diagnosis.success,
        "first": diagnosis.first.model_dump(mode="json") if diagnosis.first else None,
        "known": [
            {
                "issue": known_issue.issue.model_dump(mode="json", by_alias=True, exclude=issue),
                "place": known_issue.place.model_dump(mode="json"),
                "packages": list(known_issue.packages),
                "here": list(known_issue.here),
                "sure": known_issue.sure,
            }
            for known_issue in diagnosis.known
        ],
        "others": [line.model_dump(mode="json") for line in diagnosis.others],
        "ruled_out": [entry.model_dump(mode="json") for entry in diagnosis.ruled_out],
        "lines": diagnosis.lines,
        "size": diagnosis.size,
        "last": diagnosis.last,
        "kernel": diagnosis.kernel,
        "cards": list(diagnosis.cards),
        "new": diagnosis.new.model_dump(mode="json") if diagnosis.new else None,
    }


def _tell(diagnosis: Diagnosis) -> None:
    from rocbase.units import printable, size

    read = f"{diagnosis.lines:,} line{'' if diagnosis.lines == 1 else 's'}, {size(diagnosis.size)}"
    if diagnosis.new is not None:
        _new(diagnosis.new)
    nothing = diagnosis.first is None and diagnosis.cause is None
    if diagnosis.success:
        click.echo("this log is of a success: nothing below is a sure cause of a failure")
    if nothing:
        click.echo(f"no error found in {read}")
        if diagnosis.last.strip():
            _label("ends", printable(diagnosis.last))
    elif diagnosis.first is None:
        click.echo(_bold(f"{read}, of which none is an error by itself"))
    else:
        origin = f", by {diagnosis.first.tool}" if diagnosis.first.tool else ""
        click.echo(_bold(f"first error, line {diagnosis.first.line:,} of {read}{origin}"))
        for text in diagnosis.first.lines:
            click.echo(f"  {text}")
    candidates = [
        candidate for candidate in diagnosis.others if not nothing or candidate.line != diagnosis.lines
    ]
    if candidates:
        click.echo("if it failed, look at these lines too:" if nothing else "or one of these lines tells it:")
    for candidate in candidates:
        click.echo(f"  {candidate.line:>6,}  {candidate.text}")
    for known_issue in diagnosis.known[:MOST_KNOWN]:
        _tell_issue(known_issue, diagnosis)
    less_likely = [known_issue.issue.name for known_issue in diagnosis.known[MOST_KNOWN:]]
    if less_likely:
        _label("more", f"other known issues, less likely: {', '.join(less_likely)}")
    for out in diagnosis.ruled_out:
        _label("not", f"{out.issue} (line {out.line:,}): {out.why}")
    if nothing:
        _label("next", "the log may end before the failure, or belong to another step")
    elif diagnosis.cause is None and not diagnosis.success:
        _label("unknown", "no known issue explains this; above is the first error of the log")
        _label("next", "read the lines before it; you can add an issue to issues/*.toml of your catalog")


def _new(new: Novelty) -> None:
    """What the good log did not have."""
    from rocbase.units import count, size

    omitted = f", without its first {size(new.left_out)}" if new.left_out else ""
    if not new.count:
        click.echo(f"nothing in it is new: the good log has all its lines{omitted}\n")
        return
    click.echo(_bold(f"{count(new.count, 'line')} that the good log does not have{omitted}"))
    if new.strange:
        click.echo("  it has hardly a line of this one: is it of the same step?")
    width = max(len(f"{line.line:,}") for line in new.lines)
    for line in new.lines:
        click.echo(f"  {line.line:>{width},}  {line.text.strip()}")
    if new.count > len(new.lines):
        click.echo(f"  and {new.count - len(new.lines):,} more, which say less of a failure")
    click.echo()


def _tell_issue(known_issue: KnownIssue, diagnosis: Diagnosis) -> None:
    issue = known_issue.issue
    click.echo()
    click.echo(f"{_bold('known')}   {_bold(issue.name)}, line {known_issue.place.line:,}: {issue.means}")
    click.echo(f"  {known_issue.place.text}")
    if diagnosis.success:
        _label("unsure", "what this log is of went well")
    elif not known_issue.sure:
        _label("unsure", f"it is of {', '.join(issue.targets)}, and the log names no card: say it with --gpu")
    _label("cause", issue.cause)
    for fact in known_issue.here:
        _label("here", fact)
    _label("fix", issue.remedy)
    _label("source", f"{'; '.join(issue.source)} ({issue.confidence})")


def _label(label: str, text: str) -> None:
    click.echo(f"  {_bold(f'{label:<6}')}  {text}")


def _bold(text: str) -> str:
    return click.style(text, bold=True)
