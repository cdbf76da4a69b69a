"""From a request to artifacts: what is asked for, its lock, its plan, a build, what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocwright.api.gpus import AUTO, chosen_targets, named_gpus, silent

if TYPE_CHECKING:
    from rocwright.execution.options import BuildOptions
    from rocwright.execution.outcome import Built
    from rocwright.execution.progress import Progress
    from rocwright.plan.decide import Decision
    from rocwright.plan.resolve.model import Lock, Remedy, Request
    from rocwright.project import Project
    from rocwright.records.model import Finding
    from rocwright.records.read import Records

    Planned = Callable[[Lock, list[Decision]], None]

Say = Callable[[str], None]


def stacks() -> tuple[str, ...]:
    """The names of the stacks that can be built."""
    from rocwright.catalog.load import the_catalog

    return tuple(the_catalog().stacks)


def request(
    stack: str,
    gpu: str | Sequence[str] = (),
    base: str = "",
    *,
    provider: str = "",
    extra: Sequence[str] = (),
    versions: Mapping[str, str] | None = None,
    accept_missing: Sequence[str] = (),
    allow_untested: bool = False,
    architecture: str = "",
    say: Say = silent,
) -> Request:
    """What is asked for: a stack, for GPUs by any of their names, on a base such as debian:sid.

    A stack with several origins, such as vllm, is the first that serves the GPUs; "vllm:built" names one.
    No GPU, or "auto", is the one of this machine, or the fallback of gpu_names.toml where there is none; no
    base is the one of the stack on which this resolves and that the shipped evidence says most of, rows for
    these GPUs first. `provider` says where ROCm comes
    from, `extra` adds optional components, `versions` pins components: a version, or "@" and a commit;
    `accept_missing` names libraries of ROCm that may be left without code for the GPUs; with `allow_untested`
    what is pinned may stand on a ROCm that no source saw it on. No `architecture`
    (x86_64, aarch64) is that of this machine. Raises InputError for a stack, GPU or
    architecture that is not known.
    """
    from rocwright.catalog.load import the_catalog
    from rocwright.model.architecture import architecture_named
    from rocwright.plan.resolve.model import Request
    from rocwright.verify.proven import ORIGIN, serving_request, stacks_named

    catalog, family = the_catalog(), stack.partition(ORIGIN)[0]
    names = stacks_named(stack, catalog)
    requested = Request(
        stack=family,
        gpu=chosen_targets(gpu, say),
        base=base or catalog.stack(family).bases[0],
        provider=provider,
        extra=tuple(extra),
        versions=dict(versions or {}),
        accept_missing=tuple(accept_missing),
        allow_untested=allow_untested,
        architecture=architecture_named(architecture),
    )
    served = serving_request(requested, names, catalog, base and requested.base)
    if served.stack != family:
        choices = ", ".join(f"--from {origin}" for origin in catalog.stack(family).origins)
        say(f"{family}: using the stack {served.stack} (choose with {choices})")
    return served


def project(
    stack: str = "",
    gpu: str | Sequence[str] = (),
    base: str = "",
    *,
    folder: str | Path = ".",
    home: str | Path | None = None,
    provider: str = "",
    extra: Sequence[str] = (),
    versions: Mapping[str, str] | None = None,
    accept_missing: Sequence[str] = (),
    allow_untested: bool = False,
    architecture: str = "",
    say: Say = silent,
) -> Project:
    """A project: what is asked for, and where its lock and its artifacts lie.

    Without a stack it is what `folder`/rocwright.toml asks for, with the lock beside that file. So it is with
    a stack that a project file in `folder` or above has a row for; other arguments must not contradict that
    row. With any other stack it is that `request`, and its lock lies in `home`. Artifacts are laid out in
    `folder`/rocwright-out. `home` is the folder of this machine's state, by default the one that the command
    line uses. Raises InputError for what is not known, a contradiction, and a missing project file.
    """
    from rocwright.catalog.load import the_catalog
    from rocwright.home import Home
    from rocwright.plan.resolve.folder import PROJECT
    from rocwright.plan.resolve.own import own_request
    from rocwright.project import own_project, project_in, project_of
    from rocwright.verify.proven import stacks_named

    place, state = Path(folder).absolute(), Home(Path(home).absolute()) if home is not None else None
    if state is not None:
        state.make_private()
    if not stack:
        return project_in(place, state)
    changes: dict[str, Any] = {
        "provider": provider,
        "extra": tuple(extra),
        "versions": dict(versions or {}),
        "accept_missing": tuple(accept_missing),
        "allow_untested": allow_untested,
        "architecture": architecture,
    }
    named = named_gpus(gpu)
    targets = chosen_targets(named) if named and named != (AUTO,) else ()
    given = {name: value for name, value in {"gpu": targets, "base": base, **changes}.items() if value}
    names = dict.fromkeys((stack, *stacks_named(stack, the_catalog())))
    own = next(filter(None, (own_request(place, name, given) for name in names)), None)
    if own is not None:
        say(f"{own[0] / PROJECT} asks for {' '.join(own[1].words)}")
        return own_project(*own, state)
    requested = request(stack, gpu, base, **changes, say=say)
    return project_of(requested, place, state)


def resolve(project: Project, *, forget_remedies: bool = False, say: Say = silent) -> Lock:
    """Choose one exact version of everything, and write the project's lock. Asks the network.

    What a healed build put into the lock is kept, unless `forget_remedies` says otherwise. Raises InputError
    for what is not known, ConflictError where nothing fits together, FetchError or NetworkError where
    upstream does not answer; the old lock stays then.
    """
    from rocwright import flow

    return flow.lock(project, say, forget=forget_remedies)


def lock(project: Project, *, shipped: bool = True, network: bool = True, say: Say = silent) -> Lock:
    """The project's lock as it is; else the one that comes with rocwright; else a new one, by `resolve`.

    Only the last needs a network, and writes the lock; without `network` it is made from the catalog alone,
    with hashes open and the versions that the catalog has seen, and not written. Without `shipped` neither of
    these counts: a build needs the hashes.
    Raises InputError for a lock that is damaged or of another request, and what `resolve` raises.
    """
    from rocwright import flow

    return flow.known_lock(project, say, network=network) if shipped else flow.current_lock(project, say)


def plan(project: Project, locked: Lock | None = None, *, say: Say = silent) -> list[Decision]:
    """What a build would do with each step, in order: `step`, `state` (run, in store, not needed), `reasons`.

    `locked` is the `lock` of the project without a network, where none is given. Raises InputError where the
    lock does not fit the recipes, and what `lock` raises.
    """
    from rocwright import flow

    return flow.planned(project, locked or lock(project, network=False, say=say))[1]


def build(
    project: Project,
    locked: Lock | None = None,
    *,
    options: BuildOptions | None = None,
    heal: bool = False,
    verify: bool = False,
    run_id: str = "",
    origin: str = "",
    planned: Planned | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Built:
    """Run what is not in the store yet, and lay the artifacts out in the project's output folder.

    `options` says with how many jobs, in how much memory, by which executor, and so on. With `heal` known
    failures are mended on the way, and what helped is written into the lock; with `verify` what is built is
    checked, as by `verify`. `run_id` and `origin` are the id under which the run goes on record, and who
    asked for it.

    `planned` hears the lock and what will be done before anything runs; `progress` how it goes, and `say` the
    rest; without them, plain lines go to standard error. Without a lock here, one is made from the network.

    Failures of steps are in the result, all together, and not raised, each with what `heal` would do about
    it. Raises InputError where this machine cannot build for the architecture, and for a lock that leaves
    something open, SandboxError where no engine works, OutOfDiskError before anything starts.
    """
    from rocwright import flow
    from rocwright.execution.options import BuildOptions
    from rocwright.execution.progress import PlainProgress
    from rocwright.plan.resolve.validate import check_runs_here

    check_runs_here(project.request)
    reporter = progress or PlainProgress()
    say = say or reporter.say
    options = options or BuildOptions()
    locked = locked or lock(project, shipped=False, say=say)
    if planned is not None:
        planned(locked, plan(project, locked))
    with reporter as shown:
        if heal:
            from rocwright.doctor.remedies.heal import heal as build_and_heal

            built = build_and_heal(project, locked, options, shown, run_id=run_id, origin=origin)[1]
        else:
            built = flow.build(project, locked, options, shown, run_id=run_id, origin=origin)
    if built.failures:
        from rocwright.doctor.remedies.heal import add_offers

        add_offers(project, built.lock, built)
    elif verify:
        return _verified(project, built, options.engine, say)
    return built


def _verified(project: Project, built: Built, engine: str | None, say: Say) -> Built:
    """The same, checked; what passed is signed by then."""
    from rocwright import flow
    from rocwright.provenance.layout import lay_out
    from rocwright.verify.run import verify as run_checks

    findings = run_checks(project, built.lock, engine, say)
    artifacts = lay_out(project, flow.planned(project, built.lock)[0], built.lock, say)
    return replace(built, artifacts=artifacts, findings=tuple(findings))


def verify(
    project: Project,
    locked: Lock | None = None,
    *,
    engine: str | None = None,
    device: str = "",
    run_id: str = "",
    progress: Progress | None = None,
    say: Say = silent,
) -> list[Finding]:
    """Check and try what is built, and keep the findings as evidence, under `run_id` where one is given.

    With `device` "emulated", what recipes have for it runs on an emulated GPU as well.

    A check that fails is a finding whose `ok` is false, and not an error; `device` says where it ran.
    `progress` hears of the steps that the checks need. Raises InputError where the project is not built as
    its lock says, or no emulator is installed; CheckError where its self-test fails.
    """
    from rocwright.flow import built_lock
    from rocwright.verify.run import verify as run_checks

    locked = locked or built_lock(project, say)
    return run_checks(project, locked, engine, say, progress, device=device, run_id=run_id)


def carry(
    project: Project,
    folder: Path,
    *,
    engine: str | None = None,
    progress: Progress | None = None,
    say: Say = silent,
) -> Path:
    """Pack the checks of what is built for a machine with the card; gives the script that runs them there.

    Raises InputError where the project is not built, or more than 45 MB would have to be carried.
    """
    from rocwright.flow import built_lock
    from rocwright.verify.carry import pack

    return pack(project, built_lock(project, say), folder, engine, say, progress)


def verify_carried(project: Project, result: Path, *, run_id: str = "", say: Say = silent) -> list[Finding]:
    """Put what a carried verification found on record, under `run_id` where one is given, and give it.

    Raises InputError for a file that is no such result, CheckError for one that was edited, taken before, of
    another artifact, or older than what was packed.
    """
    from rocwright.flow import built_lock
    from rocwright.verify.carried import take_back

    return take_back(project, built_lock(project, say), result, say, run_id=run_id)


def verify_environment(
    suites: Sequence[str],
    python: str | Path = "python3",
    *,
    gpu: str | Sequence[str] = (),
    device: str = "auto",
    every: bool = False,
    size: str = "normal",
    only: Sequence[str] = (),
    repeat: int = 50,
    run_id: str = "",
    say: Say = silent,
) -> list[Finding]:
    """Run smoke suites (torch, vision, vllm ...) in a Python environment, and keep the findings as evidence.

    `python` is its interpreter. `gpu` are targets that kernels are compiled for without a GPU, whose known
    gaps are left out. `device` is auto, cpu, cuda (one of each kind of GPU) or cuda:N, `every` takes each of
    several equal GPUs; `size` is small, normal or large, `only` takes operations whose name contains a text.
    `repeat` is how often the suite drift runs each operation. What is wrong with the environment is a
    finding. Raises InputError where there is no such Python, suite, size or GPU.
    """
    from rocwright.catalog.load import the_catalog
    from rocwright.home import Home
    from rocwright.verify.suites import SCRIPT_PATH, aimed, order_for, run_suites

    catalog = the_catalog()
    order = order_for(suites, str(python), device=device, size=size, every=every, only=only, repeat=repeat)
    if named_gpus(gpu):
        order = aimed(order, [catalog.target(name) for name in chosen_targets(gpu, say, catalog)])
    return run_suites(order, catalog.holder(SCRIPT_PATH), Home.default(), say, run_id=run_id)


def remedies(project: Project) -> tuple[Remedy, ...]:
    """What healed builds put into the project's lock, in the order in which it was tried.

    Raises InputError where there is no lock yet, or it is damaged.
    """
    return _lock_here(project).remedies


def forget_remedies(project: Project, issue: str) -> tuple[Remedy, ...]:
    """Take the remedies of a known issue out of the project's lock; gives those. The next build goes without.

    Raises InputError where there is no lock, or none of that issue in it.
    """
    from rocwright.doctor.remedies.trail import without
    from rocwright.plan.resolve.files import write_lock

    locked = _lock_here(project)
    remaining = without(locked, issue)
    write_lock(project.lock_path, remaining)
    return tuple(remedy for remedy in locked.remedies if remedy not in remaining.remedies)


def _lock_here(project: Project) -> Lock:
    from rocbase.errors import InputError
    from rocwright.plan.resolve.files import read_lock

    if not project.lock_path.exists():
        raise InputError(
            "there is no lock yet, so there are no remedies",
            cause=f"{project.lock_path} does not exist: nothing was locked or built",
            next_step="rocwright build",
        )
    return read_lock(project.lock_path, project.request)


def export(
    project: Project,
    kind: str,
    out: str | Path = "",
    *,
    locked: Lock | None = None,
    force: bool = False,
    say: Say = silent,
) -> list[Path]:
    """Write the lock as plain files that need rocwright no more, and give their paths.

    `kind` is a format (containerfile, pipeline, github ...; `rocwright export --help` lists them) or "all",
    `out` the folder, export/KIND by default. `force` writes over files that are there and differ. Raises
    InputError for a format that there is not or that the stack has nothing for, and for files that differ.
    Nothing is asked outside: what `locked`, or the `lock` without a network, leaves open stays open.
    """
    from rocwright.export.write import export as files_of
    from rocwright.export.write import write
    from rocwright.plan.resolve.required import newest

    required = newest(project.lock_path)
    files = files_of(locked or lock(project, network=False, say=say), project.catalog, kind, required)
    own = Path("export", kind)
    return write(files, Path(out), force=force) if out else write(files, own, top=Path(), force=force)


def records(home: str | Path | None = None) -> Records:
    """What is on record of this machine: runs, steps over time, artifacts, findings. A context manager.

    `home` is the folder of this machine's state, by default the one that the command line uses. Where nothing
    is on record, nothing is made on the disk. Raises InternalError where the records are damaged.
    """
    from rocwright.home import Home
    from rocwright.records.opening import read_records

    return read_records(Home(Path(home).absolute()) if home is not None else Home.default())
