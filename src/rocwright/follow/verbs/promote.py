"""`rocwright promote`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option, say
from rocwright.cli.common import here, tells_changes

if TYPE_CHECKING:
    from rocwright.follow.cycle.stands import ChannelPlace, Stand


def _rows(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from rocwright.follow.cycle.stands import places
    from rocwright.home import Home
    from rocwright.records.opening import read_records

    with read_records(Home.default()) as records:
        rows = places(records, here(quiet=True), all_=True)
    return [name for name in rows if name.startswith(incomplete)]


def _channels(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from rocwright.follow.cycle.channels import channels_in

    return [channel.name for channel in channels_in(here(quiet=True)) if channel.name.startswith(incomplete)]


@click.command("promote")
@click.argument("row", required=False, shell_complete=_rows)
@click.option(
    "--to", "channel", default="", shell_complete=_channels, help="The channel. [default: the next one]"
)
@json_option
@tells_changes
def command(row: str | None, channel: str, as_json: bool) -> None:
    """Promote the newest lock of ROW that has evidence. Without ROW: what each channel holds, and what the
    newest lock of each row lacks for the next.

    ROW is the name of its folder in locks/. Nothing is promoted without the evidence that a channel needs;
    only its waiting time can be skipped.
    """
    from difflib import get_close_matches

    from rocbase.cli.tell import print_json
    from rocbase.errors import InputError
    from rocwright.diagnosis.machine.rights import read_user
    from rocwright.diagnosis.machine.tree import Tree
    from rocwright.follow.cycle.by_hand import promote
    from rocwright.follow.cycle.channels import channels_in
    from rocwright.follow.cycle.stands import places, stands
    from rocwright.home import Home
    from rocwright.records.opening import open_records, read_records

    folder, home = here(), Home.default()
    channels = channels_in(folder)
    if row is None:
        if channel:
            raise click.UsageError("--to needs a ROW.")
        with read_records(home) as records:
            overview = {
                name: (place, stands(records, folder, place, channels))
                for name, place in places(records, folder).items()
            }
        print_json(_data(overview)) if as_json else _show(overview)
        return
    with open_records(home) as records:
        rows = places(records, folder, all_=True)
        if row not in rows:
            near = get_close_matches(row, rows, n=3) or [*rows][:3]
            raise InputError(
                f"there is no row {row}",
                cause=f"there are {', '.join(near)}"
                if near
                else "there are no records, and no project in this folder",
                next_step="rocwright promote lists the rows",
            )
        with Tree() as tree:
            user = read_user(tree).name
        promotion = promote(records, folder, home, rows[row], channel, channels, user)
    if as_json:
        print_json(promotion.model_dump(mode="json"))
    else:
        say(f"{row} is promoted to {promotion.channel}, {promotion.why}")


def _data(overview: dict[str, tuple[ChannelPlace, tuple[Stand, ...]]]) -> list[dict[str, object]]:
    return [
        {"row": name, **place._asdict(), "channels": [stand.model_dump(mode="json") for stand in stands]}
        for name, (place, stands) in overview.items()
    ]


def _show(overview: dict[str, tuple[ChannelPlace, tuple[Stand, ...]]]) -> None:
    from rocbase.cli.tell import print_table

    if not overview:
        click.echo("there are no records, and no rocwright.toml here; start with: rocwright build STACK")
        return
    rows = [
        (
            name if not index else "",
            stand.channel.name,
            stand.holds[:12] or "nothing",
            stand.since,
            stand.why or "can be promoted",
        )
        for name, (_, stands) in overview.items()
        for index, stand in enumerate(stands)
    ]
    print_table(("row", "channel", "holds", "since", "its newest lock"), rows)
