"""The whole look, and the removal of what was chosen."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from math import inf
from pathlib import Path

from filelock import FileLock, Timeout

from rocbase.errors import InputError
from rocbase.processes import run as process
from rocwright.execution import compiler_cache
from rocwright.execution.cleanup import inside
from rocwright.execution.cleanup.model import (
    CachingTool,
    CleanupKind,
    DiskSpace,
    Engine,
    Piece,
    Reclaimable,
    oldest,
    the_kinds,
)
from rocwright.home import Home
from rocwright.records.model import Which
from rocwright.records.opening import read_records
from rocwright.records.place import there
from rocwright.sources.bases.roots import remove_tree
from rocwright.store.gc import Rubbish, file_stats, folder_size, remove, under_way
from rocwright.store.model import Output, Store

# The kinds of what `rocwright run` made.
RUNTIMES = ("programs", "environments")

# The kinds of what a stack can leave.
OF_STACK = ("artifacts", "sources", "roots", "work", *RUNTIMES)

# Steps of a stack that are looked at, the newest first: some thousand builds.
MOST_STEPS = 100_000


def look(
    home: Home, store: Store, keep: set[str], days: float, kinds: Iterable[str], stack: str = ""
) -> DiskSpace:
    """What there is of these kinds, and what of it may go: not needed by `keep`, and older than `days`.

    For a `stack`, all that was made to run it and that nothing uses now, and what its builds left that are
    in no plan, however new.
    """
    catalogued, names = the_kinds(), set(kinds)
    if stack:
        removable = inside.left_by(home, store, keep, _keys_of(home, stack))
    else:
        removable = inside.what_can_go(home, store, keep, days)
    reclaimables = [
        _reclaimable(kind, home, store, removable, days, stack)
        for kind in catalogued.kind
        if kind.name in names
    ]
    reclaimables += [find_tool(tool, days) for tool in catalogued.tool if tool.name in names]
    reclaimables += [find_images(engine, days) for engine in catalogued.engine if engine.name in names]
    return DiskSpace(found=tuple(reclaimables), rubbish=removable, days=days)


def _keys_of(home: Home, stack: str) -> set[str]:
    """Return the keys of all steps that builds of the stack had."""
    if not there(home):
        return set()
    with read_records(home) as records:
        return {entry.step.key for entry in records.steps(Which(stack=stack), limit=MOST_STEPS)}


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


_UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_IMAGE = re.compile(r"(?P<id>\S+)\s+(?P<size>[0-9.]+)\s?(?P<unit>[kKMGT]?B)?\s+(?P<made>\d.*)")

# How long a program may take to say what it has.
SECONDS = 20.0


def find_tool(tool: CachingTool, days: float) -> Reclaimable:
    """A program's cache; it goes as a whole, once none of it is young."""
    output, reason = _ask(tool.folder)
    folder = Path(output.strip()) if output.strip() else None
    stats = list(file_stats(folder)) if folder and folder.is_absolute() and folder.is_dir() else []
    size, used = sum(stat.st_size for stat in stats), max((stat.st_mtime for stat in stats), default=0)
    free = size and used < oldest(days)
    return Reclaimable(
        kind=tool.name,
        holds=tool.holds,
        again=tool.again,
        size=size,
        count=len(stats),
        used=used,
        command=shlex.join(tool.clear),
        outside=True,
        why=reason,
        pieces=(Piece(kind=tool.name, name=str(folder), size=size, used=used),) if free else (),
    )


def find_images(engine: Engine, days: float) -> Reclaimable:
    """The images of an engine that its words find; those that a container needs, the engine keeps."""
    output, reason = _ask(engine.find)
    if engine.inspect and not reason:
        ids = tuple(dict.fromkeys(output.split()))
        output, reason = _ask((*engine.inspect, *ids)) if ids else ("", "")
    rows = (_image(engine, line) for line in output.splitlines())
    images = {image.name: image for image in rows if image}
    return Reclaimable(
        kind=engine.name,
        holds=engine.holds,
        again=engine.again,
        size=sum(image.size for image in images.values()),
        count=len(images),
        used=max((image.used for image in images.values()), default=0),
        command=shlex.join((*engine.remove, "...")),
        outside=True,
        why=reason,
        pieces=tuple(image for image in images.values() if image.used < oldest(days)),
    )


