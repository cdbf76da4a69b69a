"""`rocwright records`: check, vacuum, export, import."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

import click

from rocbase.cli.options import json_option, say

if TYPE_CHECKING:
    from rocwright.records.upkeep import RecordsCheck


@click.group("records")
def command() -> None:
    """The database of runs, findings and channels: where it is, and whether it is intact."""


@command.command("check")
@click.option("--repair", is_flag=True, help="Recover what can be read; the damaged file is moved aside.")
@json_option
def check(repair: bool, as_json: bool) -> None:
    """Show where the records are, how large they are, and whether they are intact."""
    from rocbase.cli.tell import print_json
    from rocbase.errors import InputError, InternalError
    from rocwright.home import Home
    from rocwright.records import upkeep
    from rocwright.records.opening import open_records
    from rocwright.records.place import place

    home = Home.default()
    if repair:
        where = place(home)
        if isinstance(where, str):
            raise InputError(
                "records on a database server cannot be repaired here",
                cause="--repair works on an SQLite file only",
                next_step="restore a backup of the server",
            )
        done = upkeep.repair(where)
        say(f"saved {sum(done.rows.values())} rows; the damaged file is {done.aside}")
    with open_records(home) as records:
        found = upkeep.check(records.database)
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        _show(found)
    if found.problems:
        raise InternalError(
            f"the records at {found.place} are damaged",
            cause=found.problems[0],
            next_step="rocwright records check --repair recovers what can be read",
        )


def _show(found: RecordsCheck) -> None:
    from rocbase.cli.tell import print_table
    from rocbase.units import size

    click.echo(f"records  {found.place}")
    click.echo(f"schema   {found.version}" + (f"   {size(found.size)}" if found.size else ""))
    click.echo()
    rows = [(name, f"{count:,}") for name, count in sorted(found.rows.items()) if count]
    print_table(("of", "rows"), rows, right=(1,))
    for problem in found.problems:
        click.echo(problem, err=True)


@command.command("vacuum")
def vacuum() -> None:
    """Compact the database, and make its queries fast."""
    from rocbase.units import size
    from rocwright.home import Home
    from rocwright.records import upkeep
    from rocwright.records.opening import open_records

    with open_records(Home.default()) as records:
        before = upkeep.check(records.database).size
        upkeep.vacuum(records.database)
        after = upkeep.check(records.database).size
    click.echo(f"{size(before)} before, {size(after)} now" if before else "done")


@command.command("export")
def export() -> None:
    """Export everything as lines of JSON: runs with their findings, and promotions."""
    from rocwright.home import Home
    from rocwright.records import upkeep
    from rocwright.records.opening import read_records

    with read_records(Home.default()) as records:
        for line in upkeep.export(records):
            click.echo(line)


@command.command("import")
@click.argument("file", type=click.File("r", encoding="utf-8"), default="-")
def import_(file: TextIO) -> None:
    """Import exported lines from another database; runs that are on record already are skipped."""
    from rocbase.units import count
    from rocwright.home import Home
    from rocwright.records import upkeep
    from rocwright.records.opening import open_records

    with open_records(Home.default()) as records:
        taken = upkeep.take_in(records, file)
    click.echo(f"{count(taken, 'run')} imported")
