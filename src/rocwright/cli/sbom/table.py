"""An SBOM as a table for people."""

from __future__ import annotations

import click

from rocbase.units import printable
from rocwright.provenance.documents import Document, SbomComponent

EXCLUDED, OPTIONAL = "excluded", "optional"

# Characters of a property's name that are shown.
LABEL = 40


def show(document: Document, *, every: bool) -> None:
    """What it is of, the edits, and the components; those needed to build alone are counted, or told too."""
    from rocbase.cli.tell import print_rows, print_table

    click.echo(click.style(f"{document.subject} {document.version}".strip(), bold=True))
    properties = (
        (name.removeprefix("rocwright:")[:LABEL], value) for name, value in document.properties.items()
    )
    print_rows([(plain(name), plain(value)) for name, value in properties], indent="  ")
    if document.edits:
        click.echo()
        print_table(("edit", "why"), [(plain(subject), plain(reason)) for subject, reason in document.edits])
    shown = [part for part in document.parts if every or part.scope != EXCLUDED or part.role == "toolchain"]
    click.echo()
    print_table(("component", "version", "for", "licence", "package URL"), [_row(part) for part in shown])
    if omitted := len(document.parts) - len(shown):
        click.echo(f"and {omitted:,} that were only needed to build it (--all)")


def plain(text: str) -> str:
    """A stranger's words without what a terminal obeys."""
    return printable(text[:300])


def _row(component: SbomComponent) -> tuple[str, ...]:
    optional = f"{OPTIONAL} " if component.role == "requirement" and component.scope == OPTIONAL else ""
    role = f"{optional}{component.role or component.scope}"
    return (
        plain(component.name),
        plain(component.version),
        plain(role),
        plain(", ".join(component.licenses)),
        plain(component.purl),
    )
