"""`rocwright attest show`; and how a statement is told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option
from rocbase.units import printable

if TYPE_CHECKING:
    from rocwright.provenance.check import Attestation


@click.command("show")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
def command(file: Path, as_json: bool) -> None:
    """Show what the statements of FILE say. Nothing is verified: anybody can write anything.

    FILE is an artifact with its statement next to it, or the .intoto.jsonl itself. --json prints the
    statements as they are.
    """
    from rocbase.cli.tell import print_json
    from rocwright.provenance.check import read_statement, statements_of, told
    from rocwright.store.signing.envelope import SUFFIX, read_envelopes

    path = file if file.name.endswith((SUFFIX, ".json", ".jsonl")) else statements_of(file)
    envelopes = read_envelopes(path)
    if as_json:
        print_json([read_statement(envelope) for envelope in envelopes])
        return
    for envelope in envelopes:
        tell(told(read_statement(envelope)))
        named = ", ".join(keyid[:16] or "(no id)" for keyid, _ in envelope.signatures)
        click.echo(f"signed    {f'it names {named}; not checked' if named else 'not signed'}")


MOST_OTHERS = 20

_CACHES = {
    "none": "compiled without a compiler cache",
    "empty": "compiled with a compiler cache that was empty before",
    "filled": "compiled with what steps of its trust domain {} left in a compiler cache",
}


def tell(attestation: Attestation) -> None:
    """What a statement says, a line each."""
    for subject in attestation.subjects:
        form = _form(attestation, subject.sha256)
        click.echo(f"file      {_line(subject.name)}  sha256{form} {_line(subject.sha256)}")
    request = ", ".join(f"{name} {_short(value)}" for name, value in attestation.request.items())
    for label, text in (
        ("asked", f"{attestation.component}: {request}" if attestation.component else request),
        (
            "builder",
            f"{attestation.builder}{f', rocwright {attestation.version}' if attestation.version else ''}",
        ),
        ("built", " to ".join(moment for moment in (attestation.started, attestation.finished) if moment)),
        ("run", attestation.invocation),
    ):
        if text:
            click.echo(f"{label:<9} {_line(text)}")
    for uri, sha256 in attestation.sources:
        click.echo(f"source    {_line(uri)}  sha256 {_line(sha256)}")
    click.echo(f"from      {attestation.packages:,} packages and other files, in {attestation.steps:,} steps")
    for step, state, domain, keyids in attestation.caches:
        text = _CACHES.get(state, "no record of whether there was a compiler cache")
        click.echo(f"cache     {_line(step)}: {text.format(_line(domain)[:16])}")
        for keyid in keyids[:MOST_OTHERS]:
            click.echo(f"compiled  {_line(step)}: in part by the owner of the key {_line(keyid)[:16]}")
    for byproduct in attestation.byproducts:
        click.echo(f"left      {_line(byproduct.name)}  sha256 {_line(byproduct.sha256)}")


def _form(attestation: Attestation, sha256: str) -> str:
    """Which form of the file a sha256 is of, where the statement tells."""
    if not attestation.as_built:
        return ""
    return " as built" if attestation.as_built == sha256 else " as laid out"


def _short(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _line(text: str) -> str:
    """A stranger's words on one line of a terminal, without what a terminal obeys."""
    return printable(text[:500])
