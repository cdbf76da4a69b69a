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
        location = place(home)
        if isinstance(location, str):
            raise InputError(
                "records on a database server cannot be repaired here",
                cause="--repair works on an SQLite file only",
                next_step="restore a backup of the server",
            )
        repaired = upkeep.repair(location)
        say(f"saved {sum(repaired.rows.values())} rows; the damaged file is {repaired.aside}")
    with open_records(home) as records:
        checked = upkeep.check(records.database)
    if as_json:
        print_json(checked.model_dump(mode="json"))
    else:
        _show(checked)
    if checked.problems:
        raise InternalError(
            f"the records at {checked.place} are damaged",
            cause=checked.problems[0],
            next_step="rocwright records check --repair recovers what can be read",
        )


def _show(checked: RecordsCheck) -> None:
    from rocbase.cli.tell import print_table
    from rocbase.units import size

    click.echo(f"records  {checked.place}")
    click.echo(f"schema   {checked.version}" + (f"   {size(checked.size)}" if checked.size else ""))
    click.echo()
    rows = [(name, f"{count:,}") for name, count in sorted(checked.rows.items()) if count]
    print_table(("of", "rows"), rows, right=(1,))
    for problem in checked.problems:
        click.echo(problem, err=True)


@command.command("vacuum")
def vacuum() -> None:
    """Compact the database, and make its queries fast."""
    from rocbase.units import size
    from rocwright.home import Home
    from rocwright.records import upkeep
    from rocwright.records.opening import open_records

    with open_records(Home.default()) as records:
        old_size = upkeep.check(records.database).size
        upkeep.vacuum(records.database)
        new_size = upkeep.check(records.database).size
    click.echo(f"{size(old_size)} before, {size(new_size)} now" if old_size else "done")


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
        imported = upkeep.take_in(records, file)
    click.echo(f"{count(imported, 'run')} imported")
