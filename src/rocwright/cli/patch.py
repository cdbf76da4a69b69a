"""`rocwright patch check COMPONENT [PATCH ..]` and `rocwright patch save`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocbase.cli.options import json_option
from rocbase.folders.temporary import temporary_folder
from rocwright.cli.common import Selection, complete, complete_gpu, project_options, the_project
from rocwright.cli.place import say

if TYPE_CHECKING:
    from rocwright.catalog.model import Component
    from rocwright.model.edits import Edit
    from rocwright.sources.patching.check import Column


def _read_versions(_: click.Context, __: click.Parameter, value: str) -> tuple[str, ...]:
    from rocwright.model.versions import check_version

    try:
        return tuple(check_version(version) for version in value.split(",") if version)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.group("patch")
def command() -> None:
    """Edits of source trees: check them against real sources, or make them from your changes."""


@command.command("check")
@click.argument("component", shell_complete=complete("component"))
@click.argument("patches", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--lock",
    "lock_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="For PATCHES: the lock that says which source. [default: the project's lock here]",
)
@click.option("--strip", "-p", type=click.IntRange(0, 9), help="For PATCHES: parts to leave out of paths.")
@click.option(
    "--source",
    type=click.Path(exists=True, path_type=Path),
    help="A source tree or archive to check, instead of the recipe's sources.",
)
@click.option(
    "--versions",
    default="",
    callback=_read_versions,
    help="Such as 2.6.0,2.7.1; with --source, the version of that tree.",
)
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    shell_complete=complete_gpu,
    help="GPUs for edits that name targets. [default: all]",
)
@click.option(
    "--base",
    default="",
    shell_complete=complete("base"),
    help="The base whose source packages are taken, such as debian:sid. [default: all]",
)
@json_option
def check(
    component: str,
    patches: tuple[Path, ...],
    lock_file: Path | None,
    strip: int | None,
    source: Path | None,
    versions: tuple[str, ...],
    gpus: tuple[str, ...],
    base: str,
    as_json: bool,
) -> None:
    """A table of a component's edits against versions, or PATCHES of yours against its locked source.

    An edit applies; is absorbed (the tree already contains it); has drifted (the most similar place is
    shown); or its file is gone. Programs that the tree's CMake files call and that no package of the recipe
    brings are named. Nothing is written to a tree. Exit code 5: an edit or a program would fail a build.

    PATCHES are unified diffs (.gz too), a file named series, or a folder with one (debian/patches): each is
    tried on top of those before it, as patch(1) does. Told are offset, fuzz, hunks that fail and what stands
    there instead, and edits of the recipe in the same files. The source is that of --source, of the lock, or
    of the recipe's newest release. Exit code 0: all apply whole, and no edit is in the way; 5: otherwise.
    """
    from rocbase.cli.tell import print_json
    from rocwright.api.gpus import chosen_targets
    from rocwright.catalog.load import the_catalog

    if base and (source is not None or lock_file is not None):
        raise click.UsageError("--base chooses among the recipe's sources; --source and --lock name one.")
    catalog = the_catalog()
    recipe = catalog.component(component)
    edits = recipe.edit
    targets = chosen_targets(gpus, say) if gpus else tuple(catalog.targets)
    if patches:
        from rocwright.cli.patch_offered import check_patches

        raise SystemExit(
            check_patches(
                component, patches, targets, lock_file, source, ",".join(versions), base, strip, as_json
            )
        )
    if lock_file is not None or strip is not None:
        raise click.UsageError("--lock and --strip are for patches: name a patch or a series.")
    columns = (
        [_given_tree(source, recipe, targets, version) for version in versions or ("",)]
        if source is not None
        else _from_places(component, versions, targets, base)
    )
    if as_json:
        print_json(_as_data(edits, columns))
    else:
        _show(component, edits, columns)
    raise SystemExit(_status(columns))


def _given_tree(source: Path, recipe: Component, targets: tuple[str, ...], version: str) -> Column:

    from rocwright.catalog_lint.trees import lacking_programs
    from rocwright.sources.archive import unpack
    from rocwright.sources.patching.check import check_tree

    with temporary_folder("tree") as folder:
        tree = source if source.is_dir() else Path(folder) / "tree"
        if tree != source:
            unpack(source, tree)
        column = check_tree(tree, recipe.edit, targets, version=version, place=str(source))
        return replace(column, lacking=lacking_programs(recipe, version, tree))


def _from_places(
    component: str, versions: Sequence[str], targets: tuple[str, ...], base: str
) -> list[Column]:

    from rocbase.errors import FetchError, NetworkError, PatchError
    from rocwright.catalog.load import the_catalog
    from rocwright.catalog_lint.trees import lacking_programs, shelf_here, wanted_trees, why_not
    from rocwright.sources.patching.check import Column, check_tree

    recipe = the_catalog().component(component)
    shelf, suites = shelf_here(say, base)
    columns = []
    for origin in wanted_trees(recipe, versions, suites):
        try:
            with shelf.tree(component, origin) as tree:
                say(f"{component} {origin.version}: {origin.text}")
                column = check_tree(
                    tree, recipe.edit, targets, version=origin.version, place=origin.text, kind=origin.kind
                )
                columns.append(replace(column, lacking=lacking_programs(recipe, origin.version, tree)))
        except (FetchError, NetworkError, PatchError) as error:
            columns.append(Column(version=origin.version, place=origin.text, missing=why_not(error)))
    return columns


def _status(columns: list[Column]) -> int:
    from rocbase.errors import FailureClass

    if any(column.drifted or column.lacking for column in columns):
        return FailureClass.PATCH.exit_code
    return FailureClass.FETCH.exit_code if all(column.missing for column in columns) and columns else 0


def _as_data(edits: tuple[Edit, ...], columns: list[Column]) -> dict[str, Any]:
    return {
        "edits": [
            {"subject": edit.subject, "kind": edit.kind.value, "for": edit.versions, "why": edit.why}
            for edit in edits
        ],
        "trees": [
            {
                "version": column.version,
                "place": column.place,
                "missing": column.missing,
                "lacking": dict(column.lacking),
                "verdicts": [
                    verdict
                    and {
                        "state": verdict.state.value,
                        "count": verdict.count,
                        "ends-a-build": verdict in column.drifted,
                        "what": verdict.what,
                        "cause": verdict.cause,
                        "near": verdict.near,
                    }
                    for verdict in column.verdicts
                ],
            }
            for column in columns
        ],
    }


def _show(component: str, edits: tuple[Edit, ...], columns: list[Column]) -> None:
    from rocbase.cli.tell import print_table

    available = [column for column in columns if not column.missing]
    if not edits:
        click.echo(f"{component} has no edits")
    elif available:
        for number, column in enumerate(available, 1):
            click.echo(f"tree {number}   {column.version or 'version not named'}   {column.place}")
        click.echo("")
        rows = [
            (
                str(number),
                edit.kind.value,
                edit.subject,
                *(_word(column, number - 1) for column in available),
            )
            for number, edit in enumerate(edits, 1)
        ]
        print_table(
            ("", "kind", "edits", *(f"tree {number}" for number in range(1, len(available) + 1))),
            rows,
            right=(0,),
        )
    for column in available:
        for verdict in column.drifted:
            number = next(i for i, candidate in enumerate(column.verdicts, 1) if candidate is verdict)
            click.echo(f"\n{number}  {column.version} {column.place}: {verdict.what or 'applied already'}")
            for line in (verdict.cause, *verdict.near.splitlines()):
                click.echo(f"   {line}")
        for program, place in column.lacking.items():
            click.echo(f"\n{program} is called ({place}), and no system package of {component} brings it")
    for column in columns:
        if column.missing:
            click.echo(f"not available: {component} {column.version}, {column.place}: {column.missing}")


def _word(column: Column, index: int) -> str:
    verdict = column.verdicts[index]
    if verdict is None:
        return "-"
    undeclared = verdict.state.value == "absorbed" and verdict in column.drifted
    return f"{verdict.state.value}, undeclared" if undeclared else verdict.state.value


@command.command("save")
@click.argument("step", required=False)
@project_options
@click.option("--message", "-m", help="Also save uncommitted changes, with this message.")
@click.option(
    "--catalog",
    "folder",
    envvar="ROCWRIGHT_CATALOG",
    type=click.Path(file_okay=False, path_type=Path),
    help="Your catalog folder. [default: ROCWRIGHT_CATALOG]",
)
def save(
    step: str | None,
    selection: Selection,
    message: str | None,
    folder: Path | None,
) -> None:
    """Save your changes in a shell's tree as edits of the component.

    Each commit that you made on top of the build's becomes a diff in your catalog folder and an edit for this
    version; the next build applies it. A new file counts once it is added (git add).
    """
    from rocbase.errors import InputError
    from rocbase.folders.listing import shown
    from rocbase.toml.read import holder
    from rocwright.execution.changes import changes, mark_saved
    from rocwright.execution.stages import stages_of
    from rocwright.execution.workspace import Workspace
    from rocwright.flow import current_lock, planned
    from rocwright.project import last_plan
    from rocwright.sources.patching.commits import PREPARED
    from rocwright.sources.patching.save import save_changes

    project = the_project(selection)
    if folder is None:
        raise InputError(
            "there is no catalog folder to save to",
            cause="the catalog that comes with rocwright is never changed",
            next_step=f"rocwright patch save {step or 'STEP'} --catalog FOLDER, "
            "and export ROCWRIGHT_CATALOG=FOLDER for builds",
        )
    locked = current_lock(project, say)
    plan, _ = planned(project, locked)
    # an edit that was saved a moment ago has changed the keys
    previous_plan = last_plan(project)
    opened = {
        candidate.name: candidate
        for candidate in (*(previous_plan.steps if previous_plan else ()), *plan.steps)
        if Workspace.of(project.home, candidate.key).is_open and (step is None or candidate.name == step)
    }
    if len(opened) != 1:
        raise InputError(
            f"which step? {', '.join(opened)}" if opened else f"no tree of {step or 'a step'} is open",
            cause="trees are opened with rocwright shell",
            next_step=f"rocwright patch save {next(iter(opened))}" if opened else "rocwright shell STEP",
        )
    (chosen,) = opened.values()
    tree_changes = changes(chosen, project.store, project.home, message or "", say)
    uncommitted = [shown(name) for name in tree_changes.uncommitted]
    if uncommitted:
        ellipsis = " ..." if len(uncommitted) > 6 else ""
        say(f"not committed, so not saved: {', '.join(uncommitted[:6])}{ellipsis}")
    component = project.catalog.component(chosen.component)
    version = next(entry.version for entry in locked.components if entry.name == component.name)
    stages = [stage.message for stage in stages_of(chosen, project.store)]
    edits = f"edits/{component.name}.toml"
    source_folder = holder(edits, [path for path in project.catalog.folders if path != folder.absolute()])
    written = save_changes(
        tree_changes.commits,
        component.name,
        version,
        "prepared" if PREPARED in stages else "",
        folder.absolute(),
        (source_folder / edits).read_text(encoding="utf-8") if source_folder else "",
    )
    mark_saved(chosen, project.store, project.home, tree_changes, say)
    for path in written:
        click.echo(path)
    say(f"the next build applies them: ROCWRIGHT_CATALOG={folder.absolute()} rocwright build")
