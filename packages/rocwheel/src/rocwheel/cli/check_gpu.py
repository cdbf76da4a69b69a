"""`rocwheel check-gpu`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option
from rocwheel.cli.common import complete_gpu

if TYPE_CHECKING:
    from rocwheel.wheels.runs_on import RunsOn

CANNOT_TELL = 13
"""The exit code if code is not here, cannot be read or is compiled later; no class of failure has it."""

RUNTIME_ONLY = 15
"""The exit code if nothing holds device code, and ROCm's runtime is needed; no class of failure has it."""


def _no_file(context: click.Context, _: click.Parameter, value: str) -> str:
    """The GPU; a file in its place is told with the order of the arguments."""
    from rocbase.errors import InputError

    if Path(value).suffix and Path(value).exists():
        raise InputError(
            f"{value} is a file, not a GPU",
            cause="the GPU comes first",
            next_step=f"{context.command_path} GPU {shlex.quote(value)}",
        )
    return value


@click.command("check-gpu")
@click.argument("gpu", shell_complete=complete_gpu, callback=_no_file)
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--with-override", is_flag=True, help="Accept what runs only with an override.")
@json_option
@click.pass_context
def command(
    context: click.Context, gpu: str, paths: tuple[Path, ...], with_override: bool, as_json: bool
) -> None:
    """Say whether PATHS (wheels, folders, libraries, environments) run on GPU, and why.

    GPU is a target (gfx1151, gfx90a:xnack-) or a name ("RX 580"). Only the files are read: no GPU is
    needed, and nothing is run. Paths are seen together: a wheel and that with its kpack archives are given
    both. Exit code 0: everything runs as it is; 12: something does not; 13: it cannot be told of something,
    since its code is not here, cannot be read, or is compiled when it runs, and all the rest runs; 15: no
    device code is here, and ROCm's runtime is needed.
    """
    from dataclasses import asdict

    from rocbase.cli.tell import print_json
    from rocbase.errors import CheckError
    from rocwheel.cli.caller import gpus as known
    from rocwheel.wheels.choose import targets
    from rocwheel.wheels.devicecode.gpu import machines
    from rocwheel.wheels.runs_on import RunsOn, runs_together, worst

    (target,) = targets([known().code_target(gpu)], machines().values())
    by_path = dict(zip(paths, runs_together(paths, target), strict=True))
    every = [judgement for verdicts in by_path.values() for judgement in verdicts.judged]
    verdict = worst(every)
    runs = verdict.runs or (with_override and verdict is RunsOn.OVERRIDE)
    if as_json:
        judged = {
            str(path): [asdict(judgement) for judgement in verdicts.judged]
            for path, verdicts in by_path.items()
        }
        print_json({"gpu": str(target), "runs": runs, "verdict": verdict, "judged": judged})
    else:
        for path, verdicts in by_path.items():
            if len(paths) > 1:
                click.echo(click.style(str(path), bold=True))
            for judgement in verdicts.judged:
                unsure = judgement.verdict in (RunsOn.OVERRIDE, RunsOn.RUNTIME, RunsOn.UNKNOWN)
                colour = "green" if judgement.verdict.runs else "yellow" if unsure else "red"
                click.echo(f"{click.style(f'{judgement.verdict}', fg=colour, bold=True)}  {judgement.path}")
                click.echo(f"  {judgement.reason}")
            if verdicts.archives and not verdicts.judged:
                lent = "a kpack archive, whose library was judged with it"
                several = f"{verdicts.archives:,} kpack archives, whose libraries were judged with them"
                click.echo(f"{path.name} holds {lent if verdicts.archives == 1 else several}")
            elif not verdicts.judged:
                click.echo(f"{path.name} holds no GPU code, and nothing in it needs ROCm's runtime")
        if len(every) > 1:
            click.echo(f"\n{target}: {_summary(verdict)}")
    fails = {RunsOn.NO} if with_override else {RunsOn.NO, RunsOn.OVERRIDE}
    if fails & {judgement.verdict for judgement in every}:
        context.exit(CheckError.failure.exit_code)
    if verdict is RunsOn.UNKNOWN:
        context.exit(CANNOT_TELL)
    if RunsOn.RUNTIME in {judgement.verdict for judgement in every}:
        context.exit(RUNTIME_ONLY)


def _summary(verdict: RunsOn) -> str:
    from rocwheel.wheels.runs_on import RunsOn

    match verdict:
        case RunsOn.OVERRIDE:
            return "runs only with an override"
        case RunsOn.NO:
            return "does not run, or not all of it"
        case RunsOn.RUNTIME:
            return "needs ROCm's runtime, and holds no device code"
        case RunsOn.UNKNOWN:
            return "cannot be told of all of it"
        case RunsOn.SLOWER:
            return "runs, in places slower than it could"
        case _:
            return "runs"
