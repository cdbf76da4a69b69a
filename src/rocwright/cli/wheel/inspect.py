"""`rocwright wheel inspect`."""

from __future__ import annotations

from pathlib import Path

import click

from rocwright.cli.common import json_option


@click.command("inspect")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--judge", is_flag=True, help="Judge the rest too: libraries, paths, tags, RECORD, leftovers.")
@json_option
@click.pass_context
def command(context: click.Context, path: Path, judge: bool, as_json: bool) -> None:
    """Every piece of GPU code in PATH (a wheel, an archive, a folder, one file), by target.

    With --judge, an error in what else is there ends with exit code 12.
    """
    from collections import Counter
    from dataclasses import asdict

    from rocwright.cli.tell import print_json, print_table
    from rocwright.cli.wheel.findings import as_data, judged, print_findings
    from rocwright.errors import CheckError
    from rocwright.wheels.codeobjects import code_objects

    found = code_objects(path)
    findings = judged(path) if judge else []
    if as_json:
        told = {"findings": as_data(findings)} if judge else {}
        print_json({"code_objects": [asdict(one) for one in found], **told})
    else:
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
    if judge and not as_json:
        click.echo()
        print_findings(findings)
    if any(one.grade == "error" for one in findings):
        context.exit(CheckError.failure.exit_code)
