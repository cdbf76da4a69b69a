"""`rocwright store ls|du|verify|gc|push|pull`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rocwheel.cli.common import json_option, say
from rocwright.cli.common import Asked, project_options, the_project

if TYPE_CHECKING:
    from rocwright.store.model import Store


@click.group("store")
def command() -> None:
    """What is kept on this machine: artifacts, sources, root file systems."""


@command.command("ls")
@json_option
def ls(as_json: bool) -> None:
    """Every record: which step, when, which outputs."""
    from rocwheel.cli.tell import print_json, print_table
    from rocwheel.units import duration, size

    records = sorted(_store().records(), key=lambda one: one.started, reverse=True)
    records = [one for one in records if one.key != one.content_key]
    if as_json:
        print_json([one.model_dump(mode="json") for one in records])
        return
    print_table(
        ("when", "step", "key", "time", "outputs", "size"),
        [
            (
                one.started,
                one.step,
                one.key[:12],
                duration(one.seconds),
                one.outputs[0].filename if len(one.outputs) == 1 else f"{len(one.outputs)} files",
                size(sum(output.size for output in one.outputs)),
            )
            for one in records
        ],
        right=(3, 5),
    )


@command.command("du")
@json_option
def du(as_json: bool) -> None:
    """Bytes by kind."""
    from rocwheel.cli.tell import print_json, print_table
    from rocwheel.units import size
    from rocwright.home import Home
    from rocwright.store.gc import usage

    rows = usage(_store())
    if as_json:
        print_json([one.model_dump() for one in rows])
        return
    print_table(
        ("kind of step", "files", "size"),
        [(one.kind, str(one.files), size(one.size)) for one in rows],
        right=(1, 2),
    )
    click.echo(f"\n{size(sum(one.size for one in rows))} in {Home.default().store}")
    click.echo(
        f"unpacked root file systems are in {Home.default().roots}, the compiler caches in "
        f"{Home.default().compiler_caches}"
    )


@command.command("verify")
@json_option
def verify(as_json: bool) -> None:
    """Read every file, record and unpacked root, and compare it with its sha256.

    Damaged ones are moved aside, and made again when they are needed. What came from a key that is not
    trusted any more, or was built on that, is named. Exit code 12: some were damaged, or came so.
    """
    from rocwheel.cli.tell import print_json
    from rocwheel.errors import CheckError
    from rocwheel.units import size
    from rocwright.bases.roots import changed_roots
    from rocwright.home import Home
    from rocwright.store.gc import check_whole
    from rocwright.store.origins import untrusted
    from rocwright.store.trust import read_trust, trust_file

    store = _store()
    verdict = check_whole(store)
    roots = {path.name: why for path, why in changed_roots(store, Home.default().roots).items()}
    doubtful = untrusted(store, read_trust(trust_file()))
    if as_json:
        print_json(verdict.model_dump() | {"roots": roots, "untrusted": doubtful})
    else:
        bad = len(verdict.damaged) + len(verdict.records) + len(roots)
        click.echo(f"{verdict.files} files, {size(verdict.size)}: {bad} damaged")
        for sha256 in verdict.damaged:
            click.echo(f"  {sha256} moved aside")
        for key in verdict.records:
            click.echo(f"  record {key} is damaged: moved aside, its step runs again when it is needed")
        for name, why in roots.items():
            click.echo(f"  unpacked root {name} is changed ({why}): moved aside, unpacked again when needed")
        for name in verdict.incomplete:
            click.echo(f"  {name}: will be made again when it is needed")
        for key in verdict.unknown:
            click.echo(f"  record {key} is a newer rocwright's: left alone")
        for key, why in doubtful.items():
            click.echo(f"  {key[:12]} {why}")
    if verdict.damaged or verdict.records or roots or doubtful:
        raise SystemExit(CheckError.failure.exit_code)


@command.command("gc")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option(
    "--keep", "days", default=30.0, show_default=True, help="Keep what was made within this number of days."
)
@click.option("--of", "url", default="", metavar="URL", help="A shared store, instead of this machine's.")
@json_option
def gc(dry_run: bool, days: float, url: str, as_json: bool) -> None:
    """Remove what the last plans do not need and what is older than --keep days.

    Of a shared store, the files that no record there names and that have lain there for two days.
    """
    if url:
        _gc_shared(url, dry_run=dry_run, as_json=as_json)
        return
    from rocwheel.cli.tell import print_json
    from rocwheel.units import count, size
    from rocwright.bases.roots import remove_tree
    from rocwright.cleanup.inside import what_can_go
    from rocwright.home import Home
    from rocwright.project import kept_keys
    from rocwright.store.gc import remove

    home, store = Home.default(), _store()
    found = what_can_go(home, store, kept_keys(home), days)
    if not dry_run:
        remove(store, found, remove_tree)
    if as_json:
        print_json(found.model_dump() | {"removed": not dry_run})
        return
    verb = "would be freed" if dry_run else "freed"
    click.echo(
        f"{size(found.size)} {verb}: {count(len(found.records), 'record')}, "
        f"{count(len(found.blobs), 'file')}, {count(len(found.folders), 'folder')}"
    )


@command.command("push")
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
def push(asked: Asked, url: str, name: str, every: bool, as_json: bool) -> None:
    """Put what was built here into a shared store, signed with your key (rocwright attest key).

    Of a project: what its steps built, and its lock, so that who trusts you gets the same without a compiler.
    Nothing in the store is written over. Credentials are read from the usual variables of each cloud.
    """
    from rocwheel.cli.tell import print_json
    from rocwheel.units import count, size
    from rocwright import api
    from rocwright.store.bucket import plain_url

    done = api.push(None if every else the_project(asked), url, name=name, say=say)
    if as_json:
        from dataclasses import asdict

        print_json(asdict(done) | {"to": plain_url(url)})
        return
    click.echo(
        f"{plain_url(url)}: {count(done.records, 'record')} signed, {done.there} there already, "
        f"{count(done.files, 'file')} sent, {size(done.size)}{', and the lock' if done.locks else ''}"
    )
    for left in done.left_out:
        click.echo(f"  left out  {left}")


@command.command("pull")
@project_options
@json_option
def pull(asked: Asked, as_json: bool) -> None:
    """Fetch what trusted stores have of a project's steps; nothing is built.

    rocwright build does the same for what it needs. Exit code 0 also where nobody has anything.
    """
    from rocwheel.cli.tell import print_json
    from rocwheel.units import count
    from rocwright import api

    found = api.pull(the_project(asked), say=say)
    if as_json:
        print_json({"steps": found})
        return
    click.echo(
        f"{count(len(found), 'step')} from shared stores" if found else "no trusted store has any of it"
    )


def _gc_shared(url: str, *, dry_run: bool, as_json: bool) -> None:
    from dataclasses import asdict

    from rocwheel.cli.tell import print_json
    from rocwheel.errors import CheckError
    from rocwheel.units import count, size
    from rocwright import api

    cleaned = api.clean_shared(url, dry_run=dry_run)
    if as_json:
        print_json(asdict(cleaned))
    else:
        verb = "would be removed" if dry_run else "removed"
        click.echo(f"{count(cleaned.files, 'file')}, {size(cleaned.size)} {verb}")
    if cleaned.unreadable:
        raise CheckError(
            f"{count(len(cleaned.unreadable), 'record')} cannot be read, so nothing was removed",
            cause=f"nobody knows which files they need: {', '.join(cleaned.unreadable[:3])}",
            next_step="upgrade rocwright, or remove these records from the store",
        )


def _store() -> Store:
    from rocwright.config import store_of
    from rocwright.home import Home

    return store_of(Home.default())
