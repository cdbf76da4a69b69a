"""Write a folder's index as files: what a page links to goes before it, the page of all projects last."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from filelock import FileLock

from rocwheel.errors import InputError
from rocwheel.processes.python import safe_children
from rocwheel.wheels.index.cache import Cache, Listed, views_of
from rocwheel.wheels.index.examine import Wheel, metadata
from rocwheel.wheels.index.pages import METADATA, Link, Pages, for_target, is_for, project_pages, root_pages
from rocwheel.wheels.index.scan import MARKER, PAGES
from rocwheel.wheels.index.tree import Tree

FILES = "files"
FEW = 40
"""Projects up to which one process writes the pages."""

THREADS = 16
"""Projects under way at once where each write waits for a network."""

HTML_NAME, JSON_NAME = "index.html", "index.v1_json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What had to be done: wheels brought, pages and metadata files written, files removed; all views."""

    views: tuple[str, ...]
    wheels: int = 0
    pages: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """What a worker needs to write projects: where from, where to, and since which revision."""

    folder: Path
    cache: Path
    tree: Tree
    since: int
    views: tuple[str, ...]
    new_views: tuple[str, ...]


def hashed(wheel: Wheel) -> str:
    """Where a wheel is in a tree that wheels are brought to, and on a server: other content, other place."""
    return f"{FILES}/{wheel.sha256}/{wheel.filename}"


def in_place(wheel: Wheel) -> str:
    """Where it is in the folder that it lies in."""
    return wheel.seen.path


def simple(view: str) -> str:
    """The folder of a view's pages; the empty view is that of everything."""
    return f"{view}/{PAGES}/" if view else f"{PAGES}/"


