"""`rocwright attest key`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from rocbase.cli.options import json_option


@click.command("key")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option(
    "--passphrase", "ask", is_flag=True, help="Encrypt it: $ROCWRIGHT_ATTEST_PASSPHRASE, or asked for."
)
@json_option
def command(path: Path | None, ask: bool, as_json: bool) -> None:
    """Make an Ed25519 key to sign with, readable by you alone, and its public half next to it (.pub).

    Without PATH it becomes the key that `build` and `attest` use: attest.key in $ROCWRIGHT_HOME where that is
    set, else in ~/.config/rocwright.
    """
    from rocbase.cli.tell import print_json
    from rocwright.store.signing.keys import PASSPHRASE, fingerprint, make_key

    passphrase = ""
    if ask:
        passphrase = os.environ.get(PASSPHRASE) or click.prompt(
            "passphrase", hide_input=True, confirmation_prompt=True, err=True
        )
    key = make_key(path, passphrase)
    shown = fingerprint(key.public.read_bytes())
    if as_json:
        files = {"private": str(key.private), "public": str(key.public)}
        print_json({"keyid": key.keyid, "fingerprint": shown} | files)
        return
    click.echo(f"key          {key.keyid}")
    click.echo(f"fingerprint  {shown}   (tell it to others in another way: trust add asks them to compare)")
    click.echo(f"private      {key.private}   (keep it secret; there is no other copy)")
    click.echo(f"public       {key.public}   (give it to those who verify your builds)")
