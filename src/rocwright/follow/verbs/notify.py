"""`rocwright notify`: who is told of what changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option, say
from rocwright.cli.common import here

if TYPE_CHECKING:
    from rocwright.config import Config, Destination
    from rocwright.follow.notify.model import DeliveryState


def _names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from rocwright.config import config

    return [
        destination.called for destination in config().notify if destination.called.startswith(incomplete)
    ]


@click.group("notify")
def command() -> None:
    """Tell people when a row breaks, passes again, is promoted, or needs a decision.

    Who is told of what stands in config.toml; builds and cycles tell by themselves.
    """


@command.command("test")
@click.argument("name", required=False, shell_complete=_names)
@json_option
def test(name: str | None, as_json: bool) -> None:
    """Send a test message to every destination, or to NAME alone."""
    import platform

    from rocbase.cli.tell import print_json
    from rocbase.errors import NetworkError
    from rocwright.config import config, config_file
    from rocwright.follow.notify.deliver import message

    settings = config()
    text = f"This is a test from {platform.node()}: messages of rocwright arrive here."
    failures = {
        destination.called: message(destination, destination.called, "rocwright: a test", text)
        for destination in _chosen(settings, name)
    }
    if as_json:
        print_json([{"name": name, "ok": not reason, "why": reason} for name, reason in failures.items()])
    else:
        for name, reason in failures.items():
            click.echo(f"{name}: {f'not delivered: {reason}' if reason else 'delivered'}")
    bad = [name for name, reason in failures.items() if reason]
    if bad:
        raise NetworkError(
            f"the test message did not reach {', '.join(bad)}",
            cause="; ".join(f"{name}: {failures[name]}" for name in bad),
            next_step=f"check its URL in {config_file()}, then: rocwright notify test {bad[0]}",
        )


def _chosen(settings: Config, name: str | None) -> tuple[Destination, ...]:
    """The destinations meant. Raises InputError where there is none, or none of that name."""
    from rocbase.errors import InputError
    from rocwright.config import config_file

    names = [destination.called for destination in settings.notify]
    if not names:
        raise InputError(
            "nobody is to be told of anything",
            cause=f"{config_file()} has no [[notify]] table",
            next_step="add one: docs/notify.md shows how",
        )
    if name is not None and name not in names:
        raise InputError(
            f"there is no destination {name}",
            cause=f"there are {', '.join(names)}",
            next_step=f"rocwright notify test {names[0]}",
        )
    return tuple(destination for destination in settings.notify if name in (None, destination.called))


@command.command("status")
@json_option
def status(as_json: bool) -> None:
    """What each destination was told last, and what waits for it."""
    from rocbase.cli.tell import print_json, print_table
    from rocwright.config import config, config_file
    from rocwright.follow.notify.ledger import read
    from rocwright.follow.notify.model import DeliveryState, Ledger
    from rocwright.home import Home

    settings, ledger = config(), read(Home.default()) or Ledger(since="")
    states = {
        destination.called: ledger.told.get(destination.called, DeliveryState())
        for destination in settings.notify
    }
    if as_json:
        print_json(
            {
                "since": ledger.since,
                "destinations": [
                    {"on": destination.on, "rows": destination.rows, "channels": destination.channels}
                    | {"name": destination.called}
                    | states[destination.called].model_dump(mode="json")
                    for destination in settings.notify
                ],
                "ping": ledger.ping.model_dump(mode="json", include={"last_at", "tries", "error", "again"})
                if settings.cycle.ping
                else None,
                "changes": [change.model_dump(mode="json") for change in ledger.changes],
            }
        )
        return
    if not settings.notify:
        click.echo(f"nobody is told: {config_file()} has no [[notify]] table")
    else:
        rows = [_row(destination, states[destination.called]) for destination in settings.notify]
        print_table(("name", "on", "told last", "waiting"), rows)
    if settings.cycle.ping:
        click.echo(f"\n[cycle.ping]: last at {ledger.ping.last_at or 'never'}{_failure_note(ledger.ping)}")


def _row(destination: Destination, state: DeliveryState) -> tuple[str, ...]:
    from rocwright.config import KINDS

    last = f"{state.last_at}  {state.last.headline}" if state.last else "nothing yet"
    waits = f"{len(state.waiting)}{_failure_note(state)}" if state.waiting else "nothing"
    return (
        destination.called,
        "all" if set(destination.on) == {*KINDS} else ", ".join(destination.on),
        last,
        waits,
    )


def _failure_note(state: DeliveryState) -> str:
    return f": {state.error}; tried again after {state.again}" if state.error else ""


@command.command("now")
def now() -> None:
    """Look for changes and deliver what waits, as every build and cycle does at its end."""
    from rocwright.config import config
    from rocwright.follow.notify.look import LookOrder, look
    from rocwright.follow.notify.tell import untold
    from rocwright.home import Home

    home = Home.default()
    look(home, config(), LookOrder())
    for line in untold(home):
        say(line)


@command.command("failed")
@click.argument("what")
def failed(what: str) -> None:
    """Tell that WHAT failed outside of rocwright: for OnFailure= of a systemd unit.

    It is told once, until a cycle of this folder ends again.
    """
    from rocwright.config import config
    from rocwright.follow.notify.changes import UNIT
    from rocwright.follow.notify.look import add
    from rocwright.follow.notify.model import Fact
    from rocwright.follow.notify.tell import untold
    from rocwright.home import Home
    from rocwright.records.model import now

    home, folder, time = Home.default(), str(here().resolve()), now()
    detail = (f"in {folder}", f"journalctl --user -u {what}")
    fact = Fact(f"{UNIT}{folder}", f"failed {time}", time, what, detail=detail)
    add(home, config(), "needs-person", fact)
    for line in untold(home):
        say(line)
