"""`rocwright reproduce`."""

from __future__ import annotations

from pathlib import Path

import click

from rocwright.cli.common import Asked, json_option, project_options, say, the_project


@click.command("reproduce")
@project_options
@click.option(
    "--file",
    "artifact",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An artifact that was built here, in place of a project's own.",
)
@click.option(
    "--lock",
    "lock_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A lock whose artifacts were built here, in place of a project's own.",
)
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Most processes at once; one less by default.")
@click.option("--engine", help="Another sandbox engine, by name; the one of before by default.")
@click.option("--roots", is_flag=True, help="Make the root file systems again too.")
@click.option("--keep", is_flag=True, help="Leave the second build's folder in place.")
@json_option
def command(
    asked: Asked,
    artifact: Path | None,
    lock_file: Path | None,
    jobs: int | None,
    engine: str | None,
    roots: bool,
    keep: bool,
    as_json: bool,
) -> None:
    """Build again in another folder, with other jobs and an empty compiler cache: are the bytes the same?

    The sources, and the root file systems unless --roots says otherwise, are those of the first build. Exit
    code 0: bit for bit the same; 12: something differs, and it is told what.
    """
    from rocwright.build.progress import choose_progress
    from rocwright.cli.tell import print_json
    from rocwright.files import sha256_file
    from rocwright.flow import current_lock, project_of
    from rocwright.home import Home
    from rocwright.plan.make import make_plan
    from rocwright.proof.known import as_built
    from rocwright.reproduce.again import How, plan_of, reproduce, request_of
    from rocwright.resolve.files import read_lock
    from rocwright.store.local import LocalStore

    if artifact is not None:
        home = Home.default()
        plan = plan_of(LocalStore(home.store), as_built(home, sha256_file(artifact)))
        project = project_of(request_of(plan), Path.cwd())
    else:
        lock = read_lock(lock_file) if lock_file else None
        project = project_of(lock.request, Path.cwd()) if lock else the_project(asked)
        plan = make_plan(lock or current_lock(project, say), project.catalog)
    with choose_progress() as progress:
        found = reproduce(
            project, plan, How(jobs=jobs, engine=engine, roots=roots, keep=keep), progress, progress.say
        )
    if as_json:
        print_json(found.model_dump(mode="json") | {"same": found.same})
    else:
        for one in found.outputs:
            click.echo(f"{'same' if one.same else 'DIFFERS':<8} {one.step}  {one.filename}  {one.after[:16]}")
            for line in one.says:
                click.echo(f"         {line}")
        many, where = (" then ".join(map(str, pair)) for pair in (found.jobs, found.engines))
        click.echo(f"jobs: {many}; sandbox: {where}; an empty compiler cache, another folder")
    raise SystemExit(0 if found.same else 12)
