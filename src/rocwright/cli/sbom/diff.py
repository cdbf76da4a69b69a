"""`rocwright sbom diff`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option

if TYPE_CHECKING:
    from rocwright.provenance.compare import SbomComparison
    from rocwright.provenance.documents import SbomComponent

_PATH = click.Path(exists=True, dir_okay=False, path_type=Path)
_TOLD = 40


@click.command("diff")
@click.argument("before", type=_PATH)
@click.argument("after", type=_PATH)
@click.option("--all", "every", is_flag=True, help="All components, without a limit.")
@json_option
def command(before: Path, after: Path, every: bool, as_json: bool) -> None:
    """What differs between two SBOMs: components, versions, licences, edits.

    BEFORE and AFTER are wheels, artifacts with an SBOM next to them, or any CycloneDX JSON. Exit code
    0: no difference; 1: they differ; others are errors.
    """
    from dataclasses import asdict

    from rocbase.cli.tell import print_json
    from rocwright.provenance.compare import compare
    from rocwright.provenance.sbom_of import read_document

    found = compare(read_document(before), read_document(after))
    if as_json:
        print_json({"same": found.same, **asdict(found)})
    else:
        _tell(found, every)
    raise SystemExit(0 if found.same else 1)


def _tell(found: SbomComparison, every: bool) -> None:
    if found.same:
        click.echo("the same components, versions and licences")
        return
    counts = f"{len(found.changed):,} changed, {len(found.added):,} added, {len(found.removed):,} removed"
    click.echo(click.style(counts, bold=True))
    for line in lines(found, every):
        click.echo(line)


def lines(found: SbomComparison, every: bool) -> list[str]:
    """What differs, a line each; the first of them, and how many more there are, unless `every` is wanted."""
    from rocwright.cli.sbom.table import plain

    told = [f"{what}: {plain(one) or 'none'} -> {plain(two) or 'none'}" for what, one, two in found.whole]
    for one in found.changed:
        how = ", ".join(f"{what} {plain(a) or 'none'} -> {plain(b) or 'none'}" for what, a, b in one.changes)
        told.append(f"changed  {_named(one.name, one.role)}: {how}")
    told += [f"added    {_part(one)}" for one in found.added]
    told += [f"removed  {_part(one)}" for one in found.removed]
    told += [f"edit added    {plain(what)}: {plain(why)}" for what, why in found.edits_added]
    told += [f"edit removed  {plain(what)}: {plain(why)}" for what, why in found.edits_removed]
    if every or len(told) <= _TOLD:
        return told
    return [*told[:_TOLD], f"and {len(told) - _TOLD:,} more (--all)"]


def _part(one: SbomComponent) -> str:
    from rocwright.cli.sbom.table import plain

    licence = f" ({plain(', '.join(one.licenses))})" if one.licenses else ""
    return f"{_named(one.name, one.role)} {plain(one.version)}{licence}"


def _named(name: str, role: str) -> str:
    from rocwright.cli.sbom.table import plain

    return f"{plain(name)} [{plain(role)}]" if role else plain(name)
