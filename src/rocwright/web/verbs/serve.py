"""`rocwright serve`, and its tokens."""

from __future__ import annotations

import shlex

import click

from rocbase.cli.options import json_option, say
from rocbase.errors import InputError
from rocwright.cli.common import complete_engine, here

# Many look on at a log: each costs little.
MOST_CLIENTS = 2048

SCOPES = ("read", "run", "promote")


class Dashboard(click.Group):
    """A group whose other words are models or stacks, which `rocwright run` serves."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in self.commands or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        from rocwright.catalog.load import the_catalog

        model = "" if args[0] in the_catalog().stacks else "--model "
        raise InputError(
            f"the dashboard has no command {args[0]!r}",
            cause="rocwright serve starts the dashboard; rocwright run serves a model",
            next_step=f"rocwright run {model}{shlex.quote(args[0])}",
        )


@click.group("serve", cls=Dashboard, invoke_without_command=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=8642,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port; 0 finds a free one.",
)
@click.option("--open", "open_", is_flag=True, help="Allow reading without a token.")
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="A host name of this server behind a proxy. On the loopback no other name is accepted.",
)
@click.option(
    "--cycle",
    "hours",
    type=click.FloatRange(min=0.1, max=24 * 365),
    metavar="HOURS",
    help="Run `rocwright cycle` here, now and every so many hours.",
)
@click.option(
    "--engine",
    default="",
    shell_complete=complete_engine,
    help="The sandbox engine for builds.",
)
@click.pass_context
def command(
    context: click.Context,
    host: str,
    port: int,
    open_: bool,
    names: tuple[str, ...],
    hours: float | None,
    engine: str,
) -> None:
    """Dashboard in a browser: what works, what runs, what broke, from this machine's records.

    Builds can be started, healed and promoted there; rocwright-out is served as a package
    index under /simple/. Reading needs a token, unless --open is given; the printed link has
    one for you.
    """
    if context.invoked_subcommand is not None:
        return
    from rocwright.config import config
    from rocwright.follow.notify.look import hidden
    from rocwright.home import Home
    from rocwright.records.opening import open_records
    from rocwright.web.access import Access, Tokens
    from rocwright.web.app import app
    from rocwright.web.cycling import Cycling
    from rocwright.web.health import Health
    from rocwright.web.index import Index
    from rocwright.web.limits import LOOPBACK
    from rocwright.web.queue import Queue
    from rocwright.web.server import serve
    from rocwright.web.site import Site
    from rocwright.web.telling import Telling

    home = Home.default()
    with open_records(home) as records:
        access = Access(Tokens(home.tokens), open_)
        queue = Queue(records, here(), say, engine)
        site = Site(
            home=home,
            records=records,
            access=access,
            folder=queue.folder,
            working=queue.working,
            hidden=hidden(config()),
        )

        def tell(address: str) -> None:
            say(f"serving the records of {home.path} at {address}")
            say(f"sign in: {address}/enter?token={access.first}")

        cycling = Cycling(site.folder, hours, queue.turn, say, engine) if hours else None
        index = Index(site.folder / "rocwright-out", home, say)
        hosts = ("localhost", *names) if host in LOOPBACK else names
        health = Health(site, cycling)
        telling = Telling(home, records, health, say)
        works = [worker for worker in (queue, cycling, index, telling) if worker is not None]
        for worker in works:
            worker.start()
        try:
            web_app = app(site, hosts, queue, cycling, index, health)
            serve(web_app, host, port, tell, most_clients=MOST_CLIENTS, names=hosts)
        finally:
            for worker in works:
                worker.stop()


@command.group("token")
def token() -> None:
    """Access tokens for others, with scopes; only their hashes are stored."""


@token.command("add")
@click.argument("name")
@click.option(
    "--scope", "scopes", multiple=True, type=click.Choice(SCOPES), help="May be given more than once."
)
def add(name: str, scopes: tuple[str, ...]) -> None:
    """Make a token for NAME and print it once."""
    from rocwright.home import Home
    from rocwright.records.model import now
    from rocwright.web.access import SCOPES as KNOWN
    from rocwright.web.access import Tokens

    granted = [scope for scope in KNOWN if scope in scopes]
    click.echo(Tokens(Home.default().tokens).add(name, granted, now()))


@token.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the tokens and their scopes."""
    from rocbase.cli.tell import print_json
    from rocwright.home import Home
    from rocwright.web.access import Tokens

    tokens = Tokens(Home.default().tokens).all()
    if as_json:
        print_json([entry.model_dump(mode="json", exclude={"sha256"}) for entry in tokens])
        return
    for entry in tokens:
        click.echo(f"{entry.name}  {', '.join(entry.scopes)}  since {entry.made}")
    if not tokens:
        click.echo("no tokens; a server prints its own token when it starts")


@token.command("remove")
@click.argument("name")
def remove(name: str) -> None:
    """Remove the token of NAME. Its sessions end at once."""
    from rocwright.home import Home
    from rocwright.web.access import Tokens

    Tokens(Home.default().tokens).remove(name)
    click.echo(f"{name} is removed")