def _image(engine: Engine, line: str) -> Piece | None:
    """An image of a line with its id, its size (bytes, or as people read it) and when it was made."""
    match = _IMAGE.fullmatch(line.strip())
    if match is None:
        return None
    used = 0.0
    with contextlib.suppress(ValueError):
        used = datetime.fromisoformat(match["made"][:19].replace(" ", "T") + "+00:00").timestamp()
    size = round(float(match["size"]) * _UNITS[match["unit"] or "B"])
    return Piece(kind=engine.name, name=match["id"], size=size, used=used)


def _ask(command: tuple[str, ...]) -> tuple[str, str]:
    """What a program says, and why it says nothing."""
    try:
        # not in the user's folder: uv reads settings there, such as where its cache is
        completed = process.run(command, cwd=Path("/"), timeout=SECONDS)
    except (InputError, OSError) as error:
        return "", str(error)
    if completed.ok:
        return completed.stdout, ""
    lines = completed.stderr.strip().splitlines()
    return "", lines[-1][:200] if lines else f"{command[0]} ended with {completed.returncode}"


ABOUT_ENVIRONMENT = "environment.json"
_GOING = ".going-"
_ESCAPED = re.compile(rb"\\([0-7]{3})")
# Days in which what has no name yet may be being made.
_YOUNG = 1.0


def find_runtimes(kind: CleanupKind, place: Path, days: float, stack: str = "") -> Reclaimable:
    """What lies in `place` and was not used for so many days, or is of a `stack` and in use by nothing."""
    paths = [*_things(place)]
    busy = shown_in_sandboxes(place)
    made_for = {path: _stack_of(path) for path in paths}
    every = {
        path: Piece(
            kind=kind.name, name=str(path), size=folder_size(path), used=_used(path), of=made_for[path]
        )
        for path in paths
        if not stack or made_for[path] == stack
    }
    return Reclaimable(
        kind=kind.name,
        holds=kind.holds,
        again=kind.again,
        size=sum(piece.size for piece in every.values()),
        count=len(every),
        used=max((piece.used for piece in every.values()), default=0),
        pieces=tuple(
            piece
            for path, piece in every.items()
            if path.name not in busy
            and (stack or piece.used < oldest(max(days, _YOUNG) if path.name.startswith(".") else days))
        ),
    )


def remove_runtime(path: Path) -> bool:
    """Remove what `find_runtimes` found; False where something runs in it by now, or makes it."""
    if path.is_file():
        path.unlink(missing_ok=True)
        return True
    lock = FileLock(path.with_name(f"{path.name}.lock"))
    with contextlib.suppress(Timeout, FileNotFoundError), lock.acquire(blocking=False):
        # nothing starts in what has no name any more; what started before is seen now
        going = path.rename(path.with_name(f"{_GOING}{path.name}"))
        if {path.name, going.name} & shown_in_sandboxes(path.parent):
            going.rename(path)
            return False
        remove_tree(going)
        for end in (".lock", ".json"):
            path.with_name(f"{path.name}{end}").unlink(missing_ok=True)
        return True
    return False


def shown_in_sandboxes(place: Path) -> set[str]:
    """Names in a folder that a running process of this machine sees as mounts: as the kernel tells, whoever
    started it. One of the same name elsewhere counts too: what the kernel tells is a path within a disk."""
    names: set[str] = set()
    prefix = os.fsencode(f"/{place.name}/")
    for table in Path("/proc").glob("[0-9]*/mountinfo"):
        with contextlib.suppress(OSError):
            for line in table.read_bytes().splitlines():
                root = _ESCAPED.sub(lambda match: bytes([int(match[1], 8)]), line.split(b" ")[3])
                if prefix in root:
                    names.add(os.fsdecode(root.rpartition(prefix)[2].split(b"/")[0]))
    return names


def _things(place: Path) -> Iterator[Path]:
    """Programs, environments, and notes of what was asked for; what is going or half made is a thing too."""
    for path in sorted(place.glob("*")):
        if path.is_symlink() or not path.is_dir():
            continue
        if path.name == "asked":
            yield from sorted(path.glob("*.json"))
        else:
            yield path


def _used(path: Path) -> float:
    """When it was started last: each start sets the time of its folder."""
    return path.lstat().st_mtime


def _stack_of(path: Path) -> str:
    """The stack that it was made for; "" where nothing says so."""
    for description in (path.with_name(f"{path.name}.json"), path / ABOUT_ENVIRONMENT):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            return str(json.loads(description.read_bytes()).get("stack", ""))
    return ""


def place_of(kind: CleanupKind, home: Home) -> Path:
    """The folder of a kind of runtimes."""
    return {"programs": home.programs, "environments": home.environments}[kind.name]
