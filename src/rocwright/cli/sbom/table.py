"""An SBOM as a table for people."""

from __future__ import annotations

import click

from rocbase.units import printable
from rocwright.provenance.documents import Document, SbomComponent

EXCLUDED, OPTIONAL = "excluded", "optional"

LABEL = 40
"""Characters of a property's name that are shown."""


def show(document: Document, *, every: bool) -> None:
    """What it is of, the edits, and the components; those needed to build alone are counted, or told too."""
    from rocbase.cli.tell import print_rows, print_table

    click.echo(click.style(f"{document.subject} {document.version}".strip(), bold=True))
    told = ((name.removeprefix("rocwright:")[:LABEL], value) for name, value in document.properties.items())
    print_rows([(plain(name), plain(value)) for name, value in told], indent="  ")
    if document.edits:
        click.echo()
        print_table(("edit", "why"), [(plain(what), plain(why)) for what, why in document.edits])
    shown = [one for one in document.parts if every or one.scope != EXCLUDED or one.role == "toolchain"]
    click.echo()
    print_table(("component", "version", "for", "licence", "package URL"), [_row(one) for one in shown])
    if left := len(document.parts) - len(shown):
        click.echo(f"and {left:,} that were only needed to build it (--all)")


def plain(text: str) -> str:
    """A stranger's words without what a terminal obeys."""
    return printable(text[:300])


def _row(one: SbomComponent) -> tuple[str, ...]:
    optional = f"{OPTIONAL} " if one.role == "requirement" and one.scope == OPTIONAL else ""
    role = f"{optional}{one.role or one.scope}"
    return plain(one.name), plain(one.version), plain(role), plain(", ".join(one.licenses)), plain(one.purl)
