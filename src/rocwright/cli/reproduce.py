"""`rocwright reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import Selection, complete_engine, project_options, the_project
from rocwright.cli.place import say

if TYPE_CHECKING:
    from rocwright.model.steps import Plan
    from rocwright.project import Project


@click.command("reproduce")
@project_options
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(min=1),
    help="Maximum number of parallel processes. [default: one less than the first build]",
)
@click.option(
    "--engine",
    shell_complete=complete_engine,
    help="Another sandbox engine. [default: that of the first build]",
)
@click.option(
    "--lock",
    "lock_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The lock that STACK, a wheel of somebody else, was built from.",
)
@click.option("--roots", is_flag=True, help="Also make the root file systems again.")
@click.option("--keep", is_flag=True, help="Keep the folder of the second build.")
@json_option
def command(
    selection: Selection,
    jobs: int | None,
    engine: str | None,
    lock_file: Path | None,
    roots: bool,
    keep: bool,
    as_json: bool,
) -> None:
    """Build again in another folder, with other jobs and no compiler cache: are the bytes the same?

    STACK may also be a lock, or a file that was built here. The sources, and the root file
    systems unless --roots is given, are those of the first build. Exit code 0: bit for bit the same;
    12: something differs, and the report says what.

    With --lock, STACK is a wheel that somebody else built: its component is built from that lock here, and
    the report says which files differ, and why. Nothing of that wheel is run.
    """
    from rocbase.cli.tell import print_json
    from rocwright.execution.progress import choose_progress
    from rocwright.verify.reproduce.rebuild import How, reproduce
    from rocwright.verify.reproduce.text import lines

    if lock_file is not None:
        if roots or keep:
            raise click.UsageError("--roots and --keep are of a second build here, and go without --lock.")
        _wheel_of_another(selection, lock_file, jobs, engine, as_json)
    project, plan = _project_and_plan(selection)
    with choose_progress() as progress:
        comparison = reproduce(
            project, plan, How(jobs=jobs, engine=engine, roots=roots, keep=keep), progress, progress.say
        )
    if as_json:
        print_json(comparison.model_dump(mode="json") | {"same": comparison.same})
    else:
        for line in lines(comparison, Path(comparison.folders[1]).parent if keep else None):
            click.echo(line)
    raise SystemExit(0 if comparison.same else 12)


def _wheel_of_another(
    selection: Selection, lock_file: Path, jobs: int | None, engine: str | None, as_json: bool
) -> NoReturn:
    """Compare the wheel that is named with what the lock gives here, print that, and exit."""
    from rocbase.cli.tell import print_json
    from rocbase.errors import InputError
    from rocwright import api
    from rocwright.execution.options import BuildOptions
    from rocwright.execution.progress import choose_progress
    from rocwright.verify.reproduce.text import wheel_lines

    path = Path(selection.stack or "")
    if not path.is_file() or path.suffix != ".whl":
        raise InputError(
            f"{selection.stack or 'nothing'} is not the file of a wheel",
            cause="--lock compares a wheel that somebody else built with what the lock gives here",
            next_step=f"rocwright reproduce FILE.whl --lock {lock_file}",
        )
    _alone(selection, path)
    options = BuildOptions.from_values({"jobs": jobs, "engine": engine})
    comparison = api.reproduce_wheel(path, lock_file, options=options, progress=choose_progress())
    if as_json:
        print_json(comparison.model_dump(mode="json") | {"same": comparison.same})
    else:
        for line in wheel_lines(comparison):
            click.echo(line)
    raise SystemExit(0 if comparison.same else 12)


def _alone(selection: Selection, path: Path) -> None:
    if selection.gpus or selection.base or selection.changes:
        raise click.UsageError(
            f"{path} is a file that already says what it is for: leave out --gpu, --base and --set."
        )


def _project_and_plan(selection: Selection) -> tuple[Project, Plan]:
    """The project and the steps that the words name: a stack, a lock, or a file that was built here."""
    from rocbase.errors import InputError
    from rocbase.files.atomic import sha256_file
    from rocwright.catalog.load import the_catalog
    from rocwright.config import store_of
    from rocwright.flow import current_lock
    from rocwright.home import Home
    from rocwright.plan.make import make_plan
    from rocwright.plan.resolve.files import read_lock
    from rocwright.project import project_of
    from rocwright.provenance.layout import as_built
    from rocwright.verify.reproduce.rebuild import plan_of, request_of

    if selection.stack is None or selection.stack.partition(":")[0] in the_catalog().stacks:
        project = the_project(selection)
        return project, make_plan(current_lock(project, say), project.catalog)
    path = Path(selection.stack)
    if not path.is_file():
        raise InputError(
            f"{path} is neither a stack nor a file",
            cause="the catalog has no such stack, and there is no file at that path",
            next_step="name a stack (rocwright stacks lists them), a lock, or a file that was built here",
        )
    _alone(selection, path)
    if ".lock" in path.suffixes:
        lock = read_lock(path)
        project = project_of(lock.request, Path.cwd())
        return project, make_plan(lock, project.catalog)
    home = Home.default()
    plan = plan_of(store_of(home), as_built(home, sha256_file(path)))
    return project_of(request_of(plan), Path.cwd()), plan
