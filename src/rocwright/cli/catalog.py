"""`rocwright catalog check|schema`."""

from __future__ import annotations

from pathlib import Path

import click

from rocbase.cli.options import json_option

KINDS = (
    "base",
    "bench",
    "channel",
    "clean",
    "component",
    "download",
    "edit",
    "elf_machine",
    "emulator",
    "error_line",
    "evidence",
    "for_people",
    "generic_target",
    "gpu_name",
    "host",
    "isa",
    "issue",
    "job_kind",
    "job_tool",
    "leftover",
    "library",
    "lint_rule",
    "loose_kernel",
    "machine_code",
    "model",
    "notebook",
    "launcher",
    "manager",
    "override",
    "package_name",
    "provider",
    "python_package",
    "rehearsal",
    "stack",
    "target",
    "watchlist",
)


@click.group("catalog")
def command() -> None:
    """The catalog of facts: check its files, print JSON schemas for editors."""


@command.command("check")
@click.argument("folder", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False))
@json_option
def check(folder: Path | None, as_json: bool) -> None:
    """List all faults by file and place; FOLDER is laid over the catalog that comes with rocwright."""
    from rocbase.cli.tell import print_json
    from rocbase.errors import InputError
    from rocbase.units import count
    from rocwright.catalog.folders import DATA, catalog_folders
    from rocwright.catalog_lint import tables

    folders = catalog_folders() if folder is None else (folder.absolute(), DATA)
    faults = tables.check(folders)
    if as_json:
        rows = [
            {"file": str(fault.file), "line": fault.line, "place": fault.place, "what": fault.what}
            for fault in faults
        ]
        print_json({"folders": [str(path) for path in folders], "faults": rows})
        click.get_current_context().exit(InputError.failure.exit_code if faults else 0)
    if faults:
        raise InputError(
            f"the catalog has {count(len(faults), 'fault')}",
            cause="; ".join(sorted({fault.file.name for fault in faults})[:8]),
            detail="\n".join(map(str, faults)),
            next_step="correct the entries below, then rocwright catalog check",
        )
    click.echo(f"no fault found in {', '.join(map(str, folders))}")


@command.command("schema")
@click.argument("kind", required=False, type=click.Choice(KINDS))
def schema(kind: str | None) -> None:
    """Print the JSON schema of a KIND of file, for editors; without KIND all of them, with their "
    "file names."""
    from rocbase.cli.tell import print_json
    from rocwright.catalog_lint import tables

    print_json(tables.schemas() if kind is None else tables.schema(kind))
