"""`rocwright sbom FILE|STACK`."""

from __future__ import annotations

from pathlib import Path

import click

from rocwright.cli.common import Selection, project_options, the_project
from rocwright.cli.place import say


@click.command("of")
@project_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "cyclonedx"]),
    default="table",
    help="A table, or the document as CycloneDX JSON.",
)
@click.option("--all", "every", is_flag=True, help="Also list packages that were only needed to build it.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format cyclonedx.")
def command(selection: Selection, form: str, every: bool, as_json: bool) -> None:
    """What is in a file (any wheel, an artifact with its SBOM next to it, any CycloneDX JSON), or in a stack.

    For a stack, built or not, the lock is shown: sources, edits, packages. Without a name, the lock of the
    project in this folder.
    """
    from rocwright.provenance.documents import parse_document
    from rocwright.provenance.sbom_of import read_bytes

    named = Path(selection.stack) if selection.stack else None
    if named is not None and (named.is_file() or named.suffix or "/" in str(named)):
        location, data = read_bytes(named)
    else:
        location, data = _of_stack(selection)
    if as_json or form == "cyclonedx":
        # read first: what is handed on is an SBOM
        parse_document(data, location)
        click.echo(data.decode(), nl=False)
        return
    from rocwright.cli.sbom.table import show

    show(parse_document(data, location), every=every)


def _of_stack(selection: Selection) -> tuple[str, bytes]:
    from rocwright.flow import known_lock
    from rocwright.plan.make import make_plan
    from rocwright.provenance.materials import whole_provenance
    from rocwright.provenance.sbom import SbomSubject, sbom

    project = the_project(selection)
    lock = known_lock(project, say)
    materials = whole_provenance(lock, make_plan(lock, project.catalog))
    if lock.pending:
        say(f"missing, because the lock leaves it open: {'; '.join(lock.pending)}")
    return f"the lock of {lock.request.stack}", sbom(materials, lock, project.catalog, SbomSubject())
