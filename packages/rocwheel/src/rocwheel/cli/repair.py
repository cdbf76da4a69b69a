"""`rocwheel repair`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from rocbase.cli.options import json_option, say
from rocwheel.cli.common import complete_gpu

if TYPE_CHECKING:
    from rocwheel.wheels.repair import Plan

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command("repair")
@click.argument("wheel", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--rocm", "roots", type=_FOLDER, multiple=True, help="A folder with ROCm in it. Repeatable.")
@click.option("--search", type=_FOLDER, multiple=True, help="Another folder with libraries. Repeatable.")
@click.option(
    "--gpu", "gpus", multiple=True, shell_complete=complete_gpu, help="Only the kernels for these GPUs."
)
@click.option(
    "--exclude", multiple=True, metavar="GLOB", help="Leave out a library, or a file that libraries read."
)
@click.option("--include", multiple=True, metavar="GLOB", help="Bundle a library that nothing refers to.")
@click.option("--only", multiple=True, metavar="GLOB", help="Repair only these of the wheel's own libraries.")
@click.option("--system/--no-system", default=True, help="Search this machine's library folders too.")
@click.option(
    "--layout",
    type=click.Choice(["linux", "windows"]),
    default=None,
    help="[default: what the wheel's name says]",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path(),
    help="The folder to write into, or NAME.whl.",
)
@click.option("--trace", "watch", is_flag=True, help="Load the new wheel and check which files it opens.")
@click.option(
    "--run",
    "programs",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE.py",
    help="With --trace: also run this program, which uses the wheel. Repeatable.",
)
@click.option("--plan", "only_plan", is_flag=True, help="Write nothing: show what would be bundled.")
@json_option
def command(
    wheel: Path,
    roots: tuple[Path, ...],
    search: tuple[Path, ...],
    gpus: tuple[str, ...],
    exclude: tuple[str, ...],
    include: tuple[str, ...],
    only: tuple[str, ...],
    system: bool,
    layout: Literal["linux", "windows"] | None,
    out: Path,
    watch: bool,
    programs: tuple[Path, ...],
    only_plan: bool,
    as_json: bool,
) -> None:
    """Bundle into WHEEL what it needs of ROCm, so that it can be installed where there is none.

    Besides the libraries that its own need, it gets those that ROCm opens by name, and the kernels that they
    read. Folders are searched in the order given, the system's last. With --trace the result is loaded in a
    clean process; it is an error if something comes from outside the wheel, or is opened but was not bundled.
    """
    from dataclasses import asdict

    from rocbase.cli.tell import print_json
    from rocwheel.cli.caller import gpus as known
    from rocwheel.wheels.repair import Request, bundle, check_traced, plan_for
    from rocwheel.wheels.write import epoch_from_environment

    request = Request(
        roots=roots,
        search=search,
        targets=known().chosen_targets(gpus, say) if gpus else (),
        exclude=exclude,
        include=include,
        only=only,
        system=system,
        layout=layout or "",
    )
    if only_plan:
        plan = plan_for(wheel, request)
        print_json(_as_data(plan)) if as_json else _tell(plan)
        return
    if programs and not watch:
        raise click.UsageError("--run needs --trace.")
    repaired = bundle(wheel, request, out, epoch=epoch_from_environment())
    traced = check_traced(repaired, request, programs) if watch else None
    if as_json:
        trace = asdict(traced) if traced is not None else None
        print_json(
            {"wheel": repaired.path, "size": repaired.size, "plan": _as_data(repaired.plan), "trace": trace}
        )
        return
    _tell(repaired.plan)
    if traced is not None:
        files = (
            f", {len(traced.read):,} of its files opened"
            if traced.files_seen
            else "; strace is not installed, so opened files were not checked"
        )
        click.echo(f"traced: {len(traced.loaded)} of its libraries loaded{files}; nothing from outside")
        for name, library in traced.absent:
            click.echo(f"{library} looked for {name}, which ROCm does not have")
    click.echo(f"\n{repaired.path}  {repaired.size:,} bytes")


def _as_data(plan: Plan) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(plan) | {"size": plan.size}


def _tell(plan: Plan) -> None:
    from rocbase.cli.tell import print_table

    aliases: dict[str, list[str]] = {}
    for alias in plan.aliases:
        aliases.setdefault(alias.of, []).append(alias.place.rpartition("/")[2])
    print_table(
        ("bundled", "bytes", "from", "for"),
        [
            (
                " = ".join((bundled.name, *aliases.get(bundled.name, ()))),
                f"{bundled.size:,}",
                str(bundled.source),
                ", ".join(bundled.wanted_by[:3]) + (" ..." if len(bundled.wanted_by) > 3 else ""),
            )
            for bundled in plan.libraries
        ],
        right=(1,),
    )
    by_library: dict[str, list[int]] = {}
    for file in plan.data:
        by_library.setdefault(file.of, []).append(file.size)
    for library, sizes in by_library.items():
        click.echo(f"{library} reads {len(sizes):,} files, {sum(sizes):,} bytes")
    if plan.dropped:
        omitted = ", ".join(f"{target} {size:,}" for target, size in plan.dropped.items())
        click.echo(f"left out, bytes of other targets: {omitted}")
    for name, reason in plan.kept_out.items():
        click.echo(f"not bundled: {name}: {reason}")
    for need in plan.without:
        click.echo(f"goes without {need.name} (for {', '.join(need.wanted_by)}): {need.why}")
    for need in plan.named:
        click.echo(f"perhaps opened by {', '.join(need.wanted_by)}: {need.name} (--include bundles it)")
    for need in plan.missing:
        reason = f": {need.why}" if need.why else ""
        click.echo(
            click.style("MISSING", fg="red", bold=True)
            + f" {need.name}, for {', '.join(need.wanted_by)}{reason}"
        )
    without = [
        bundled.name
        for bundled in plan.libraries
        if not any(f"/{bundled.soname}/" in path for path in plan.licences)
    ]
    if without:
        click.echo(f"no licence found for: {', '.join(without)}")
    click.echo(f"into {plan.home}: {plan.size:,} bytes{f'; {plan.platform}' if plan.platform else ''}")
