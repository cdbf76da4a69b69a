"""`rocwright issues`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rocwheel.cli.common import json_option
from rocwright.cli.common import complete

if TYPE_CHECKING:
    from rocwright.catalog.issue import Issue


def _names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from rocwright.catalog.issue import the_issues

    return [name for name in the_issues()[0] if name.startswith(incomplete)]


@click.command("issues")
@click.argument("ident", metavar="[ISSUE]", required=False, shell_complete=_names)
@click.option("--search", default="", help="Only issues that contain these words, in any order.")
@click.option(
    "--component",
    default="",
    shell_complete=complete("component"),
    help="Only issues that may affect a component.",
)
@click.option("--markdown", is_flag=True, help="As the page of the documentation.")
@json_option
def command(ident: str | None, search: str, component: str, markdown: bool, as_json: bool) -> None:
    """Known failures of the ROCm stack; with an ISSUE, all that is known about it.

    `rocwright diagnose` and failed steps use them. Your own catalog folder can add more.
    """
    from rocwheel.cli.tell import print_json, print_table
    from rocwright.catalog.issue import the_issues
    from rocwright.catalog.load import lookup
    from rocwright.doctor.page import as_markdown

    known = the_issues()[0]
    found = [lookup("issue", ident, known)] if ident else [*known.values()]
    words = search.lower().split()
    found = [
        one
        for one in found
        if all(word in _text(one) for word in words)
        and (not component or not one.components or component in one.components)
    ]
    if as_json:
        print_json([one.model_dump(mode="json", by_alias=True) for one in found])
    elif markdown:
        click.echo(as_markdown(found))
    elif ident:
        for one in found:
            _tell(one)
    else:
        print_table(("issue", "class", "means"), [(one.name, one.failure.value, one.means) for one in found])


def _text(one: Issue) -> str:
    return " ".join((one.name, one.means, one.cause, one.remedy, *one.components, *one.examples)).lower()


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
