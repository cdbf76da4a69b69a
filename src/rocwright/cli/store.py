"""`rocwright store ls|usage|verify|gc|push|pull|sync|policy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option
from rocwright.cli.store_shared import gc_of, policy, pull, push, sync, usage_of, verify_of

if TYPE_CHECKING:
    from rocwright.store.model import Store


_of_option = click.option(
    "--of", "url", default="", metavar="URL", help="A shared store, instead of this machine's."
)


@click.group("store")
def command() -> None:
    """What is kept on this machine and in shared stores: artifacts, sources, root file systems."""


@command.command("ls")
@json_option
def ls(as_json: bool) -> None:
    """Every record: which step, when, which outputs."""
    from rocbase.cli.tell import print_json, print_table
    from rocbase.units import duration, size
    from rocwright.store.model import records

    rows = [record for record in records(_store()) if record.key != record.content_key]
    rows.sort(key=lambda record: record.started, reverse=True)
    if as_json:
        print_json([record.model_dump(mode="json") for record in rows])
        return
    print_table(
        ("when", "step", "key", "time", "outputs", "size"),
        [
            (
                record.started,
                record.step,
                record.key[:12],
                duration(record.seconds),
                record.outputs[0].filename if len(record.outputs) == 1 else f"{len(record.outputs)} files",
                size(sum(output.size for output in record.outputs)),
            )
            for record in rows
        ],
        right=(3, 5),
    )


@command.command("usage")
@_of_option
@json_option
def usage(url: str, as_json: bool) -> None:
    """Bytes by kind of step; of a shared store by step and by signer."""
    if url:
        usage_of(url, as_json=as_json)
        return
    from rocbase.cli.tell import print_json, print_table
    from rocbase.units import size
    from rocwright.home import Home
    from rocwright.store.gc import usage as by_kind

    rows = by_kind(_store())
    if as_json:
        print_json([row.model_dump() for row in rows])
        return
    print_table(
        ("kind of step", "files", "size"),
        [(row.kind, str(row.files), size(row.size)) for row in rows],
        right=(1, 2),
    )
    click.echo(f"\n{size(sum(row.size for row in rows))} in {Home.default().store}")
    click.echo(
        f"unpacked root file systems are in {Home.default().roots}, the compiler caches in "
        f"{Home.default().compiler_caches}"
    )


@command.command("verify")
@_of_option
@click.option("--quick", is_flag=True, help="With --of: only see whether the files are there, not read them.")
@json_option
def verify(url: str, quick: bool, as_json: bool) -> None:
    """Read every file, record and unpacked root, and compare it with its sha256.

    Damaged ones are moved aside, and made again when they are needed. What came from a key that is not
    trusted any more, or was built on that, is named. Of a shared store, signatures are checked too, and
    nothing is changed. Exit code 12: some were damaged, or came so.
    """
    if url:
        verify_of(url, read=not quick, as_json=as_json)
        return
    from rocbase.cli.tell import print_json
    from rocbase.errors import CheckError
    from rocbase.units import size
    from rocwright.home import Home
    from rocwright.sources.bases.roots import changed_roots
    from rocwright.store.gc import check_whole
    from rocwright.store.trust import read_trust, trust_file, untrusted

    store = _store()
    verdict = check_whole(store)
    roots = {path.name: reason for path, reason in changed_roots(store, Home.default().roots).items()}
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
        for name, reason in roots.items():
            click.echo(
                f"  unpacked root {name} is changed ({reason}): moved aside, unpacked again when needed"
            )
        for name in verdict.incomplete:
            click.echo(f"  {name}: will be made again when it is needed")
        for key in verdict.unknown:
            click.echo(f"  record {key} is a newer rocwright's: left alone")
        for key, reason in doubtful.items():
            click.echo(f"  {key[:12]} {reason}")
    if verdict.damaged or verdict.records or roots or doubtful:
        raise SystemExit(CheckError.failure.exit_code)


@command.command("gc")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option(
    "--keep", "days", default=30.0, show_default=True, help="Keep what was made within this number of days."
)
@click.option(
    "--last",
    type=click.IntRange(0),
    metavar="N",
    help="With --of: remove your key's records but the last N of each step for the same GPUs and base.",
)
@_of_option
@json_option
def gc(dry_run: bool, days: float, last: int | None, url: str, as_json: bool) -> None:
    """Remove what the last plans do not need and what is older than --keep days.

    Of a shared store, the files that no record there names and that have lain there for two days. With
    --last, before that the records of your own key but the newest, those of --keep days, and those that a
    plan that was built last here, or a channel, needs; those of other keys stay.
    """
    if url:
        gc_of(url, last, days, dry_run=dry_run, as_json=as_json)
        return
    if last is not None:
        raise click.UsageError("--last is for a shared store: name it with --of")
    from rocbase.cli.tell import print_json
    from rocbase.units import count, size
    from rocwright.execution.cleanup.inside import what_can_go
    from rocwright.home import Home
    from rocwright.project import kept_keys
    from rocwright.sources.bases.roots import remove_tree
    from rocwright.store.gc import remove

    home, store = Home.default(), _store()
    garbage = what_can_go(home, store, kept_keys(home), days)
    if not dry_run:
        remove(store, garbage, remove_tree)
    if as_json:
        print_json(garbage.model_dump() | {"removed": not dry_run})
        return
    verb = "would be freed" if dry_run else "freed"
    click.echo(
        f"{size(garbage.size)} {verb}: {count(len(garbage.records), 'record')}, "
        f"{count(len(garbage.blobs), 'file')}, {count(len(garbage.folders), 'folder')}"
    )


for one in (push, pull, sync, policy):
    command.add_command(one)


def _store() -> Store:
    from rocwright.config import store_of
    from rocwright.home import Home

    return store_of(Home.default())
