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

    known = the_issues()[0]
    about = [
        one for one in known.values() if not component or not one.components or component in one.components
    ]
    named = len(words) == 1 and words[0] in known
    found = search(" ".join(words), about) if words and not named else []
    if len(words) == 1 and not named and not any(one.whole for one in found):
        lookup("issue", words[0], known)  # raises, with the nearest names
    issues = [known[words[0]]] if named else [one.issue for one in found] if words else about
    if as_json:
        lines = {one.issue.name: {"score": one.score, "lines": one.lines} for one in found}
        print_json([one.model_dump(mode="json", by_alias=True) | lines.get(one.name, {}) for one in issues])
    elif named:
        _tell(issues[0])
    elif words:
        _tell_found(found)
    else:
        print_table(("issue", "class", "means"), [(one.name, one.failure.value, one.means) for one in issues])


MOST_FOUND = 10
"""Issues told of those that were found; --json has all."""


def _tell_found(found: list[IssueMatch]) -> None:
    if not found:
        click.echo("no known issue has any of these words")
    for one in found[:MOST_FOUND]:
        click.echo(f"{click.style(one.issue.name, bold=True)}  {one.issue.means}")
        for line in one.lines:
            if line not in (f"name: {one.issue.name}", f"means: {one.issue.means}"):
                click.echo(f"  {line}")
    more = [one.issue.name for one in found[MOST_FOUND:]]
    if more:
        click.echo(f"fewer of the words: {', '.join(more)}")
    click.echo("\nrocwright issues ISSUE tells all that is known of one")


def _tell(one: Issue) -> None:
    from rocwright.remedies.words import does

    rows = [
        ("means", one.means),
        ("class", one.failure.value),
        ("cause", one.cause),
        ("remedy", one.remedy),
        *(
            ("heal", f"rocwright build --heal {does(action, 'the step that fails')}")
            for action in one.remedies
        ),
        *(("looks", line.strip()) for line in one.examples),
        *(("printed", f"{quote.line.strip()}  ({quote.source})") for quote in one.quotes),
        *(("mended", f"{each.component} {each.versions}") for each in one.fixed_in),
        *(("follow", address) for address in one.upstream),
        *(("source", text) for text in one.source),
        ("sure", one.confidence),
    ]
    for label, text in (("where", ", ".join(one.components)), ("gpus", ", ".join(one.targets))):
        if text:
            rows.append((label, text))
    click.echo(click.style(one.name, bold=True))
    last = ""
    for label, text in rows:
        click.echo(f"  {label if label != last else '':<8}{text}")
        last = label
