"""`rocwright attest FILE`."""

from __future__ import annotations

from pathlib import Path

import click

from rocbase.cli.options import json_option


@click.command("file")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    help="Your private key; otherwise $ROCWRIGHT_ATTEST_KEY, otherwise the one that `attest key` made.",
)
@json_option
def command(file: Path, key: Path | None, as_json: bool) -> None:
    """Sign how FILE was built, into FILE.intoto.jsonl.

    Only for files that this machine built: a statement records what was seen. A passphrase is read from
    $ROCWRIGHT_ATTEST_PASSPHRASE.
    """
    from rocbase.cli.tell import print_json
    from rocwright.home import Home
    from rocwright.provenance.sidecars import attest
    from rocwright.store.signing.keys import chosen

    path, keyid = attest(file, Home.default(), chosen(key))
    if as_json:
        print_json({"statement": str(path), "signed_by": keyid})
        return
    click.echo(f"written  {path}")
    if keyid:
        click.echo(f"signed   with {keyid}")
    else:
        click.echo("signed   no: there is no key (rocwright attest key makes one)")
