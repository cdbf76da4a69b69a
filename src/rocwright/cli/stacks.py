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
    found = standings(catalog, Home.default(), stack=name, plans=plans)
    if as_json:
        print_json([one.model_dump(mode="json") for one in found])
        return
    if verbose:
        print_table(HEADER, [cells(one) for one in found])
    else:
        print_table(SHORT, brief(found))
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
    if stack.prefer:
        click.echo(f"{click.style('better', bold=True)}  {stack.prefer}, if it is available")
    for one in found:
        _tell(one)


SHORT = ("stack", "gpu", "base", "seen")
NOTHING = "nothing yet"

HEADER = ("stack", "gpu", "base", "ROCm from", "versions", "locks", "plans", "seen", "rehearsed")
"""`locks`: a lock comes with rocwright (and leaves so many things to the first lock with a network); `plans`:
so many steps; `seen`: the most that evidence says; `rehearsed`: how much could be tried on a stand-in."""


def brief(found: list[Standing]) -> list[tuple[str, ...]]:
    """The rows of the short table: of each stack one for all of which the same was seen, the most first."""
    from rocwright.records.model import SAID

    shared: dict[tuple[str, str], list[Standing]] = {}
    for one in found:
        shared.setdefault((one.stack, _most(one)), []).append(one)
    stacks = list(dict.fromkeys(stack for stack, _ in shared))
    said = ["", *SAID]
    ordered = sorted(shared, key=lambda key: (stacks.index(key[0]), -said.index(key[1])))
    return [
        (
            stack,
            _several([one.gpu for one in shared[stack, most]], 2, "GPUs"),
            _several([one.base for one in shared[stack, most]], 1, "bases"),
            most or NOTHING,
        )
        for stack, most in ordered
    ]


def _several(names: list[str], most: int, what: str) -> str:
    """The names, or how many there are where these are more than `most`."""
    different = list(dict.fromkeys(names))
    return ", ".join(different) if len(different) <= most else f"{len(different)} {what}"


def cells(one: Standing) -> tuple[str, ...]:
    """A row of the table."""
    from rocbase.units import count

    open_ = f"yes, {len(one.pending)} open" if one.pending else "yes"
    versions = " · ".join(f"{name} {version}" for name, version in one.versions.items())
    return (
        one.stack,
        one.gpu,
        one.base,
        one.provider,
        versions,
        open_ if one.locks else "no",
        count(one.steps, "step") if one.steps else "no",
        _most(one),
        _rehearsed(one),
    )


def _most(one: Standing) -> str:
    from rocwright.records.model import SAID

    seen = {evidence.said for evidence in one.evidence}
    return next((word for word in reversed(SAID) if word in seen), "")


def _rehearsed(one: Standing) -> str:
    """How much of it the newest rehearsal could try, "n of m"."""
    found = [evidence for evidence in one.evidence if evidence.said == "rehearsed"]
    newest = max(found, key=lambda evidence: evidence.when, default=None)
    return newest.detail.partition(" tried")[0] if newest is not None else ""


def _tell(one: Standing) -> None:
    click.echo(f"\n{click.style(f'{one.gpu} on {one.base}', bold=True)} {one.provider}")
    click.echo(f"  holds    {one.holds}")
    click.echo(f"  from     {one.wish}")
    if one.problem:
        click.echo(f"  problem  {one.problem}")
    for text in one.pending:
        click.echo(f"  open     {text}")
    for seen in one.evidence:
        on = f" on {seen.device}" if seen.device else ""
        click.echo(f"  seen     {seen.when[:10]} {seen.said}{on}: {seen.detail}   [{seen.source}]")
