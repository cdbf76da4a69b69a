"""`rocwheel inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocbase.cli.options import json_option
from rocbase.units import count

if TYPE_CHECKING:
    from rocwheel.wheels.devicecode.code_objects import Unseen
    from rocwheel.wheels.inspection import Inspection
    from rocwheel.wheels.lint.model import LintFinding

LONGEST_NAME = 72
"""Of a kernel's name, what a table shows: mangled names of templates run to thousands of characters."""

MOST_SHOWN = 10


@click.command("inspect")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--venv", is_flag=True, help="PATH is a Python environment: say which package installed each file."
)
@click.option("--targets", is_flag=True, help="Only the targets: compressed code is not unpacked for them.")
@click.option("--kernels", is_flag=True, help="Every kernel: registers, memory, wave size.")
@click.option(
    "--resources", is_flag=True, help="What the kernels take of each target's registers and memory, in all."
)
@click.option(
    "--judge", is_flag=True, help="Check the rest too: libraries, search paths, tags, RECORD, leftovers."
)
@json_option
@click.pass_context
def command(
    context: click.Context,
    paths: tuple[Path, ...],
    venv: bool,
    targets: bool,
    kernels: bool,
    resources: bool,
    judge: bool,
    as_json: bool,
) -> None:
    """List every piece of GPU code in PATHS, by target.

    A path is a wheel, a .tar.gz (or .xz, .zst), a .deb, an OCI image layout, a folder, a static library, or
    one library, DLL, program, code object or kpack archive. Wheels that are installed together, such as one
    and that with its kpack archives, are given together. Nothing is unpacked to disk. If --judge finds an
    error, the exit code is 12.
    """
    if len(paths) > 1:
        _together(paths, targets, as_json, conflicting=venv or kernels or resources or judge)
        return
    (path,) = paths
    if kernels:
        _kernels(path, as_json)
        return
    if resources:
        _resources(path, as_json)
        return
    from rocwheel.cli.caller import sboms

    inspection = _inspected(path, venv, heads=targets)
    findings = _judged(path) if judge else []
    if as_json:
        _print_json(inspection, findings if judge else None, sboms().sboms(path))
    else:
        _tell(inspection)
        for sbom in sboms().sboms(path):
            click.echo(sboms().line(sbom))
        if judge:
            from rocwheel.cli.findings import print_findings, print_total

            click.echo()
            print_findings(findings)
            print_total(findings)
    if any(finding.grade == "error" for finding in findings):
        from rocbase.errors import CheckError

        context.exit(CheckError.failure.exit_code)


def _inspected(path: Path, venv: bool, *, heads: bool) -> Inspection:
    if venv:
        from rocwheel.wheels.environment import inspect_environment

        return inspect_environment(path, heads=heads)
    from rocwheel.wheels.inspection import inspect

    return inspect(path, heads=heads)


def _together(paths: tuple[Path, ...], heads: bool, as_json: bool, conflicting: object) -> None:
    if conflicting:
        raise click.UsageError("of several PATHS only the code is listed: --targets and --json go with them")
    from rocbase.cli.tell import print_json
    from rocwheel.wheels.inspection import inspect_together

    inspection = inspect_together(paths, heads=heads)
    if as_json:
        print_json(inspection.as_dict())
    else:
        _tell(inspection)


def _print_json(
    inspection: Inspection, findings: list[LintFinding] | None, bills: list[dict[str, Any]]
) -> None:
    from rocbase.cli.tell import print_json
    from rocwheel.cli.findings import as_data

    document = inspection.as_dict() | {"sboms": bills}
    print_json(document | ({} if findings is None else {"findings": as_data(findings)}))


def _judged(path: Path) -> list[LintFinding]:
    from rocwheel.cli.findings import judged

    return judged(path)


def _tell(inspection: Inspection) -> None:
    from rocbase.cli.tell import print_table
    from rocwheel.cli.listing import listing

    for part in listing(inspection):
        if isinstance(part, str):
            click.echo(part)
        else:
            print_table(part.header, part.rows, right=part.right)


def _kernels(path: Path, as_json: bool) -> None:
    from dataclasses import asdict

    from rocbase.cli.tell import print_json, print_table
    from rocwheel.wheels.devicecode.code_objects import Unseen
    from rocwheel.wheels.inspection import kernels_of

    unseen = Unseen()
    rows = [(code, kernel) for code, kernels in kernels_of(path, unseen) for kernel in kernels]
    _tell_unseen(unseen)
    if as_json:
        print_json(
            [
                {
                    "path": code.path,
                    "index": code.index,
                    "target": code.target_id,
                    "abi": code.abi,
                    **asdict(kernel),
                }
                for code, kernel in rows
            ]
        )
        return
    print_table(
        ("file", "target", "version", "VGPR", "AGPR", "SGPR", "LDS", "scratch", "wave", "kernel"),
        [
            (
                code.path,
                code.target_id,
                str(code.abi),
                str(kernel.vgprs),
                str(kernel.agprs),
                str(kernel.sgprs),
                f"{kernel.lds:,}",
                f"{kernel.scratch:,}",
                str(kernel.wave),
                kernel.name,
            )
            for code, kernel in rows
        ],
        right=(2, 3, 4, 5, 6, 7, 8),
    )


def _tell_unseen(unseen: Unseen) -> None:
    """Say of which code no kernels are shown."""
    for reason in unseen.reasons:
        click.echo(f"not shown: {reason}", err=True)


def _resources(path: Path, as_json: bool) -> None:
    from dataclasses import asdict

    from rocbase.cli.tell import print_json, print_table
    from rocwheel.wheels.audit.resources import resources
    from rocwheel.wheels.devicecode.code_objects import Unseen

    unseen = Unseen()
    usages = resources(path, unseen)
    _tell_unseen(unseen)
    if as_json:
        print_json([asdict(usage) for usage in usages])
        return
    if not usages:
        click.echo(f"no kernels {'that can be read ' if unseen.reasons else ''}in {path}")
    for number, usage in enumerate(usages):
        click.echo("" if number else None, nl=bool(number))
        spill = f"{usage.spilling:,} move registers to memory, {usage.scratch:,} use scratch"
        click.echo(f"{usage.target}: {count(usage.kernels, 'kernel')}; {spill}")
        if not usage.known:
            click.echo(f"  nothing is known of the limits of {usage.target}")
            continue
        print_table(
            ("resource", "of", "median", "most", "there is", "kernel with the most"),
            [
                (
                    use.resource if use.resource != "waves" else "waves (fewest)",
                    use.unit,
                    f"{use.median:,}",
                    f"{use.most:,}",
                    f"{use.limit:,}",
                    use.kernel if len(use.kernel) <= LONGEST_NAME else f"{use.kernel[: LONGEST_NAME - 3]}...",
                )
                for use in usage.uses
            ],
            right=(2, 3, 4),
        )
        for text in usage.excesses[:MOST_SHOWN]:
            click.echo(f"  too much: {text}")
        if len(usage.excesses) > MOST_SHOWN:
            click.echo(f"  and {len(usage.excesses) - MOST_SHOWN:,} more; --json shows all")
