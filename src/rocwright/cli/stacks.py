"""`rocwright stacks`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import complete

if TYPE_CHECKING:
    from rocwright.verify.standing import Standing


@click.command("stacks")
@click.argument("name", required=False, shell_complete=complete("stack"))
@click.option("--verbose", "-v", is_flag=True, help="Providers, versions, locks, plans and rehearsals too.")
@json_option
def command(name: str | None, verbose: bool, as_json: bool) -> None:
    """Every stack with the GPUs and bases that it has a lock for, and how well each is tested.

    With a NAME: its rows, what their locks leave open, and the evidence with its source.
    """
    from rocbase.cli.tell import print_json, print_table
    from rocwright.catalog.load import the_catalog
    from rocwright.home import Home
    from rocwright.verify.standing import standings

    catalog = the_catalog()
    if name is not None:
        catalog.stack(name)
    plans = verbose or as_json or name is not None
    rows = standings(catalog, Home.default(), stack=name, plans=plans)
    if as_json:
        print_json([standing.model_dump(mode="json") for standing in rows])
        return
    if verbose:
        print_table(HEADER, [cells(standing) for standing in rows])
    else:
        print_table(SHORT, brief(rows))
    if name is None:
        click.echo(
            "\nrocwright stacks NAME tells more of one, -v more of all\n"
            "rocwright plan NAME --gpu GPU --base BASE plans it"
        )
        return
    stack = catalog.stack(name)
    click.echo(f"\n{stack.summary}   [{stack.source}]")
    if stack.warning:
        click.echo(f"{click.style('beware', bold=True)}  {stack.warning}")
    if stack.origins:
        choices = "; ".join(f"{origin}: {', '.join(names)}" for origin, names in stack.origins.items())
        click.echo(f"{click.style('from', bold=True)}  {choices}   (the first that serves; --from chooses)")
    if stack.prefer:
        click.echo(f"{click.style('better', bold=True)}  {stack.prefer}, if it is available")
    for standing in rows:
        _tell(standing)


SHORT = ("stack", "gpu", "base", "seen")
NOTHING = "nothing yet"

# `age`: how many newer releases of the first component are known; `locks`: a lock comes with rocwright (and
# leaves so many things to the first lock with a network); `plans`: so many steps; `seen`: the most that
# evidence says; `rehearsed`: how much could be tried on a stand-in.
HEADER = ("stack", "gpu", "base", "ROCm from", "versions", "age", "locks", "plans", "seen", "rehearsed")


def brief(rows: list[Standing]) -> list[tuple[str, ...]]:
    """The rows of the short table: of each stack one for all of which the same was seen, the most first."""
    from rocwright.records.model import SAID

    shared: dict[tuple[str, str], list[Standing]] = {}
    for standing in rows:
        shared.setdefault((standing.stack, _best_claim(standing)), []).append(standing)
    stacks = list(dict.fromkeys(stack for stack, _ in shared))
    ranking = ["", *SAID]
    ordered = sorted(shared, key=lambda key: (stacks.index(key[0]), -ranking.index(key[1])))
    return [
        (
            stack,
            _several([standing.gpu for standing in shared[stack, best]], 1, "GPUs"),
            _several([standing.base for standing in shared[stack, best]], 1, "bases"),
            best or NOTHING,
        )
        for stack, best in ordered
    ]


def _several(names: list[str], limit: int, noun: str) -> str:
    """The names, or how many there are where these are more than `limit`."""
    different = list(dict.fromkeys(names))
    return ", ".join(different) if len(different) <= limit else f"{len(different)} {noun}"


def cells(standing: Standing) -> tuple[str, ...]:
    """A row of the table."""
    from rocbase.units import count

    open_ = f"yes, {len(standing.pending)} open" if standing.pending else "yes"
    versions = " · ".join(f"{name} {version}" for name, version in standing.versions.items())
    return (
        standing.stack,
        standing.gpu,
        standing.base,
        standing.provider,
        versions,
        f"{standing.newer} behind {standing.newest}" if standing.newer else "newest",
        open_ if standing.locks else "no",
        count(standing.steps, "step") if standing.steps else "no",
        _best_claim(standing),
        _rehearsed(standing),
    )


def _best_claim(standing: Standing) -> str:
    from rocwright.records.model import SAID

    claims = {evidence.said for evidence in standing.evidence}
    return next((word for word in reversed(SAID) if word in claims), "")


def _rehearsed(standing: Standing) -> str:
    """How much of it the newest rehearsal could try, "n of m"."""
    rehearsals = [evidence for evidence in standing.evidence if evidence.said == "rehearsed"]
    newest = max(rehearsals, key=lambda evidence: evidence.when, default=None)
    return newest.detail.partition(" tried")[0] if newest is not None else ""


def _tell(standing: Standing) -> None:
    from rocbase.units import count

    click.echo(f"\n{click.style(f'{standing.gpu} on {standing.base}', bold=True)} {standing.provider}")
    click.echo(f"  holds    {standing.holds}")
    click.echo(f"  from     {standing.wish}")
    if standing.newer:
        click.echo(f"  age      {count(standing.newer, 'newer release')} known, the newest {standing.newest}")
    if standing.problem:
        click.echo(f"  problem  {standing.problem}")
    for text in standing.pending:
        click.echo(f"  open     {text}")
    for evidence in standing.evidence:
        device = f" on {evidence.device}" if evidence.device else ""
        click.echo(
            f"  seen     {evidence.when[:10]} {evidence.said}{device}: {evidence.detail}   "
            f"[{evidence.source}]"
        )
