"""`rocwright wheel inspect`."""

from __future__ import annotations

from pathlib import Path

import click

from rocwright.cli.common import json_option


@click.command("inspect")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@json_option
def command(path: Path, as_json: bool) -> None:
    """Every piece of GPU code in PATH (a wheel, an archive, a folder, one file), by target."""
    from collections import Counter
    from dataclasses import asdict

    from rocwright.cli.tell import print_json, print_table
    from rocwright.wheels.codeobjects import code_objects

    found = code_objects(path)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    count: Counter[tuple[str, str]] = Counter()
    size: Counter[tuple[str, str]] = Counter()
    for one in found:
        count[one.path, one.target_id] += 1
        size[one.path, one.target_id] += one.size
    print_table(
        ("file", "target", "code objects", "bytes"),
        [(*key, f"{count[key]:,}", f"{size[key]:,}") for key in count],
        right=(2, 3),
    )