def write(
    folder: Path,
    tree: Tree,
    cache: Cache,
    *,
    everything: bool = False,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Written:
    """Write what changed since the tree was written last; with `everything` compare every page.

    The tree says of which revision it is; that is told last, so that after a kill the same is written again.
    `progress` is told projects done, of how many. Raises InputError where something else lies there,
    CheckError where a wheel changed meanwhile.
    """
    with FileLock(cache.path.with_suffix(".tree.lock")):
        return _write(folder, tree, cache, everything, progress)


def _write(
    folder: Path, tree: Tree, cache: Cache, everything: bool, progress: Callable[[int, int], None]
) -> Written:
    marker = _marker(tree)
    known = marker.get("database") == cache.name and not everything
    since = int(marker["revision"]) if known else -1
    old_views = set(marker.get("views", ()))
    projects = cache.projects()
    views = views_of(projects)
    told = {"schema": 1, "database": cache.name, "revision": cache.revision, "views": views}
    if since == cache.revision:
        return Written(views=views)
    if not known:
        tree.survey()
        # while it is being written it is ours already, and not whole
        _put_marker(tree, told | {"revision": -1, "views": sorted(old_views.union(views))})
    new_views = tuple(one for one in views if since < 0 or one not in old_views)
    job = _Job(
        folder=folder,
        cache=cache.path,
        tree=tree,
        since=since,
        views=views,
        new_views=new_views,
    )
    changed = set(cache.changed(since))
    work = [(name, name in changed) for name in sorted(projects if new_views else changed & projects.keys())]
    wheels = pages = 0
    for done, count in enumerate(_in_parallel(job, work), 1):
        wheels, pages = wheels + count[0], pages + count[1]
        progress(done, len(work))
    pages += _put(tree, simple(""), root_pages(projects))
    for view in views:
        names = [name for name, sets in projects.items() if _is_for(sets, view)]
        pages += _put(tree, simple(view), root_pages(names))
    old = list(_leftovers(job, cache, projects, old_views, changed))
    removed = tree.delete(old)
    tree.settle()
    _put_marker(tree, told)
    return Written(views=views, wheels=wheels, pages=pages, removed=removed)


def _leftovers(
    job: _Job,
    cache: Cache,
    projects: Mapping[str, list[frozenset[str] | None]],
    old_views: set[str],
    changed: set[str],
) -> Iterator[str]:
    """What nothing links to any more."""

    def pages(view: str, names: Iterable[str]) -> set[str]:
        folders = (f"{simple(view)}{name}/" for name in names)
        return {folder + name for folder in folders for name in (HTML_NAME, JSON_NAME)}

    here = job.tree.holds(job.folder)
    for view in ("", *job.views):
        shown = {name for name, sets in projects.items() if not view or _is_for(sets, view)}
        if job.since < 0:
            yield from (
                set(job.tree.keys(simple(view)))
                - pages(view, shown)
                - {simple(view) + HTML_NAME, simple(view) + JSON_NAME}
            )
        else:
            yield from pages(view, changed - shown)
    for view in old_views.difference(job.views):
        yield from job.tree.keys(simple(view))
    if job.since < 0 and not here:
        wanted = {hashed(one.wheel) for name in projects for one in cache.wheels(name)}
        for key in job.tree.keys(FILES):
            if key.removesuffix(METADATA) not in wanted:
                yield key
    for gone in cache.removed(job.since):
        key = gone.path if here else f"{FILES}/{gone.sha256}/{gone.filename}"
        yield from (key + METADATA, *(() if here else (key,)))


def _is_for(sets: Iterable[frozenset[str] | None], view: str) -> bool:
    return any(is_for(targets, view) for targets in sets)


def _marker(tree: Tree) -> dict[str, Any]:
    data = tree.read(MARKER)
    if data is None and next(tree.keys(PAGES), None) is not None:
        raise InputError(
            f"{PAGES}/ already exists, and rocwheel did not write it",
            cause="it is another tool's index, or holds files of your own",
            next_step="move it away, or give another folder with --out",
        )
    try:
        found = json.loads(data or b"{}")
        return found if isinstance(found, dict) and found.get("schema") == 1 else {}
    except ValueError:
        return {}


def _put_marker(tree: Tree, told: dict[str, object]) -> None:
    tree.put(MARKER, json.dumps(told).encode() + b"\n")
    tree.settle()


_Work = tuple[str, bool]
"""A project, and whether it changed: if not, only the pages of new views are missing."""


def _in_parallel(job: _Job, work: Sequence[_Work]) -> Iterator[tuple[int, int]]:
    size = max(1, min(FEW, len(work) // 8))
    batches = [work[at : at + size] for at in range(0, len(work), size)]
    executor: Executor
    if job.tree.several_processes:
        if len(work) <= FEW:
            yield from _write_projects(job, work)
            return
        executor = ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=get_context("spawn"))
    else:
        executor = ThreadPoolExecutor(THREADS)
    with safe_children(), executor:
        try:
            for done in executor.map(_write_projects, [job] * len(batches), batches):
                yield from done
        finally:
            executor.shutdown(wait=False, cancel_futures=True)


def _write_projects(job: _Job, work: Sequence[_Work]) -> list[tuple[int, int]]:
    """Wheels and pages written of each project."""
    with closing(Cache(job.cache)) as cache:
        return [_write_project(job, project, changed, cache) for project, changed in work]


def _write_project(job: _Job, project: str, changed: bool, cache: Cache) -> tuple[int, int]:
    listed = cache.wheels(project)
    here = job.tree.holds(job.folder)
    link: Link = in_place if here else hashed
    wheels = pages = 0
    for one in listed:
        if one.revision > job.since:
            found = _bring(job, one, link(one.wheel), here)
            wheels, pages = wheels + found[0], pages + found[1]
    if changed:
        pages += _put(job.tree, f"{simple('')}{project}/", project_pages(project, listed, link, 2))
    # most projects are the same in every view
    made: dict[tuple[str, ...], Pages] = {}
    for view in job.views if changed else job.new_views:
        if wanted := for_target(listed, view):
            names = tuple(one.wheel.filename for one in wanted)
            if names not in made:
                made[names] = project_pages(project, wanted, link, 3)
            pages += _put(job.tree, f"{simple(view)}{project}/", made[names])
    return wheels, pages


def _bring(job: _Job, one: Listed, key: str, here: bool) -> tuple[int, int]:
    """The wheel itself where it is not there, and its metadata."""
    wheel = one.wheel
    brought = not here and job.tree.put_wheel(key, job.folder, wheel.seen)
    return int(brought), int(job.tree.put(key + METADATA, metadata(job.folder, wheel)))


def _put(tree: Tree, folder: str, pages: Pages) -> int:
    """How many of a page's two forms had to be written."""
    return tree.put(folder + HTML_NAME, pages.html) + tree.put(folder + JSON_NAME, pages.json)
