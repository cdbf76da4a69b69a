"""The whole look, and the removal of what was chosen."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from math import inf
from pathlib import Path

from filelock import FileLock, Timeout

from rocbase.errors import InputError
from rocbase.processes import run as process
from rocwright.execution import compiler_cache
from rocwright.execution.cleanup import inside
from rocwright.execution.cleanup.model import CleanupKind, DiskSpace, Piece, Reclaimable, the_kinds
from rocwright.execution.cleanup.outside import find_images, find_tool
from rocwright.execution.cleanup.runtimes import find_runtimes, place_of, remove_runtime
from rocwright.home import Home
from rocwright.sources.bases.roots import remove_tree
from rocwright.store.gc import Rubbish, remove, under_way
from rocwright.store.model import Output, Store

RUNTIMES = ("programs", "environments")
"""The kinds of what `rocwright run` made."""


def look(
    home: Home, store: Store, keep: set[str], days: float, kinds: Iterable[str], stack: str = ""
) -> DiskSpace:
    """What there is of these kinds, and what of it may go: not needed by `keep`, and older than `days`.

    Of what was made to run a `stack`, where one is named, all that nothing uses now.
    """
    catalogued, names = the_kinds(), set(kinds)
    removable = inside.what_can_go(home, store, keep, days)
    reclaimables = [
        _reclaimable(kind, home, store, removable, days, stack)
        for kind in catalogued.kind
        if kind.name in names
    ]
    reclaimables += [find_tool(tool, days) for tool in catalogued.tool if tool.name in names]
    reclaimables += [find_images(engine, days) for engine in catalogued.engine if engine.name in names]
    return DiskSpace(found=tuple(reclaimables), rubbish=removable, days=days)


def _reclaimable(
    kind: CleanupKind, home: Home, store: Store, removable: Rubbish, days: float, stack: str
) -> Reclaimable:
    command = f"rocwright clean {kind.name}"
    match kind.name:
        case "work":
            reclaimable = inside.find_work(kind, home, store, removable)
        case "compiler-cache":
            reclaimable = inside.find_cache(kind, home, days)
        case "logs":
            reclaimable = inside.find_files(kind, inside.log_files(home), days, spare=bool(under_way(store)))
        case "indexes":
            reclaimable = inside.find_files(kind, inside.index_files(home), days, spare=False)
        case "package-lists":
            # steps that fetch work in them
            age = inf if under_way(store) else days
            reclaimable = inside.find_folders(kind, inside.package_lists(home), age)
        case "programs" | "environments":
            reclaimable = find_runtimes(kind, place_of(kind, home), days, stack)
        case _:
            reclaimable = inside.find_kept(kind, home, store, removable)
    return reclaimable.model_copy(update={"command": command})


def part(rubbish: Rubbish, pieces: Iterable[Piece], store: Store) -> Rubbish:
    """What of the rubbish these pieces are: files that a record which stays names, stay."""
    names = [piece.name for piece in pieces]
    ends = {name.rpartition(" ")[2] for name in names}
    records = tuple(key for key in rubbish.records if key in ends)
    staying = {output.sha256 for key in set(rubbish.records) - ends for output in _outputs(store, key)}
    going = {output.sha256 for key in records for output in _outputs(store, key)}
    blobs = tuple(
        blob for blob in rubbish.blobs if blob not in staying and (blob in going or blob[:12] in ends)
    )
    folders = tuple(folder for folder in rubbish.folders if folder in set(names))
    return Rubbish(records=records, blobs=blobs, folders=folders, size=sum(piece.size for piece in pieces))


def _outputs(store: Store, key: str) -> tuple[Output, ...]:
    record = store.record(key)
    return record.outputs if record else ()


def clear(
    pieces: Iterable[Piece], room: DiskSpace, home: Home, store: Store, say: Callable[[str], None]
) -> tuple[str, ...]:
    """Remove these pieces of what `look` found; gives what other programs said when they refused.

    What came into use since stays. A kill at any moment leaves the store whole.
    """
    by_kind: dict[str, list[Piece]] = {}
    for piece in pieces:
        by_kind.setdefault(piece.kind, []).append(piece)
    catalogued = the_kinds()
    own = {kind.name for kind in catalogued.kind if kind.steps} | {"work"}
    mine = [piece for name in own for piece in by_kind.get(name, ())]
    if mine:
        say(f"clean: {len(mine)} of {', '.join(sorted(own & set(by_kind)))}")
        removable = part(room.rubbish, mine, store)
        remove(store, removable, remove_tree, lambda folder: say(f"clean: {folder}"))
    for piece in (*by_kind.get("logs", ()), *by_kind.get("indexes", ())):
        say(f"clean: {piece.name}")
        _remove_files(piece, home)
    for piece in by_kind.get("package-lists", ()):
        say(f"clean: {piece.name}")
        _remove_folder(Path(piece.name))
    for piece in (piece for name in RUNTIMES for piece in by_kind.get(name, ())):
        gone_now = remove_runtime(Path(piece.name))
        say(f"clean: {piece.name}" + ("" if gone_now else " is in use by now"))
    commands = [(tool.name, tool.clear) for tool in catalogued.tool if tool.name in by_kind]
    commands += [
        (engine.name, (*engine.remove, piece.name))
        for engine in catalogued.engine
        for piece in by_kind.get(engine.name, ())
    ]
    for piece in by_kind.get("compiler-cache", ()):
        say(f"clean: {piece.name}")
        compiler_cache.drop(home, Path(piece.name))
    results: list[process.Finished] = []
    for _, command in commands:
        say(f"clean: {' '.join(command)}")
        results.append(process.run(command, cwd=Path("/")))
    return tuple(_refusal(completed) for completed in results if not completed.ok)


def _refusal(completed: process.Finished) -> str:
    lines = completed.stderr.strip().splitlines() or [f"ended with {completed.returncode}"]
    return f"{completed.argv[0]}: {lines[-1][:300]}"


def _remove_files(piece: Piece, home: Home) -> None:
    if piece.kind == "logs":
        for path in inside.log_files(home).get(Path(piece.name), ()):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            # only where not even a record is left
            Path(piece.name).rmdir()
        return
    database = Path(piece.name)
    with contextlib.ExitStack() as stack:
        try:
            for end in (".lock", ".tree.lock"):
                stack.enter_context(FileLock(database.with_suffix(end)).acquire(blocking=False))
        except Timeout:
            return
        paths = inside.index_files(home).get(database, [])
        if not is_open(paths):
            for path in paths:
                path.unlink(missing_ok=True)


def _remove_folder(folder: Path) -> None:
    """Remove it, unless apt is at work in it by now."""
    with contextlib.suppress(Timeout), FileLock(folder.with_suffix(".lock")).acquire(blocking=False):
        remove_tree(folder)


def is_open(paths: Iterable[Path]) -> bool:
    """Whether a process that may be looked at has one of these files open."""
    resolved = {str(path.resolve()) for path in paths}
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if str(link.readlink()) in resolved:
                return True
    return False


def kinds_asked(names: Iterable[str]) -> tuple[str, ...]:
    """The kinds of these names; without any, all in the home folder. Raises InputError."""
    catalogued = the_kinds()
    selected = tuple(dict.fromkeys(names))
    for name in selected:
        if name not in catalogued.names:
            raise InputError(
                f"there is no kind {name!r}",
                cause=f"kinds: {', '.join(catalogued.names)}",
                next_step="use one of them; rocwright clean shows the size of each",
            )
    return selected or tuple(kind.name for kind in catalogued.kind)
