"""`rocwright trust list|add|remove|revoke`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option, say

if TYPE_CHECKING:
    from rocwright.store.trust import Trust, TrustedKey


def _names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    trust = _trust()
    names = [*(key.name for key in trust.key), *(store.name for store in trust.store)]
    return [name for name in names if name.startswith(incomplete)]


@click.group("trust")
def command() -> None:
    """Whose builds are taken instead of building: trusted keys, and the stores to look in."""


@command.command("list")
@json_option
def list_(as_json: bool) -> None:
    """Every key and store that is trusted."""
    from rocbase.cli.tell import print_json, print_table
    from rocwright.store.signing.keys import fingerprint

    trust = _trust()
    if as_json:
        keys = [key.model_dump() | {"keyid": key.keyid} for key in trust.key]
        print_json({"keys": keys, "stores": [store.model_dump() for store in trust.store]})
        return
    if not trust.key and not trust.store:
        click.echo("nothing is trusted: everything is built here. rocwright trust add URL changes that")
        return
    print_table(
        ("key", "since", "revoked", "fingerprint"),
        [(key.name, key.added[:10], key.revoked[:10], fingerprint(key.pem.encode())) for key in trust.key],
    )
    if trust.store:
        click.echo()
        print_table(
            ("store", "signers that must agree", "URL"),
            [(store.name, str(store.agree), store.url) for store in trust.store],
            right=(1,),
        )


@command.command("add")
@click.argument("what", metavar="URL|FILE")
@click.option(
    "--name", default="", help="What it is called here.  [default: what the store calls itself, or the file]"
)
@click.option(
    "--agree",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many trusted keys must have signed the same bytes of a build.",
)
@click.option("--yes", is_flag=True, help="Do not ask: you have compared the fingerprints.")
def add(what: str, name: str, agree: int, yes: bool) -> None:
    """Trust the keys of the store at URL and look in it; or trust the public key in FILE.

    Shows the fingerprints and asks. Compare them with what the store's owner told you in another way: whoever
    can sign with such a key decides what runs on your machine.
    """
    from rocwright.store.bucket import Bucket, is_bucket
    from rocwright.store.push import listed_keys, plain_name, read_mark
    from rocwright.store.trust import TrustedStore

    trust = _trust()
    if is_bucket(what):
        bucket = Bucket(what)
        called = plain_name(name) if name else read_mark(bucket)
        keys = _named(called, [pem for pem, _ in listed_keys(bucket)], trust)
        _confirm(f"{called} at {bucket}", keys, yes=yes)
        trust = trust.with_store(TrustedStore(name=called, url=bucket.url, agree=agree))
    else:
        from rocwright.store.signing.keys import LARGEST_KEY
        from rocwright.store.signing.safe_json import read_bounded

        pem = read_bounded(Path(what), LARGEST_KEY, "key").decode(errors="replace")
        keys = _named(name or Path(what).stem, [pem], trust)
        _confirm(what, keys, yes=yes)
    for key in keys:
        trust = trust.with_key(key)
    _write(trust)
    say(f"trusted: {', '.join(key.name for key in keys) or 'its keys were trusted already'}")


@command.command("remove")
@click.argument("name", shell_complete=_names)
def remove(name: str) -> None:
    """Trust a key, or look in a store, no more. What came from it stays: rocwright store verify names it."""
    _write(_trust().without(name))
    say(f"{name} is not trusted any more")


@command.command("revoke")
@click.argument("name", shell_complete=_names)
@click.option(
    "--since",
    required=True,
    metavar="DATE",
    help="The first day, UTC, whose signatures are refused: 2026-11-24, or a time 2026-11-24T08:00:00Z.",
)
def revoke(name: str, since: str) -> None:
    """Refuse what a key signed from a day on: it was lost, or stolen.

    Whoever has the key can write an earlier time: where it was stolen, revoke it from a day before that.
    """
    from datetime import datetime

    from rocbase.errors import InputError

    try:
        time = datetime.fromisoformat(since.removesuffix("Z"))
    except ValueError as error:
        raise InputError(
            f"{since} is not a day",
            cause=str(error),
            next_step="write it as 2026-11-24, or 2026-11-24T08:00:00Z",
        ) from error
    _write(_trust().revoked(name, time.strftime("%Y-%m-%dT%H:%M:%SZ")))
    say(f"what {name} signed since {since} is refused; rocwright store verify names what came from it")


def _trust() -> Trust:
    from rocwright.store.trust import read_trust, trust_file

    return read_trust(trust_file())


def _write(trust: Trust) -> None:
    from rocwright.store.trust import trust_file, write_trust

    write_trust(trust_file(), trust)


def _named(called: str, pems: list[str], trust: Trust) -> list[TrustedKey]:
    """The keys, each with a name of its own."""
    from rocwright.store.push import plain_name
    from rocwright.store.signed import now
    from rocwright.store.trust import TrustedKey

    existing = {key.keyid: key for key in trust.key}
    names = {key.name for key in trust.key}
    keys: list[TrustedKey] = []
    for pem in pems:
        number, name = 1, plain_name(called)
        while name in names:
            number += 1
            name = f"{plain_name(called)[:50]}-{number}"
        key = TrustedKey(name=name, pem=pem, added=now())
        keys.append(existing.get(key.keyid, key))
        names.add(name)
    return keys


def _confirm(subject: str, keys: list[TrustedKey], *, yes: bool) -> None:
    import sys

    from rocbase.errors import InputError
    from rocwright.store.signing.keys import fingerprint

    say(f"{subject} has {'1 key' if len(keys) == 1 else f'{len(keys)} keys'}:")
    for key in keys:
        say(f"  {key.name}: {fingerprint(key.pem.encode())}")
    if yes:
        return
    try:
        agreed = click.confirm("Take builds that these signed?", err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise InputError(
            "there is nobody to ask whether these keys are trusted",
            cause="standard input has no answer",
            next_step="compare the fingerprints, then run it with --yes",
        ) from None
    if not agreed:
        say("nothing was changed")
        raise SystemExit(1)
