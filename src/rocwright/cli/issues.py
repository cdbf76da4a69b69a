"""`rocwright issues`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import complete

if TYPE_CHECKING:
    from rocwright.catalog.issue import Issue
    from rocwright.diagnosis.search import IssueMatch


def _names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from rocwright.catalog.issue import the_issues

    return [name for name in the_issues()[0] if name.startswith(incomplete)]


@click.command("issues")
@click.argument("words", metavar="[ISSUE | WORDS]", nargs=-1, shell_complete=_names)
@click.option(
    "--component",
    default="",
    shell_complete=complete("component"),
    help="Only issues that may affect a component.",
)
@json_option
def command(words: tuple[str, ...], component: str, as_json: bool) -> None:
    """Known failures of the ROCm stack; with an ISSUE, all that is known about it.

    Other WORDS are looked for in every field of every issue, the best first, each with the lines that have
    them. `rocwright diagnose` and failed steps use these issues. Your own catalog folder can add more.
    """
    from rocbase.cli.tell import print_json, print_table
    from rocwright.catalog.issue import the_issues
    from rocwright.catalog.load import lookup
    from rocwright.diagnosis.search import search

    catalogued = the_issues()[0]
    candidates = [
        issue
        for issue in catalogued.values()
        if not component or not issue.components or component in issue.components
    ]
    named = len(words) == 1 and words[0] in catalogued
    matches = search(" ".join(words), candidates) if words and not named else []
    if len(words) == 1 and not named and not any(match.whole for match in matches):
        lookup("issue", words[0], catalogued)  # raises, with the nearest names
    issues = [catalogued[words[0]]] if named else [match.issue for match in matches] if words else candidates
    if as_json:
        lines = {match.issue.name: {"score": match.score, "lines": match.lines} for match in matches}
        print_json(
            [issue.model_dump(mode="json", by_alias=True) | lines.get(issue.name, {}) for issue in issues]
        )
    elif named:
        _tell(issues[0])
    elif words:
        _tell_found(matches)
    else:
        print_table(
            ("issue", "class", "means"), [(issue.name, issue.failure.value, issue.means) for issue in issues]
        )


# Issues told of those that were found; --json has all.
MOST_FOUND = 10


def _tell_found(matches: list[IssueMatch]) -> None:
    if not matches:
        click.echo("no known issue has any of these words")
    for match in matches[:MOST_FOUND]:
        click.echo(f"{click.style(match.issue.name, bold=True)}  {match.issue.means}")
        for line in match.lines:
            if line not in (f"name: {match.issue.name}", f"means: {match.issue.means}"):
                click.echo(f"  {line}")
    weaker = [match.issue.name for match in matches[MOST_FOUND:]]
    if weaker:
        click.echo(f"fewer of the words: {', '.join(weaker)}")
    click.echo("\nrocwright issues ISSUE tells all that is known of one")


def _tell(issue: Issue) -> None:
    from rocwright.doctor.remedies.words import does

    rows = [
        ("means", issue.means),
        ("class", issue.failure.value),
        ("cause", issue.cause),
        ("remedy", issue.remedy),
        *(
            ("heal", f"rocwright build --heal {does(action, 'the step that fails')}")
            for action in issue.remedies
        ),
        *(("looks", line.strip()) for line in issue.examples),
        *(("printed", f"{quote.line.strip()}  ({quote.source})") for quote in issue.quotes),
        *(("mended", f"{fix.component} {fix.versions}") for fix in issue.fixed_in),
        *(("follow", address) for address in issue.upstream),
        *(("source", text) for text in issue.source),
        ("sure", issue.confidence),
    ]
    for label, text in (("where", ", ".join(issue.components)), ("gpus", ", ".join(issue.targets))):
        if text:
            rows.append((label, text))
    click.echo(click.style(issue.name, bold=True))
    last = ""
    for label, text in rows:
        click.echo(f"  {label if label != last else '':<8}{text}")
        last = label
