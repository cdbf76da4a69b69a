"""`rocwright verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from rocbase.cli.options import json_option
from rocwright.cli.common import Selection, engine_option, project_options, tells_changes, the_project
from rocwright.cli.place import say
from rocwright.verify.suites import DRIFT, REPEAT, SIZES, SUITES

if TYPE_CHECKING:
    from rocwright.records.model import Finding

# What run.sh of a pack writes.
RESULT = "result.json"


@click.command("verify")
@project_options
@engine_option
@click.option(
    "--suite",
    "suites",
    multiple=True,
    type=click.Choice(SUITES),
    help="Instead of a stack, run this smoke suite on a Python environment; may be given more than once.",
)
@click.option(
    "--python", default="python3", show_default=True, help="With --suite: that environment's interpreter."
)
@click.option(
    "--device",
    default="auto",
    show_default=True,
    help="emulated: run what can on an emulated GPU. With --suite: auto, cpu, cuda (one of each) or cuda:N.",
)
@click.option("--every", is_flag=True, help="With --suite: each of several equal GPUs.")
@click.option(
    "--size",
    default="normal",
    show_default=True,
    type=click.Choice(SIZES),
    help="With --suite: how much is tested.",
)
@click.option("--only", multiple=True, help="With --suite: only operations whose group/name contains this.")
@click.option(
    "--repeat",
    type=click.IntRange(2, 10_000),
    help="With --suite drift: how often each operation runs.  [default: 50]",
)
@click.option(
    "--carry",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Pack what is built and its checks into FOLDER, to run on a machine with the card.",
)
@click.option(
    "--import",
    "result",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="RESULT",
    help="Take the result.json that run.sh wrote as evidence.",
)
@json_option
@tells_changes
def command(
    selection: Selection,
    engine: str | None,
    suites: tuple[str, ...],
    python: str,
    device: str,
    every: bool,
    size: str,
    only: tuple[str, ...],
    repeat: int | None,
    carry: Path | None,
    result: Path | None,
    as_json: bool,
) -> None:
    """Run the checks and smoke tests of what is built, and keep the findings as evidence.

    Checks without a GPU run everywhere; the others run on the GPU if there is one, and record on which device
    they ran. With --device emulated, what recipes have for it runs on an emulated GPU too, after the
    emulator's self-test; it must be installed. With --suite nothing needs to be built: the environment of
    --python is tested; --gpu then names targets that kernels are compiled for without a GPU, or a target
    whose known gaps are skipped. --suite drift runs the operations of the suite torch again and again, with
    and without launch blocking, and names those whose bits do not stay the same.

    --carry is for a card in a machine without a network or without rocwright, a friend's for instance: FOLDER
    then has one script and one archive of at most 45 MB, and --import takes back what they found.
    """
    from rocwright import api
    from rocwright.execution.progress import choose_progress
    from rocwright.records.model import EMULATED, new_run_id

    run_id = new_run_id()
    if carry is not None or result is not None:
        _carried(selection, engine, carry, result, run_id, as_json)
        return
    if repeat is not None and DRIFT not in suites:
        raise click.UsageError(f"--repeat is for --suite {DRIFT}.")
    if suites:
        _refuse_what_names_a_project()
        if device == EMULATED:
            raise click.UsageError("With --suite, start rocwright itself in the emulator.")
        findings = api.verify_environment(
            suites,
            python,
            gpu=selection.gpus,
            device=device,
            every=every,
            size=size,
            only=only,
            repeat=repeat or REPEAT,
            run_id=run_id,
            say=say,
        )
    else:
        if device not in ("auto", EMULATED):
            raise click.UsageError(f"--device {device} is for --suite; a stack takes --device {EMULATED}.")
        findings = api.verify(
            the_project(selection),
            engine=engine,
            device=device.removeprefix("auto"),
            run_id=run_id,
            progress=choose_progress(),
            say=say,
        )
    _report(findings, run_id, as_json)


def _carried(
    selection: Selection,
    engine: str | None,
    carry: Path | None,
    result: Path | None,
    run_id: str,
    as_json: bool,
) -> None:
    from rocbase.cli.tell import print_json
    from rocwright import api
    from rocwright.execution.progress import choose_progress

    if carry is not None and result is not None:
        raise click.UsageError("--carry packs and --import takes back: name one of them.")
    source = click.get_current_context().get_parameter_source
    for name in ("suites", "python", "device", "every", "size", "only", "repeat"):
        if source(name) is ParameterSource.COMMANDLINE:
            way = "--import" if carry is None else "--carry"
            raise click.UsageError(f"--{name.removesuffix('s')} has no effect on {way}: leave it out.")
    project = the_project(selection)
    if result is not None:
        _report(api.verify_carried(project, result, run_id=run_id, say=say), run_id, as_json)
        return
    assert carry is not None, "one of them is named"
    script = api.carry(project, carry, engine=engine, progress=choose_progress(), say=say)
    size = (carry / "carry.tar.xz").stat().st_size
    if as_json:
        print_json({"script": str(script), "size": size})
        return
    click.echo(f"packed   {carry}: {size / 1e6:.1f} MB")
    click.echo(f"there    sh run.sh, as root or as a user who may make namespaces; it writes {RESULT}")
    click.echo(f"back     rocwright verify {project.request.stack} --import {RESULT}")


def _refuse_what_names_a_project() -> None:
    for name in ("stack", "base", "engine", "provider", "extra", "sets"):
        if click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError("--suite tests an environment: leave out the stack and --engine.")


def _report(findings: list[Finding], run_id: str, as_json: bool) -> None:
    """The findings as a table or JSON. Raises CheckError where one failed."""
    from rocbase.cli.tell import print_json, print_table
    from rocbase.errors import CheckError
    from rocwright.verify.lines import table_rows

    if as_json:
        print_json([finding.model_dump(mode="json") for finding in findings])
    else:
        print_table(("component", "check", "outcome", "on", "detail"), table_rows(findings))
        click.echo(f"\nevidence  rocwright history {run_id}")
    failed = [finding for finding in findings if not finding.ok]
    if failed:
        named = [f"{finding.component}: {finding.name}" for finding in failed[:12]]
        suffix = f" and {len(failed) - len(named)} more" if len(failed) > len(named) else ""
        raise CheckError(
            f"{len(failed)} of {len(findings)} checks failed",
            cause=", ".join(named) + suffix,
            next_step="rocwright logs verify shows what the checks printed",
        )
