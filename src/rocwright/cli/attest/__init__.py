"""`rocwright attest`: one file a verb, imported when the verb is used."""

from __future__ import annotations

import click

from rocwright.cli import DefaultVerb

VERBS = {
    "file": "Sign how a file was built on this machine (FILE.intoto.jsonl); the verb may be left out.",
    "verify": "Whether a file is the one that was signed, and by which key: offline.",
    "show": "What a statement says, unchecked.",
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
    """How a file was built, signed with your key; and whether such a statement is right.

    `rocwright attest FILE` signs, `rocwright attest verify FILE` checks.
    """
