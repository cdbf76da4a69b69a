"""`rocwright import`."""

from __future__ import annotations

from pathlib import Path

import click

from rocbase.cli.options import json_option, say
from rocwright.cli.common import here


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@json_option
def command(file: Path, as_json: bool) -> None:
    """Put the versions of a versions.env into rocwright.toml.

    Lines are NAME=VALUE. Nothing in the file is executed; anything but plain values is refused.
    """
    from rocbase.cli.tell import print_json
    from rocwright.catalog.load import the_catalog
    from rocwright.export.read_back import read_versions, with_versions
    from rocwright.plan.resolve.files import change_request, read_request
    from rocwright.plan.resolve.folder import PROJECT
    from rocwright.plan.resolve.validate import check_request

    path = here() / PROJECT
    values = read_versions(file)
    request = with_versions(read_request(path), values, the_catalog())
    check_request(request, the_catalog())
    change_request(path, {"gpu": request.gpu, "versions": request.versions})
    if as_json:
        print_json(request.model_dump(mode="json"))
        return
    for name, version in request.versions.items():
        click.echo(f"{name} {version}")
    say(f"written to {path}; next: rocwright lock")
