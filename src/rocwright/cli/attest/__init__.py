"""`rocwright attest`: one file a verb, imported when the verb is used."""

from __future__ import annotations

import click

from rocbase.cli.verbs import DefaultVerb

VERBS = {
    "file": "Sign how a file was built on this machine (FILE.intoto.jsonl); the verb may be left out.",
    "verify": "Verify that a file is the one that was signed, and by which key; works offline.",
    "show": "Show what a statement says, without verifying it.",
    "key": "Make a key to sign with.",
}


@click.group(
    "attest",
    cls=DefaultVerb,
    verbs=VERBS,
    package="rocwright.cli.attest",
    default="file",
    context_settings={"help_option_names": ["-h", "--help"]},
)
def command() -> None:
    """Sign how a file was built, or verify such a statement.

    `rocwright attest FILE` signs, `rocwright attest verify FILE` checks.
    """
