"""`rocwright sbom`: one file a verb, imported when the verb is used."""

from __future__ import annotations

import click

from rocbase.cli.verbs import DefaultVerb

VERBS = {
    "of": "What is in a file or a stack; the verb may be left out.",
    "diff": "What differs between two: components, versions, licences, edits.",
}


@click.group(
    "sbom",
    cls=DefaultVerb,
    verbs=VERBS,
    package="rocwright.cli.sbom",
    default="of",
    context_settings={"help_option_names": ["-h", "--help"]},
)
def command() -> None:
    """What is in an artifact or a stack: sources, edits, packages, libraries, licences.

    `rocwright sbom FILE` or `rocwright sbom STACK --gpu GPU --base BASE`; `rocwright sbom diff A B`.
    """
