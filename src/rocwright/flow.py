"""The way of the data from Python: a request, its lock, its plan, a build; the command line calls these."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from rocbase.errors import ConflictError, ExplainedError, InputError, OutOfDiskError
from rocbase.files.atomic import write_atomic
from rocbase.folders.temporary import temporary_folder
from rocwright.execution.options import LOCAL, BuildOptions
from rocwright.execution.outcome import Built, StepsOutcome
from rocwright.execution.progress import Progress
from rocwright.execution.runs import UnderWay
from rocwright.model.steps import Plan
from rocwright.plan.decide import Decision, State, decide
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import read_lock, write_lock
from rocwright.plan.resolve.model import Lock
from rocwright.plan.resolve.validate import check_runs_here
from rocwright.project import (
    Project,
    built_outputs,
    kept_keys,
    last_plan,
    lock_offline,
    locks_below,
    project_of,
)
from rocwright.records.model import Artifact as Made
from rocwright.records.model import Run
from rocwright.store.leases import holding

# How often a build plans anew after it found something damaged in the store.
ROUNDS = 3


def lock(project: Project, on_line: Callable[[str], None], *, forget: bool = False) -> Lock:
    """Resolve, and write the lock; its remedies are kept, unless they are to be forgotten.

    Raises what resolving raises; the old lock stays where it fails.
    """
    from rocwright.plan.resolve.elsewhere import naming_bases
    from rocwright.plan.resolve.lock import make_lock, relocks
    from rocwright.plan.resolve.network import NetworkUpstream
    from rocwright.plan.resolve.shipped import preferred
    from rocwright.plan.resolve.validate import check_request

    request, catalog = project.request, project.catalog
    with naming_bases(request, catalog):
        base, release = check_request(request, catalog)
    previous = lock_before(project, on_line)
    with NetworkUpstream(
        base,
        release,
        catalog,
        project.store,
        project.home,
        on_line,
        previous,
        architecture=request.architecture,
    ) as outside:
        old_remedies = previous.remedies if previous is not None and not forget else ()
        # the lock that a trial would be undone to is not this one
        remedies = tuple(remedy.model_copy(update={"undo": ""}) for remedy in old_remedies)
        try:
            liked = preferred(catalog, request)
            base_locks = locks_below(project)
            new_lock = make_lock(
                request, catalog, outside, on_line, remedies=remedies, locks_below=base_locks, **liked
            )
        except (ConflictError, InputError) as error:
            if any(relocks(remedy.action) and remedy.in_force for remedy in remedies):
                error.next_step += ", or drop remedies: rocwright lock --forget-remedies"
            raise
    if new_lock.on is not None:
        _share(new_lock.on, project)
    write_lock(project.lock_path, new_lock)
    return new_lock


def _share(base_lock: Lock, project: Project) -> None:
    """Keep a lock that another stands on as that of its own stack: what is built of it serves both."""
    path = project_of(base_lock.request, project.output.parent, project.home).lock_path
    if not path.exists():
        write_lock(path, base_lock)


def accept_lock(project: Project) -> Lock:
    """Keep a lock that was edited by hand as it is now: it is written again. Raises InputError."""
    edited = read_lock(project.lock_path, project.request, edited=True)
    write_lock(project.lock_path, edited)
    return edited


def lock_again(project: Project, locked: Lock, on_line: Callable[[str], None]) -> Lock:
    """The lock as its remedies want it, with everything else as it is; it is not written.

    Raises what resolving raises.
    """
    from rocwright.plan.resolve.lock import make_lock
    from rocwright.plan.resolve.network import NetworkUpstream
    from rocwright.plan.resolve.validate import check_request

    base, release = check_request(locked.request, project.catalog)
    ours = (project.catalog, project.store, project.home, on_line, locked)
    with NetworkUpstream(
        base, release, *ours, keep=True, architecture=locked.request.architecture
    ) as outside:
        return make_lock(
            locked.request, project.catalog, outside, on_line, remedies=locked.remedies, keep=locked
        )


def lock_before(project: Project, on_line: Callable[[str], None]) -> Lock | None:
    """The lock that is there, whatever it answers; one that cannot be read is put aside, which is said."""
    if not project.lock_path.exists():
        return None
    try:
        return read_lock(project.lock_path)
    except ExplainedError as error:
        aside = project.lock_path.with_name(f"{project.lock_path.name}.damaged")
        # what is there may be a link that came with the project
        write_atomic(aside, project.lock_path.read_bytes())
        on_line(f"lock: {error.message}; its remedies are dropped, a copy is at {aside}")
        return None


def current_lock(project: Project, on_line: Callable[[str], None]) -> Lock:
    """The lock as it is, or a new one where there is none yet."""
    if project.lock_path.exists():
        return read_lock(project.lock_path, project.request)
    return offered_lock(project, on_line) or lock(project, on_line)


def built_lock(project: Project, on_line: Callable[[str], None]) -> Lock:
    """Return the lock as it is. Raises InputError without one: nothing is built for the project then."""
    if project.lock_path.exists():
        return read_lock(project.lock_path, project.request)
    offered = offered_lock(project, on_line)
    if offered is None:
        raise InputError(
            f"{project.request.stack} is not built here", cause="it has no lock", next_step="rocwright build"
        )
    return offered


def offered_lock(project: Project, on_line: Callable[[str], None]) -> Lock | None:
    """The lock that somebody trusted has published for this request; it is written, and what it names can be
    fetched instead of built. None where there is none, or where it does not fit the recipes here."""
    from rocwright.store.shared import published_lock

    offer = published_lock(project.store, project.request.digest)
    if offer is None:
        return None
    store, word = offer
    with temporary_folder("lock") as folder:
        path = Path(folder) / project.lock_path.name
        path.write_text(word.content)
        try:
            read = read_lock(path, project.request)
            make_plan(read, project.catalog)
        except ExplainedError as error:
            on_line(f"lock: the one in {store} is passed over: {error.message} ({error.cause})")
            return None
    write_lock(project.lock_path, read)
    on_line(f"lock: from {store}, signed {word.signed}")
    return read


def known_lock(project: Project, on_line: Callable[[str], None], *, network: bool = True) -> Lock:
    """The lock as it is, else the one that comes with rocwright, which needs no network, else a new one.

    Without a `network` the last is made from the catalog alone, and not written. Raises what resolving
    raises.
    """
    from rocwright.plan.resolve.shipped import shipped_lock

    if not project.lock_path.exists():
        offered = offered_lock(project, on_line)
        if offered is not None:
            return offered
        shipped = shipped_lock(project.catalog, project.request)
        if shipped is not None:
            on_line(
                "lock: using the one that comes with rocwright; rocwright lock fills in what it leaves open"
            )
            return shipped
        if not network:
            on_line(
                "lock: none yet, so it is planned by the catalog alone: versions of what the base brings "
                "along are those seen when the catalog was written; rocwright lock asks for those of today"
            )
            return lock_offline(project)
    return current_lock(project, on_line)


def planned(project: Project, locked: Lock, step_names: tuple[str, ...] = ()) -> tuple[Plan, list[Decision]]:
    """The plan of a lock, and what a build of `step_names`, else of the artifacts, would do with each."""
    plan = make_plan(locked, project.catalog)
    return plan, decide(plan, project.store, partial(last_plan, project), step_names)


def build(
    project: Project,
    locked: Lock,
    options: BuildOptions,
    progress: Progress,
    *,
    run_id: str = "",
    origin: str = "",
    lay: bool = True,
    step_names: tuple[str, ...] = (),
) -> Built:
    """Run what must run; lay the artifacts out in the project's output folder, where `lay` says so.

    `step_names` names steps that are enough, instead of all artifacts; nothing is laid out then.
    `origin` says who asked, where it was not a person, `run_id` under which id it goes on record; with either
    it is on record even where there was nothing to do.

    Raises InputError for a lock that leaves something open or a tree with a user's changes that are not
    saved, OutOfDiskError before anything starts where there is no room. Failures of steps are not raised:
    they are in the result, all together.
    """
    from rocwright.provenance.layout import lay_out
    from rocwright.store.signing.keys import chosen

    check_runs_here(locked.request)
    if locked.pending:
        raise InputError(
            f"the lock of {project.request.stack} is incomplete: some hashes could not be looked up "
            "when it was made",
            cause="; ".join(locked.pending[:4])
            + (f"; {len(locked.pending) - 4} more" if len(locked.pending) > 4 else ""),
            next_step="run rocwright lock on a machine that can reach these sources",
        )
    chosen()  # a key that is named and is not there is told before hours are spent
    if options.executor != LOCAL:
        from rocwright.farm.executors import find_maker

        find_maker(options.executor)  # and so is an executor
    first = [
        decision.step for decision in planned(project, locked, step_names)[1] if decision.state is State.RUN
    ]
    if first:
        from rocwright.execution.workspace import spare_the_users_work

        spare_the_users_work(first, project.home, discard=options.discard)
    outcome = StepsOutcome()
    operation = UnderWay(
        "build",
        project.request,
        project.home,
        progress.say,
        lock=locked,
        run_id=run_id,
        origin=origin,
        variant=project.variant,
    )
    plan = make_plan(locked, project.catalog)
    steps = {step.key: step.name for step in plan.steps}
    wait = partial(progress.say, "waiting for another rocwright clean to end")
    try:
        with holding(project.store, steps, wait), operation as under_way:
            run = _build(project, locked, options, progress, under_way, outcome, step_names)
            skip_layout = bool(outcome.failures or step_names or not lay)
            artifacts = () if skip_layout else lay_out(project, plan, locked, progress.say)
    except OutOfDiskError as error:
        _add_room(error, project)
        raise
    full = [error for _, error in outcome.failures if isinstance(error, OutOfDiskError)]
    if full:
        _add_room(full[0], project)
    return Built(run=run, lock=locked, artifacts=artifacts, failures=tuple(outcome.failures))


def _build(
    project: Project,
    locked: Lock,
    options: BuildOptions,
    progress: Progress,
    under_way: UnderWay,
    outcome: StepsOutcome,
    step_names: tuple[str, ...],
) -> Run:
    for _ in range(ROUNDS):
        local = options.executor == LOCAL
        plan, decisions = _planned_here(project, locked, progress, step_names, local=local)
        if not any(decision.state is State.RUN for decision in decisions):
            outcome.failures = []
            break
        from rocwright.execution.disk import check_room
        from rocwright.execution.estimate import expected
        from rocwright.execution.requirements import check_installed
        from rocwright.farm.executors import run_steps

        check_room(decisions, project.home)
        if local:
            check_installed(decisions, project.home)
        round_outcome = run_steps(
            decisions,
            project.store,
            project.home,
            options,
            under_way.folder,
            expected(project, decisions),
            progress,
            under_way,
        )
        outcome.steps += round_outcome.steps
        outcome.failures = round_outcome.failures
        write_atomic(project.last_plan, plan.model_dump_json(by_alias=True))
        if not any(error.retryable for _, error in round_outcome.failures):
            break
        progress.say("something in the store was damaged: it was moved aside and is made again")
    cached = sum(decision.state is State.CACHED for decision in decisions)
    if outcome.failures:
        return under_way.ended("failed", cached)
    recorded = under_way.on_record and not step_names
    return under_way.ended("built", cached, artifacts=_made_artifacts(project, plan) if recorded else ())


def _planned_here(
    project: Project, locked: Lock, progress: Progress, step_names: tuple[str, ...], *, local: bool
) -> tuple[Plan, list[Decision]]:
    """The plan and its decisions, once all that is built and that it needs is where steps run: `local`, or
    where other machines find it."""
    while True:
        plan, decisions = planned(project, locked, step_names)
        # what could not be had is not offered again, so that each round asks for less
        if _brought(project, step_names or plan.artifacts, decisions, progress, local=local):
            return plan, decisions


def _brought(
    project: Project,
    step_names: Collection[str],
    decisions: list[Decision],
    progress: Progress,
    *,
    local: bool,
) -> bool:
    """Have what others built: the wanted steps here, and what steps that run need where they find it. Whether
    all of it came."""
    states = {decision.step.key: decision for decision in decisions}
    needed = {
        item.key: local
        for decision in decisions
        if decision.state is State.RUN
        for item in decision.step.inputs
    }
    needed |= {decision.step.key: True for decision in decisions if decision.step.name in step_names}
    complete = True
    for key, comes in needed.items():
        decision = states[key]
        if decision.state is not State.CACHED:
            continue
        if decision.reasons:
            progress.say(f"  {decision.step.name}: {decision.reasons[0]}")
        complete = project.store.bring(key, here=comes) and complete
    return complete


def _made_artifacts(project: Project, plan: Plan) -> list[Made]:
    """The artifacts, for the record."""
    components = {step.component: step.name for step in plan.steps if step.name == step.component}
    return [
        Made(
            component=name,
            step=components[name],
            filename=output.filename,
            sha256=output.sha256,
            size=output.size,
        )
        for name, output in built_outputs(project, plan).items()
    ]


def _add_room(error: ExplainedError, project: Project) -> None:
    """Tell in an error what can be removed by which command, in figures."""
    from rocwright.execution.cleanup.advice import what_to_free

    # the file system that is full, where the error names it
    full = Path(error.subject) if error.subject.startswith("/") and Path(error.subject).exists() else None
    advice = what_to_free(project.home, project.store, kept_keys(project.home), full)
    error.detail = "\n".join(text for text in (error.detail, advice) if text)
