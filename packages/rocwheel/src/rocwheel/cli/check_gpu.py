"""`rocwheel check-gpu`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocwheel.cli.common import complete_gpu, json_option

if TYPE_CHECKING:
    from rocwheel.wheels.runs_on import RunsOn


@click.command("check-gpu")
@click.argument("gpu", shell_complete=complete_gpu)
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--with-override", is_flag=True, help="Accept what runs only with an override.")
@json_option
@click.pass_context
def command(
    context: click.Context, gpu: str, paths: tuple[Path, ...], with_override: bool, as_json: bool
) -> None:
    """Say whether PATHS (wheels, folders, libraries, environments) run on GPU, and why.

    GPU is a target (gfx1151, gfx90a:xnack-) or a name ("RX 580"). Only the files are read: no GPU is
    needed, and nothing is run. Exit code 0: everything runs as it is; 12: something does not.
    """
    from dataclasses import asdict

    from rocwheel.cli.caller import gpus as known
    from rocwheel.cli.tell import print_json
    from rocwheel.errors import CheckError
    from rocwheel.wheels.choose import targets
    from rocwheel.wheels.devicecode.gpu import machines
    from rocwheel.wheels.runs_on import RunsOn, runs_on, worst

    (target,) = targets([known().code_target(gpu)], machines().values())
    found = {path: runs_on(path, target) for path in paths}
    verdict = worst(one for judged in found.values() for one in judged)
    runs = verdict.runs or (with_override and verdict is RunsOn.OVERRIDE)
    if as_json:
        judged = {str(path): [asdict(one) for one in each] for path, each in found.items()}
        print_json({"gpu": str(target), "runs": runs, "verdict": verdict, "judged": judged})
    else:
        for path, each in found.items():
            if len(paths) > 1:
                click.echo(click.style(str(path), bold=True))
            for one in each:
                colour = (
                    "green" if one.verdict.runs else "yellow" if one.verdict is RunsOn.OVERRIDE else "red"
                )
                click.echo(f"{click.style(f'{one.verdict}', fg=colour, bold=True)}  {one.path}")
                click.echo(f"  {one.reason}")
            if not each:
                click.echo(f"{path.name} holds no GPU code: nothing in it depends on the GPU")
        if sum(map(len, found.values())) > 1:
            click.echo(f"\n{target}: {_summary(verdict)}")
    if not runs:
        context.exit(CheckError.failure.exit_code)


def _summary(verdict: RunsOn) -> str:
    from rocwheel.wheels.runs_on import RunsOn

    match verdict:
        case RunsOn.OVERRIDE:
            return "runs only with an override"
        case RunsOn.NO:
            return "does not run, or not all of it"
        case RunsOn.SLOWER:
            return "runs, in places slower than it could"
        case _:
            return "runs"
