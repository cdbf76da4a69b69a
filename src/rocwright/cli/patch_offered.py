"""`rocwright patch check COMPONENT PATCH ..`: patches of yours against a source tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocbase.cli.options import say
from rocbase.units import count, printable

if TYPE_CHECKING:
    from rocwright.plan.resolve.model import LockedComponent
    from rocwright.sources.patching.fuzzy import HunkOutcome
    from rocwright.sources.patching.offered import FileResult, Offered, PatchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tree:
    """A source tree, where it is from, and what is known of it; "" where it is not."""

    path: Path
    place: str
    version: str = ""
    kind: str = ""


def check_patches(
    component: str,
    paths: Sequence[Path],
    targets: Sequence[str],
    lock_file: Path | None,
    source: Path | None,
    version: str,
    base: str,
    strip: int | None,
    as_json: bool,
) -> int:
    """Print what the patches meet; gives the exit code."""
    from rocbase.cli.tell import print_json
    from rocbase.errors import FailureClass
    from rocwright.catalog.load import the_catalog
    from rocwright.sources.patching.foreign import read_patches
    from rocwright.sources.patching.offered import check_offered

    edits = the_catalog().component(component).edit
    patches = read_patches(paths, strip)
    with _tree(component, lock_file, source, version, base) as tree:
        offered = check_offered(tree.path, patches, edits, targets, version=tree.version, kind=tree.kind)
    if as_json:
        print_json(_as_data(component, tree, offered))
    else:
        _show(component, tree, offered)
    return 0 if offered.good else FailureClass.PATCH.exit_code


@contextmanager
def _tree(
    component: str, lock_file: Path | None, source: Path | None, version: str, base: str
) -> Iterator[_Tree]:
    """The source that is meant: the one given, the locked one, or the recipe's (for a base)."""
    from rocbase.folders.temporary import temporary_folder
    from rocwright.catalog.load import the_catalog
    from rocwright.catalog_lint.trees import shelf_here, wanted_trees
    from rocwright.sources.archive import unpack

    if source is not None and source.is_dir():
        yield _Tree(path=source, place=str(source), version=version)
        return
    if source is not None:
        with temporary_folder("tree") as folder:
            unpack(source, Path(folder) / "tree")
            yield _Tree(path=Path(folder) / "tree", place=str(source), version=version)
        return
    shelf, suites = shelf_here(say, base)
    locked = None if version or base else _locked(component, lock_file)
    if locked is not None:
        with shelf.locked(locked) as path:
            yield _Tree(path=path, place=locked.place, version=locked.version, kind=locked.kind)
        return
    origin = wanted_trees(the_catalog().component(component), [version] if version else [], suites)[0]
    with shelf.tree(component, origin) as path:
        yield _Tree(path=path, place=origin.text, version=origin.version, kind=origin.kind)


def _locked(component: str, lock_file: Path | None) -> LockedComponent | None:
    """The component in the lock that is named, or in the project's here; None without a lock."""
    from rocbase.errors import InputError
    from rocwright.plan.resolve.files import read_lock
    from rocwright.plan.resolve.folder import LOCK

    path = lock_file or Path(LOCK)
    if lock_file is None and not path.is_file():
        return None
    lock = read_lock(path)
    locked = next((entry for entry in lock.components if entry.name == component), None)
    if locked is None and lock_file is not None:
        raise InputError(
            f"{path} has no {component}",
            cause=f"it locks {', '.join(entry.name for entry in lock.components)}",
            next_step="name one of these, or another lock",
        )
    return locked


def _as_data(component: str, tree: _Tree, offered: Offered) -> dict[str, Any]:
    return {
        "component": component,
        "version": tree.version,
        "place": tree.place,
        "good": offered.good,
        "patches": [_patch(patch) for patch in offered.patches],
        "overlaps": [
            {
                "file": overlap.file,
                "edit": overlap.edit.subject,
                "why": overlap.edit.why,
                "breaks": overlap.breaks,
                "what": overlap.what,
            }
            for overlap in offered.overlaps
        ],
    }


def _patch(patch: PatchResult) -> dict[str, Any]:
    return {
        "name": patch.name,
        "state": patch.state.value,
        "offset": patch.offset,
        "fuzz": patch.fuzz,
        "why": patch.why,
        "files": [
            {"name": file.name, "cause": file.cause, "hunks": [_hunk(file, hunk) for hunk in file.hunks]}
            for file in patch.files
        ],
    }


def _hunk(file: FileResult, outcome: HunkOutcome) -> dict[str, Any]:
    return {
        "number": outcome.number,
        "state": outcome.state.value,
        "says-line": outcome.hunk.start,
        "line": outcome.line,
        "offset": outcome.offset,
        "fuzz": outcome.fuzz,
        "near": file.near.get(outcome.number, ""),
    }


def _show(component: str, tree: _Tree, offered: Offered) -> None:
    from rocbase.cli.tell import print_table

    click.echo(f"{component} {tree.version or '(version not named)'}   {tree.place}\n")
    rows = [
        (
            printable(patch.name[:120]),
            patch.state.value,
            f"{len(patch.files)}",
            f"{sum(len(file.hunks) for file in patch.files)}",
            f"{patch.offset}" if patch.offset else "",
            f"{patch.fuzz}" if patch.fuzz else "",
        )
        for patch in offered.patches
    ]
    print_table(("patch", "verdict", "files", "hunks", "offset", "fuzz"), rows, right=(2, 3, 4, 5))
    for patch in offered.patches:
        for line in _faults(patch):
            click.echo(line)
    if any(patch.fuzz for patch in offered.patches):
        click.echo("\nEdits of a recipe take no fuzz: refresh such patches before you make edits of them.")
    for overlap in offered.overlaps:
        word = "in the way" if overlap.breaks else "same file"
        description = printable(overlap.what[:600])
        click.echo(f"\n{word}: the edit of {overlap.edit.subject} ({overlap.edit.why})\n   {description}")


def _faults(patch: PatchResult) -> Iterator[str]:
    """What a person must look at in a patch."""
    from rocwright.sources.patching.fuzzy import HunkState
    from rocwright.sources.patching.offered import MOST_SHOWN

    if patch.why:
        yield f"\n{printable(patch.name[:120])}: {printable(patch.why[:600])}\n   {patch.next_step}"
    total = 0
    for file in patch.files:
        for hunk in file.hunks:
            if hunk.state is HunkState.APPLIES and not hunk.fuzz:
                continue
            total += 1
            if total > MOST_SHOWN:
                continue
            label = f"{printable(patch.name[:120])}: {printable(file.name)} hunk {hunk.number}"
            yield f"\n{label} (line {hunk.hunk.start}): {_word(hunk)}"
            if hunk.state is HunkState.FAILS:
                wants = hunk.hunk.needle.encode("latin-1").decode(errors="replace").strip()
                yield f"   {file.cause or f'it looks for {printable(wants[:160])!r}'}"
                yield from (f"   {printable(line)}" for line in file.near.get(hunk.number, "").splitlines())
    if total > MOST_SHOWN:
        yield f"\nand {count(total - MOST_SHOWN, 'hunk')} more (--json)"


def _word(hunk: HunkOutcome) -> str:
    from rocwright.sources.patching.fuzzy import HunkState

    if hunk.state is not HunkState.APPLIES:
        return hunk.state.value
    offset = f", {hunk.offset:+} lines" if hunk.offset else ""
    return f"applies at line {hunk.line} with fuzz {hunk.fuzz}{offset}"
