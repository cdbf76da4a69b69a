"""Shared stores on the command line: `rocwright store push|pull|sync|policy`, and `--of` of the others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import Selection, project_options, the_project
from rocwright.cli.place import say

if TYPE_CHECKING:
    from rocwright.store.access import Role


@click.command("push")
@project_options
@click.option(
    "--to", "url", required=True, metavar="URL", help="The shared store: s3://, gs://, az:// or file://."
)
@click.option(
    "--name",
    default="",
    help="What the store calls itself, where it is made now.  [default: its last folder]",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="All that was built here, and not only what the project's lock gives.",
)
@json_option
def push(selection: Selection, url: str, name: str, every: bool, as_json: bool) -> None:
    """Put what was built here into a shared store, signed with your key (rocwright attest key).

    Of a project: what its steps built, the root file system that a server runs on, and its lock, so that who
    trusts you gets the same without a compiler.
    Nothing in the store is written over. Credentials are read from the usual variables of each cloud.
    """
    from rocbase.cli.tell import print_json
    from rocbase.units import count, size
    from rocwright import api
    from rocwright.store.bucket import plain_url

    pushed = api.push(None if every else the_project(selection), url, name=name, say=say)
    if as_json:
        from dataclasses import asdict

        print_json(asdict(pushed) | {"to": plain_url(url)})
        return
    click.echo(
        f"{plain_url(url)}: {count(pushed.records, 'record')} signed, {pushed.there} there already, "
        f"{count(pushed.files, 'file')} sent, {size(pushed.size)}{', and the lock' if pushed.locks else ''}"
    )
    click.echo(f"  signed with  {pushed.fingerprint}")
    for omitted in pushed.left_out:
        click.echo(f"  left out  {omitted}")


@click.command("pull")
@project_options
@json_option
def pull(selection: Selection, as_json: bool) -> None:
    """Fetch what trusted stores have of a project's steps; nothing is built.

    rocwright build does the same for what it needs. Exit code 0 also where nobody has anything.
    """
    from rocbase.cli.tell import print_json
    from rocbase.units import count
    from rocwright import api

    names = api.pull(the_project(selection), say=say)
    if as_json:
        print_json({"steps": names})
        return
    click.echo(
        f"{count(len(names), 'step')} from shared stores" if names else "no trusted store has any of it"
    )


@click.command("sync")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option(
    "--name", default="", help="What the copy calls itself, where it is made now.  [default: as the source]"
)
@json_option
def sync(source: str, target: str, name: str, as_json: bool) -> None:
    """Copy what trusted keys signed in one shared store to another: a mirror, a folder to serve, a disk.

    What is there already is not sent again, and nothing there is removed. Exit code 12: something was left
    out, which is named.
    """
    from dataclasses import asdict

    from rocbase.cli.tell import print_json
    from rocbase.errors import CheckError
    from rocbase.units import count, size
    from rocwright import api
    from rocwright.store.bucket import plain_url

    copied = api.sync(source, target, name=name, say=say)
    if as_json:
        print_json(asdict(copied) | {"from": plain_url(source), "to": plain_url(target)})
    else:
        click.echo(
            f"{plain_url(target)}: {count(copied.records, 'record')} and {count(copied.locks, 'lock')} "
            f"copied, {copied.there} there already, {count(copied.files, 'file')}, {size(copied.size)}"
        )
        for omitted in copied.left_out:
            click.echo(f"  left out  {omitted}")
    if copied.left_out:
        raise SystemExit(CheckError.failure.exit_code)


@click.command("policy")
@click.argument("url")
@click.option(
    "--for",
    "role",
    type=click.Choice(("reader", "builder", "keeper")),
    default="builder",
    show_default=True,
    help="Who only takes, who builds and pushes, or who cleans up too.",
)
@click.option(
    "--key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The public key of who it is for.  [default: any key]",
)
def policy(url: str, role: Role, key: Path | None) -> None:
    """Print the least rights to a store that a role needs, as a policy of S3, Google Cloud or Azure.

    A builder may add files and sign under its own key's id, and remove nothing but its leases. What a policy
    does not say is refused by the cloud; what no trusted key signed is refused by rocwright anyway.
    """
    from rocbase.cli.tell import print_json
    from rocwright.store.access import policy as policy_of
    from rocwright.store.signing.keys import LARGEST_KEY, key_of
    from rocwright.store.signing.safe_json import read_bounded

    keyid = str(key_of(read_bounded(key, LARGEST_KEY, "key"), str(key)).keyid) if key is not None else "*"
    print_json(policy_of(url, role, keyid))


def usage_of(url: str, *, as_json: bool) -> None:
    """Tell what lies in a shared store."""
    from dataclasses import asdict

    from rocbase.cli.tell import print_json, print_table
    from rocbase.units import count, size
    from rocwright import api
    from rocwright.store.bucket import plain_url
    from rocwright.store.contents import by_signer, by_step
    from rocwright.store.trust import read_trust, trust_file

    contents = api.shared_usage(url)
    steps, signers = by_step(contents), by_signer(contents)
    total, nobodys = (sum(blob.size for blob in some) for some in (contents.blobs.values(), contents.nobodys))
    if as_json:
        rows = {"steps": [asdict(share) for share in steps], "signers": [asdict(share) for share in signers]}
        totals = {"files": len(contents.blobs), "size": total, "unnamed": len(contents.nobodys)}
        print_json(rows | totals | {"unnamed_size": nobodys, "unreadable": contents.unreadable})
        return
    names = {key.keyid: key.name for key in read_trust(trust_file()).key}
    for head, shares in (("step", steps), ("signed by", signers)):
        print_table(
            (head, "records", "files", "size"),
            [
                (names.get(share.name, share.name), str(share.records), str(share.files), size(share.size))
                for share in shares
            ],
            right=(1, 2, 3),
        )
        click.echo()
    click.echo(f"{count(len(contents.blobs), 'file')}, {size(total)} in {plain_url(url)}")
    if contents.nobodys:
        click.echo(
            f"no record names {count(len(contents.nobodys), 'file')}, {size(nobodys)}: rocwright store gc "
            f"--of {plain_url(url)} removes them after two days"
        )
    for name in contents.unreadable:
        click.echo(f"  {name} cannot be read")


def verify_of(url: str, *, read: bool, as_json: bool) -> None:
    """Check a shared store, and exit with 12 where something is wrong."""
    from dataclasses import asdict

    from rocbase.cli.tell import print_json
    from rocbase.errors import CheckError
    from rocwright import api
    from rocwright.store.shared_check import check_lines

    checked = api.check_shared(url, read=read, say=say)
    if as_json:
        print_json(asdict(checked))
    else:
        for line in check_lines(checked):
            click.echo(line)
    if checked.wrong:
        raise SystemExit(CheckError.failure.exit_code)


def gc_of(url: str, last: int | None, days: float, *, dry_run: bool, as_json: bool) -> None:
    """Clean up a shared store. Raises CheckError where nothing can be removed."""
    from dataclasses import asdict

    from rocbase.cli.tell import print_json
    from rocbase.errors import CheckError
    from rocbase.units import count, size
    from rocwright import api

    cleaned = api.clean_shared(url, last=last, days=days, dry_run=dry_run)
    if as_json:
        print_json(asdict(cleaned))
    else:
        verb = "would be removed" if dry_run else "removed"
        records = f"{count(cleaned.records, 'record')}, " if last is not None else ""
        click.echo(f"{records}{count(cleaned.files, 'file')}, {size(cleaned.size)} {verb}")
    if cleaned.unreadable:
        raise CheckError(
            f"{count(len(cleaned.unreadable), 'record')} cannot be read, so nothing was removed",
            cause=f"nobody knows which files they need: {', '.join(cleaned.unreadable[:3])}",
            next_step="upgrade rocwright, or remove these records from the store",
        )
