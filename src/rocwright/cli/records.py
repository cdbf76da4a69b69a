"""`rocwright records`: check, vacuum, export, import."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

import click

from rocwright.cli.common import json_option, say

if TYPE_CHECKING:
    from rocwright.records.upkeep import RecordsCheck


@click.group("records")
def command() -> None:
    """The database of runs, findings and channels: where it is, whether it is whole."""


@command.command("check")
@click.option("--repair", is_flag=True, help="Save what can be read; the damaged file is moved aside.")
@json_option
def check(repair: bool, as_json: bool) -> None:
    """Where the records are, how much they hold, and whether they are whole."""
    from rocwright.cli.tell import print_json
    from rocwright.errors import InputError, InternalError
    from rocwright.home import Home
    from rocwright.records import upkeep
    from rocwright.records.opening import open_records
    from rocwright.records.place import place

    home = Home.default()
    if repair:
        where = place(home)
        if isinstance(where, str):
            raise InputError(
                "a server's records are repaired by the server",
                cause="--repair is for an SQLite file",
                next_step="restore the server's own backup",
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
            next_step="rocwright records check --repair saves what can be read",
        )


def _show(found: RecordsCheck) -> None:
    from rocwright.cli.tell import print_table
    from rocwright.units import size

    click.echo(f"records  {found.place}")
    click.echo(f"schema   {found.version}" + (f"   {size(found.size)}" if found.size else ""))
    click.echo()
    rows = [(name, f"{count:,}") for name, count in sorted(found.rows.items()) if count]
    print_table(("of", "rows"), rows, right=(1,))
    for problem in found.problems:
        click.echo(problem, err=True)


@command.command("vacuum")
def vacuum() -> None:
    """Make the database as small as what it holds, and its answers quick."""
    from rocwright.home import Home
    from rocwright.records import upkeep
    from rocwright.records.opening import open_records
    from rocwright.units import size

    with open_records(Home.default()) as records:
        before = upkeep.check(records.database).size
        upkeep.vacuum(records.database)
        after = upkeep.check(records.database).size
    click.echo(f"{size(before)} before, {size(after)} now" if before else "done")


@command.command("export")
def export() -> None:
    """Everything as lines of JSON: a run with all that it left, or a promotion."""
    from rocwright.home import Home
    from rocwright.records import upkeep
    from rocwright.records.opening import read_records

    with read_records(Home.default()) as records:
        for line in upkeep.export(records):
            click.echo(line)


@command.command("import")
@click.argument("file", type=click.File("r", encoding="utf-8"), default="-")
def import_(file: TextIO) -> None:
    """Put exported lines on record, but runs that are there: from one database to another."""
    from rocwright.home import Home
    from rocwright.records import upkeep
    from rocwright.records.opening import open_records

    with open_records(Home.default()) as records:
        count = upkeep.take_in(records, file)
    click.echo(f"{count} run{'s' if count != 1 else ''} taken in")
