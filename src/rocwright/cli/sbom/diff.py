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
_MOST_LINES = 40


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

    comparison = compare(read_document(before), read_document(after))
    if as_json:
        print_json({"same": comparison.same, **asdict(comparison)})
    else:
        _tell(comparison, every)
    raise SystemExit(0 if comparison.same else 1)


def _tell(comparison: SbomComparison, every: bool) -> None:
    if comparison.same:
        click.echo("the same components, versions and licences")
        return
    added, removed = len(comparison.added), len(comparison.removed)
    counts = f"{len(comparison.changed):,} changed, {added:,} added, {removed:,} removed"
    click.echo(click.style(counts, bold=True))
    for line in lines(comparison, every):
        click.echo(line)


def lines(comparison: SbomComparison, every: bool) -> list[str]:
    """What differs, a line each; the first of them, and how many more there are, unless `every` is wanted."""
    from rocwright.cli.sbom.table import plain

    texts = [
        f"{label}: {plain(old) or 'none'} -> {plain(new) or 'none'}" for label, old, new in comparison.whole
    ]
    for component in comparison.changed:
        how = ", ".join(
            f"{label} {plain(a) or 'none'} -> {plain(b) or 'none'}" for label, a, b in component.changes
        )
        texts.append(f"changed  {_named(component.name, component.role)}: {how}")
    texts += [f"added    {_part(component)}" for component in comparison.added]
    texts += [f"removed  {_part(component)}" for component in comparison.removed]
    texts += [
        f"edit added    {plain(subject)}: {plain(reason)}" for subject, reason in comparison.edits_added
    ]
    texts += [
        f"edit removed  {plain(subject)}: {plain(reason)}" for subject, reason in comparison.edits_removed
    ]
    if every or len(texts) <= _MOST_LINES:
        return texts
    return [*texts[:_MOST_LINES], f"and {len(texts) - _MOST_LINES:,} more (--all)"]


def _part(component: SbomComponent) -> str:
    from rocwright.cli.sbom.table import plain

    licence = f" ({plain(', '.join(component.licenses))})" if component.licenses else ""
    return f"{_named(component.name, component.role)} {plain(component.version)}{licence}"


def _named(name: str, role: str) -> str:
    from rocwright.cli.sbom.table import plain

    return f"{plain(name)} [{plain(role)}]" if role else plain(name)
