"""`rocwright clean [KIND..]`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option, say
from rocwright.cli.common import complete, size_option

if TYPE_CHECKING:
    from rocwright.execution.cleanup.model import DiskSpace, Piece, Reclaimable

# Columns of a terminal below which a part of the table is left out.
NARROW = 140

_DAYS = {"": 1.0, "d": 1.0, "h": 1 / 24, "w": 7.0}


def _age(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
    match = re.fullmatch(r"(\d{1,6}(?:\.\d+)?) ?([dhw]?)", text or "")
    if text is not None and match is None:
        raise click.BadParameter(f"{text!r} is not a time such as 30d, 12h or 2w.")
    return float(match[1]) * _DAYS[match[2]] if match else None


def _names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from rocwright.execution.cleanup.model import the_kinds

    return [name for name in the_kinds().names if name.startswith(incomplete)]


@click.command("clean")
@click.argument("kinds", nargs=-1, metavar="[KIND]..", shell_complete=_names)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option(
    "--keep", metavar="30d", callback=_age, help="Keep what was used within this time. [default: 30d]"
)
@click.option(
    "--max", "at_most", metavar="50GiB", callback=size_option, help="Remove only until this much is left."
)
@click.option(
    "--stack",
    default="",
    help="What rocwright run made of this stack, and what interrupted builds of it left, however new.",
    shell_complete=complete("stack"),
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def command(
    kinds: tuple[str, ...],
    dry_run: bool,
    keep: float | None,
    at_most: int | None,
    stack: str,
    yes: bool,
    as_json: bool,
) -> None:
    """What takes disk space on this machine, by kind; with a KIND or an option, remove what is not needed.

    What the last plan of a stack needs, what is in use, and unsaved changes are kept. Caches and
    images of other programs are only touched if they are named.
    """
    from rocbase.cli.tell import print_json
    from rocbase.errors import InputError
    from rocbase.units import size
    from rocwright.config import store_of
    from rocwright.execution.cleanup.model import chosen, the_kinds
    from rocwright.execution.cleanup.room import OF_STACK, clear, kinds_asked, look
    from rocwright.home import Home
    from rocwright.project import kept_keys

    home = Home.default()
    store = store_of(home)
    only_look = not (kinds or dry_run or yes or stack or keep is not None or at_most is not None)
    selected = the_kinds().names if only_look else kinds_asked(kinds)
    if stack:
        selected = tuple(kind for kind in OF_STACK if not kinds or kind in kinds)
    days = 30.0 if keep is None else keep
    room = look(home, store, kept_keys(home), days, selected, stack)
    if only_look:
        print_json(_as_data(room, ())) if as_json else _show(room, str(home.path))
        return
    going = chosen(room, at_most)
    total = sum(piece.size for piece in going)
    if as_json and not (dry_run or yes):
        raise InputError(
            "nothing was removed",
            cause="--json does not ask for confirmation",
            next_step="add --dry-run to see what would be removed, or --yes to remove it",
        )
    if not as_json:
        _list(going)
        for entry in room.found:
            if entry.why:
                click.echo(f"{entry.kind}: {entry.why}")
    removed = bool(going) and not dry_run
    if removed and not yes:
        click.confirm(f"Remove these, {size(total)}?", abort=True)
    refused = clear(going, room, home, store, say) if removed else ()
    if removed:
        total = room.size - look(home, store, kept_keys(home), room.days, selected, stack).size
    if as_json:
        print_json(_as_data(room, going) | {"removed": removed, "size": total, "refused": refused})
    elif not going:
        click.echo(f"nothing of these kinds can be removed; {size(room.size)} are kept")
    else:
        verb = "freed" if removed else "would be freed"
        click.echo(f"{size(total)} {verb}; {size(room.size - total)} of these kinds are kept")
    if refused:
        raise InputError(
            "not all could be removed",
            cause="; ".join(refused),
            next_step="run the command of that program yourself",
        )


def _show(room: DiskSpace, folder: str) -> None:
    from rocbase.cli.tell import print_table
    from rocbase.terminal import columns
    from rocbase.units import size
    from rocwright.execution.cleanup.model import staying

    # at 80 columns, 8 columns of a table are words cut into pieces
    narrow = 0 < columns() < NARROW
    header = ("kind", "size", "removable", "last use", "what it is", "things", "once removed", "command")
    rows = [
        (
            entry.kind,
            "?" if entry.why and not entry.count else size(entry.size),
            size(sum(piece.size for piece in entry.pieces)),
            _when(entry.used),
            entry.holds,
            str(entry.count),
            _again(entry),
            entry.command,
        )
        for entry in room.found
    ]
    print_table(header[:5] if narrow else header, [row[:5] if narrow else row for row in rows], right=(1, 2))
    if narrow:
        click.echo("\nrocwright clean KIND --dry-run lists what goes; --json prints all columns")
    for entry in room.found:
        if entry.why:
            click.echo(f"{entry.kind}: {entry.why}")
    stays = staying(Path(folder))
    if stays:
        names = ", ".join(place.name for place, _ in stays)
        click.echo(
            f"\n{size(sum(occupied for _, occupied in stays))} more are not caches and are kept: {names}"
        )
    own = [entry for entry in room.found if not entry.outside]
    free = sum(piece.size for entry in own for piece in entry.pieces)
    click.echo(
        f"{size(sum(entry.size for entry in own))} in {folder}; {size(free)} of it was not used for "
        f"{room.days:.0f} days and is not needed: rocwright clean --dry-run lists it"
    )


def _again(entry: Reclaimable) -> str:
    from rocbase.units import duration

    return f"{entry.again}, about {duration(entry.seconds)}" if entry.seconds else entry.again


def _list(going: tuple[Piece, ...]) -> None:
    from rocbase.cli.tell import print_table
    from rocbase.units import size

    if going:
        rows = [(piece.kind, _piece_name(piece), _when(piece.used), size(piece.size)) for piece in going]
        print_table(("kind", "what", "last use", "size"), rows, right=(3,))


def _piece_name(piece: Piece) -> str:
    return f"{piece.name} ({piece.of})" if piece.of else piece.name


def _when(used: float) -> str:
    return datetime.fromtimestamp(used, UTC).strftime("%Y-%m-%d") if used else "-"


def _as_data(room: DiskSpace, going: tuple[Piece, ...]) -> dict[str, object]:
    """What was found by kind, with what of it can go; and what goes."""
    return {
        "days": room.days,
        "kinds": [entry.model_dump() for entry in room.found],
        "going": [piece.model_dump() for piece in going],
        "size": sum(piece.size for piece in going),
    }
