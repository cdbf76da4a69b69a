"""`rocwright verify`."""

from __future__ import annotations

import click

from rocwright.cli.common import json_option, project_options, say, the_project


@click.command("verify")
@project_options
@click.option("--engine", help="The sandbox engine, by name.")
@json_option
def command(
    stack: str | None, gpus: tuple[str, ...], base: str | None, engine: str | None, as_json: bool
) -> None:
    """Run the checks and smoke tests of what is built, and keep the findings as evidence.

    What needs no GPU is checked everywhere; what can run, runs on the GPU where there is one, and says on
    which device it ran.
    """
    from rocwright.build.progress import choose_progress
    from rocwright.cli.tell import print_json, print_table
    from rocwright.flow import current_lock
    from rocwright.verify.run import verify

    project = the_project(stack, gpus, base)
    findings = verify(project, current_lock(project, say), engine, say, choose_progress())
    if as_json:
        print_json([one.model_dump(mode="json") for one in findings])
    else:
        print_table(
            ("component", "check", "outcome", "on", "detail"),
            [
                (one.component, one.name, "ok" if one.ok else "FAILED", one.device or "-", one.detail)
                for one in findings
            ],
        )
        click.echo(f"\nevidence  {project.home.path / 'evidence'}")
    failed = [one for one in findings if not one.ok]
    if failed:
        from rocwright.errors import CheckError

        raise CheckError(
            f"{len(failed)} of {len(findings)} checks failed",
            cause=", ".join(f"{one.component}: {one.name}" for one in failed),
            next_step="rocwright logs verify shows what the checks said",
        )
