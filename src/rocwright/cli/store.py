"""`rocwright store ls|du|verify|gc`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rocwheel.cli.common import json_option

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

    Damaged ones are moved aside, and made again when they are needed. Exit code 12: some were damaged.
    """
    from rocwheel.cli.tell import print_json
    from rocwheel.errors import CheckError
    from rocwheel.units import size
    from rocwright.bases.roots import changed_roots
    from rocwright.home import Home
    from rocwright.store.gc import check_whole

    store = _store()
    verdict = check_whole(store)
    roots = {path.name: why for path, why in changed_roots(store, Home.default().roots).items()}
    if as_json:
        print_json(verdict.model_dump() | {"roots": roots})
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
    if verdict.damaged or verdict.records or roots:
        raise SystemExit(CheckError.failure.exit_code)


@command.command("gc")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option(
    "--keep", "days", default=30.0, show_default=True, help="Keep what was made within this number of days."
)
@json_option
def gc(dry_run: bool, days: float, as_json: bool) -> None:
    """Remove what the last plans do not need and what is older than --keep days."""
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


def _store() -> Store:
    from rocwright.config import store_of
    from rocwright.home import Home

    return store_of(Home.default())
