"""`rocwright attest verify`."""

from __future__ import annotations

from pathlib import Path

import click

from rocbase.cli.options import json_option

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("verify")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--key",
    "keys",
    multiple=True,
    type=_FILE,
    help="A public key that you trust; may be given more than once. Default: your own.",
)
@click.option("--statement", type=_FILE, help="The statements. Default: FILE.intoto.jsonl.")
@json_option
def command(file: Path, keys: tuple[Path, ...], statement: Path | None, as_json: bool) -> None:
    """Verify that FILE is the one that was signed, and by which key. Works offline.

    Exit code 0: signature, statement and file match; 12: one of them does not; 2: there is
    nothing to check.
    """
    from dataclasses import asdict

    from rocbase.cli.tell import print_json
    from rocbase.errors import InputError
    from rocwright.cli.attest.show import tell
    from rocwright.provenance.check import SAYS_NOT, statements_of, verify
    from rocwright.store.signing.keys import fingerprint, own_public_key, public_key

    own = own_public_key()
    trusted = keys or ((own,) if own else ())
    if not trusted:
        raise InputError(
            "no key to verify with",
            cause="none was named, and you have no key of your own",
            next_step="name the public key of whoever built the file: --key FILE.pub",
        )
    by_id = {(public := public_key(path)).keyid: (public, path) for path in trusted}
    verified = verify(file, statement or statements_of(file), [public for public, _ in by_id.values()])
    shown = fingerprint(by_id[verified.keyid][1].read_bytes())
    if as_json:
        print_json(
            {
                "file": str(file),
                "sha256": verified.sha256,
                "keyid": verified.keyid,
                "fingerprint": shown,
                "says": asdict(verified.told),
                "says_not": list(SAYS_NOT),
            }
        )
        return
    click.echo(click.style(f"verified: {file.name} is what the key {shown} signed", fg="green"))
    tell(verified.told)
    click.echo("it does not say")
    for text in SAYS_NOT:
        click.echo(f"  {text}")
