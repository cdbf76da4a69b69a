"""Following upstream, project by project: which locks are looked after, and candidates for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rocbase.errors import FetchError, InputError
from rocwheel.wheels.gpu_table import gpu_table
from rocwright.catalog.load import the_catalog
from rocwright.follow.watch.bump import LockCandidate, bump_request, make_candidate
from rocwright.follow.watch.look import watch
from rocwright.follow.watch.question import Question
from rocwright.follow.watch.upstream import Answer
from rocwright.home import Home
from rocwright.model.architecture import host_architecture
from rocwright.plan.resolve.files import change_request, read_lock, read_project, write_lock
from rocwright.plan.resolve.folder import PROJECT
from rocwright.plan.resolve.gpus import target_named
from rocwright.plan.resolve.model import Lock, Request
from rocwright.plan.resolve.network import NetworkUpstream
from rocwright.plan.resolve.settings import WatchSettings
from rocwright.plan.resolve.shipped import request_of, shipped_lock
from rocwright.plan.resolve.validate import check_request
from rocwright.project import Project, project_in, project_of
from rocwright.sources.patience import bounded, current, with_patience

Ask = Callable[[Question], Answer]


def locks_to_watch(folder: Path, stacks: Sequence[str], gpu: str, base: str, home: Home) -> dict[str, Lock]:
    """The locks of the project in a folder, or of stacks by name, under what they are called.

    A stack without `gpu` and `base` stands for its first row. Of each, the lock that is on this machine, else
    the one that comes with rocwright. Raises InputError where there is neither.
    """
    if not stacks:
        project = project_in(folder, home)
        return {_label(project): _lock_there(project)}
    locks: dict[str, Lock] = {}
    for name in stacks:
        projects = [project_of(request, folder, home) for request in _requests(name, gpu, base)]
        chosen = next((candidate for candidate in projects if candidate.lock_path.exists()), projects[0])
        locks[_label(chosen)] = _lock_there(chosen)
    return locks


def _requests(name: str, gpu: str, base: str) -> list[Request]:
    stack = the_catalog().stack(name)
    gpu = target_named(gpu, the_catalog()).name if gpu else ""
    rows = [row for row in stack.row if gpu in ("", row.gpu) and base in ("", row.base)]
    if rows:
        row = rows[0]
        request = Request(stack=name, gpu=(row.gpu,), base=row.base, architecture=host_architecture())
        return [request, request_of(stack, row)]
    if not gpu:
        raise InputError(
            f"no GPU given for {name}",
            cause="no [[matrix]] row of it names one",
            next_step=f"rocwright watch {name} --gpu {gpu_table().fallback} --base {base or stack.bases[0]}",
        )
    base = base or stack.bases[0]
    return [Request(stack=name, gpu=(gpu,), base=base, architecture=host_architecture())]


def _lock_there(project: Project) -> Lock:
    if project.lock_path.exists():
        return read_lock(project.lock_path, project.request)
    shipped = shipped_lock(project.catalog, project.request)
    if shipped is None:
        raise InputError(
            f"there is no lock of {_label(project)} to watch",
            cause=f"{project.lock_path} does not exist, and none is shipped with rocwright",
            next_step="rocwright lock",
        )
    return shipped


def _label(project: Project) -> str:
    request = project.request
    words = (request.stack, ", ".join(request.gpu), request.base, project.variant)
    return " \u00b7 ".join(word for word in words if word)


def watch_settings(folder: Path, changes: Mapping[str, object]) -> WatchSettings:
    """`[watch]` of the project file in a folder, where there is one; what `changes` says stands over it."""
    path = folder / PROJECT
    settings = read_project(path).watch if path.exists() else WatchSettings()
    overrides = {name: value for name, value in changes.items() if value is not None}
    return WatchSettings.model_validate(settings.model_dump() | overrides)


def bump(
    project: Project, names: Sequence[str], settings: WatchSettings, on_line: Callable[[str], None]
) -> LockCandidate:
    """A candidate lock that takes what upstream has: all that is admitted, or what is named.

    Raises InputError without a lock or for an unknown name, and what locking raises. An alarm of `watch` ends
    it: nothing is built on what has changed under a pin before somebody has looked.
    """
    return _bumped(project, read_lock(project.lock_path, project.request), names, settings, on_line)


def _bumped(
    project: Project,
    lock: Lock,
    names: Sequence[str],
    settings: WatchSettings,
    on_line: Callable[[str], None],
    ask: Ask | None = None,
    free: Collection[str] = (),
) -> LockCandidate:
    report = watch({_label(project): lock}, settings, project.catalog, project.home, ask, free)
    for silent in report.silent:
        on_line(f"no answer: {silent.source}: {silent.cause or silent.what}")
    if report.alarms:
        raise FetchError(
            f"{report.alarms[0].what}: no candidate lock was written",
            cause=f"the lock has {report.alarms[0].had}, upstream has {report.alarms[0].now}",
            next_step="find out why before you trust it; rocwright watch shows all of it",
        )
    take = bump_request(lock, project.catalog, report.news, names)
    base, release = check_request(project.request, project.catalog)
    until = datetime.now(UTC) - timedelta(days=settings.cool_down) if settings.cool_down else None
    previous = lock if not take.roots else None
    outside = NetworkUpstream(
        base,
        release,
        project.catalog,
        project.store,
        project.home,
        on_line,
        previous,
        until=until,
        architecture=project.request.architecture,
    )
    with with_patience(current() or bounded(settings.seconds)), outside:
        candidate = make_candidate(lock, project.catalog, take, report.news, outside, on_line)
    return replace(
        candidate, silent=tuple(f"{silent.source}: {silent.cause or silent.what}" for silent in report.silent)
    )


def newest(
    project: Project,
    lock: Lock,
    settings: WatchSettings,
    on_line: Callable[[str], None],
    ask: Ask | None = None,
) -> LockCandidate:
    """The candidate for a lock that lies elsewhere than its project's own; raises what `bump` raises.

    `ask` asks in Upstream's place. What the lock pins beyond the project's own request, an earlier candidate
    did: that follows on.
    """
    requested = project.request.versions
    free = {name for name, pin in lock.request.versions.items() if requested.get(name) != pin}
    return _bumped(replace(project, request=lock.request), lock, (), settings, on_line, ask, free)


def candidate_path(project: Project) -> Path:
    """Where a candidate lies: beside the lock."""
    return project.lock_path.with_name(f"{project.lock_path.name}.candidate")


def put_candidate(project: Project, candidate: Lock, output: Path | None, *, write: bool) -> Path:
    """Write a candidate beside the lock or to `output`, or put it in the lock's place; gives where it is.

    In the lock's place, what it asks for goes into the project file too.
    """
    if not write:
        path = output or candidate_path(project)
        write_lock(path, candidate)
        return path
    project_file = project.lock_path.with_name(PROJECT)
    if candidate.request != project.request:
        change_request(project_file, {"versions": candidate.request.versions})
    write_lock(project.lock_path, candidate)
    return project.lock_path
