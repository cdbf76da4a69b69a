"""A run step: the recipe's commands in a sandbox that sees its inputs and nothing else."""

from __future__ import annotations

import contextlib
import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rocbase.errors import (
    CheckError,
    CompileError,
    ExplainedError,
    FailureClass,
    InputError,
    OutOfDiskError,
    OutOfMemoryError,
    SandboxError,
    StepTimeoutError,
)
from rocbase.units import count, size
from rocwright import sandbox
from rocwright.catalog.folders import DATA
from rocwright.config import CACHE_BYTES, config
from rocwright.diagnosis.explain import Watch, add_known, excerpt, where_of
from rocwright.diagnosis.read_log import MOST_LINES
from rocwright.execution import kept_tree, shard_caches, shared_cache
from rocwright.execution.collect import LOG, cache_statistics, collect
from rocwright.execution.compiler_cache import NONE, Lent, lend, trusted_signers
from rocwright.execution.context import ActionResult, Context
from rocwright.execution.jobs.forms import FIFO, JobsRequest, numbers
from rocwright.execution.jobs.join import join
from rocwright.execution.jobs.tokens import NAME as TOKENS
from rocwright.execution.missing_packages import looked_up
from rocwright.execution.progress import GOES_ON
from rocwright.execution.script import script_of, started_command
from rocwright.execution.workspace import CCACHE
from rocwright.model.step_environment import BUILD, FIXED, IN, OUT, SOURCE
from rocwright.model.steps import RunAction, Step
from rocwright.sandbox.model import Ended, Mount, SandboxJob, SandboxOutcome
from rocwright.sandbox.stall import SECONDS as STALL
from rocwright.sandbox.untrusted import Untrusted
from rocwright.sources.archive import left_out, unpack
from rocwright.sources.bases.roots import unpacked_root
from rocwright.store.model import verified

if TYPE_CHECKING:
    from rocwright.diagnosis.diagnose import Diagnosis, FailurePlace

GUARDS = "/rocwright"
# Where the wheels among the inputs are installed: an environment on top of the root's own Python.
ENVIRONMENT = f"{BUILD}/env"
# Lines that are kept of what a guard says; what it looks at is hostile, and may say more.
MOST_SAID = 1000

_OF_THE_CACHE = ("CCACHE_NAMESPACE", "CCACHE_MAXSIZE", "CCACHE_DISABLE", shard_caches.READS)
_STALLED = f"; it was thrashing: for {STALL:.0f} s it only re-read evicted page cache"

_MAYBE_MEMORY = (
    "they were killed, perhaps by the kernel for lack of memory: it killed some process of this machine "
    "meanwhile, but the step has no cgroup of its own that would tell"
)


def environment(action: RunAction, jobs: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a run step. What depends on the machine (caches, and `jobs`, the variables
    that say how many processes there may be) changes no output."""
    machine_variables = {
        "CCACHE_DIR": CCACHE,
        # not the ccache.conf in that folder, which any step could write
        "CCACHE_CONFIGPATH": "/dev/null",
        "CCACHE_COMPILERCHECK": "content",
        "CCACHE_MAXSIZE": _ccache_size(CACHE_BYTES),
        "CCACHE_STATSLOG": f"{BUILD}/{LOG}",
        "CCACHE_TEMPDIR": "/tmp/ccache",  # noqa: S108 - the sandbox's own
        "CCACHE_UMASK": "000",
    }
    env = FIXED | machine_variables | dict(jobs) | action.env
    return env | ({"PATH": f"{ENVIRONMENT}/bin:{env['PATH']}"} if action.own_python else {})


def _ccache_size(size: int) -> str:
    """Bytes as ccache takes them."""
    return f"{size // 1024**2}MiB"


def lay_out(context: Context) -> None:
    """Unpack the step's tree into its workspace."""
    for output in context.inputs.get("src", ()):
        path = verified(context.store, output.sha256)
        dropped = unpack(path, context.workspace.source, filename=output.filename, wrapped=False)
        for line in left_out(output.filename, dropped):
            context.on_line(line)


@contextlib.contextmanager
def lent_cache(context: Context) -> Iterator[Lent]:
    """The compiler cache of the step's trust domain, or none; a step without a domain has one of its own."""
    step = context.step
    if step is None or not context.options.compiler_cache:
        yield NONE
    else:
        trusted = trusted_signers()
        with lend(context.home, step.domain or step.key, trusted, context.on_line) as cache:
            yield cache


def prepare(action: RunAction, context: Context, cache: Lent, shared: Mount | None = None) -> SandboxJob:
    """The sandbox of a run step: the root, the tree in /build/src, the inputs under /in."""
    root_digest = context.inputs["root"][0].sha256
    root = unpacked_root(context.store, root_digest, context.home.roots, context.on_line)
    workspace = context.workspace
    mounts = [
        Mount(source=workspace.build, target=BUILD, writable=True),
        Mount(source=workspace.out, target=OUT, writable=True),
        Mount(source=DATA / "guards", target=GUARDS),
    ]
    for name, outputs in context.inputs.items():
        if name in ("root", "src"):
            continue
        for output in outputs:
            path = verified(context.store, output.sha256)
            mounts.append(Mount(source=path, target=f"{IN}/{name}/{output.filename}"))
    if cache.folder is not None:
        mounts.append(Mount(source=cache.folder, target=CCACHE, writable=True))
    mounts += [*shard_caches.mounts(context), *([shared] if shared else [])]
    for folder in (workspace.build, workspace.out):
        sandbox.make_writable(folder)
    env = environment(action, numbers(_jobs_request(context)).env)
    env["CCACHE_NAMESPACE"] = _compiler_namespace(root, action.compiler_reads)
    env["CCACHE_MAXSIZE"] = _ccache_size(config().compiler_cache_size)
    if cache.folder is None:
        env["CCACHE_DISABLE"] = "1"
    storages = [*shard_caches.storages(context), *([shared_cache.storage(shared)] if shared else [])]
    if storages:
        env[shard_caches.READS] = " ".join(storages)
    if context.server is not None:
        mounts.append(Mount(source=context.server / TOKENS, target=FIFO, writable=True))
    return SandboxJob(
        root=root,
        argv=("/bin/sh", "-eu", "-c", "\n".join(action.commands)),
        env=env,
        workdir=SOURCE,
        mounts=tuple(mounts),
        memory=context.memory,
        seconds=context.limit,
    )


def _compiler_namespace(root: Path, globs: tuple[str, ...]) -> str:
    """A name that changes with files that compilers read unseen by ccache (HIP's device libraries)."""
    hasher = hashlib.sha256()
    for pattern in globs:
        for path in sorted(root.glob(pattern)):
            if path.is_file():
                hasher.update(f"{path.relative_to(root)}\0".encode())
                with path.open("rb") as file:
                    hasher.update(hashlib.file_digest(file, "sha256").digest())
    return hasher.hexdigest()[:16]


def run_run(action: RunAction, context: Context) -> ActionResult:
    """Guard, run, collect. Raises CompileError, OutOfMemoryError, StepTimeoutError, CheckError, ..."""
    if context.kept is None:
        lay_out(context)
    else:
        ended, all_ = context.kept.ended, len(action.commands)
        context.on_line(f"{GOES_ON}: {ended} of its {all_} commands had ended")
    with lent_cache(context) as cache:
        return _run(action, context, cache)


def _run(action: RunAction, context: Context, cache: Lent) -> ActionResult:
    shared = shared_cache.shared_mount(context, cache)
    signers = shared_cache.note_signers(context, cache, shared)
    job, tree_note = prepare(action, context, cache, shared), context.kept
    engine = sandbox.pick(context.options.engine, context.home.probes)
    context.on_line(f"sandbox {engine.name}, {count(context.jobs, 'job')}")
    shard_caches.unpack(engine, job, context)
    if tree_note is None:
        install(engine, job, action, context)
        for package in action.guard:
            guard(engine, job, package, context)
    opens, ended = "", tree_note.ended if tree_note else 0
    if context.server is not None:
        job, opens = share(engine, job, action, context, context.server)
    job = replace(job, argv=(*job.argv[:-1], script_of(action, job.env, opens, ended)))
    last: deque[str] = deque(maxlen=12)
    watch = Watch(partial(_place_of, context.step))
    tree = _noting(context, cache, signers)

    def note(line: str) -> None:
        text, number = started_command(line, action.commands)
        if text or number is None:
            last.append(text)
            watch.line(text)
            context.on_line(text)
        if number is not None:
            # what a command says does not have it written again and again
            if number > tree.kept.ended:
                tree.note(ended=number)
            context.on_line(f"$ {action.commands[number]}")

    try:
        outcome = sandbox.run(engine, job, note)
    except InputError:
        # the folder to begin in is gone
        kept_tree.drop(context.workspace)
        raise
    if not outcome.ok:
        raise cut_short(outcome, job, last) or _failed(outcome, watch.told(), last, context)
    step_name, workspace = context.step.name if context.step else "the step", context.workspace
    counts = cache_statistics(Untrusted(workspace.build, step_name))
    try:
        outputs = collect(Untrusted(workspace.out, step_name), action.outputs, workspace.scratch / "taken")
    except ExplainedError:
        # some of them may be gone from where the commands left them
        kept_tree.drop(workspace)
        raise
    return ActionResult(
        outputs=outputs,
        engine=engine.name,
        peak_memory=outcome.peak_memory,
        compiler_cache=counts,
        cache=cache.use.model_copy(update={"state": "filled"}) if tree.kept.cached else cache.use,
        resumed=tree.kept.resumed,
        shards=shard_caches.named(context),
        cache_signers=signers,
    )


def _noting(context: Context, cache: Lent, signers: tuple[str, ...]) -> kept_tree.Noting:
    """The note of the tree, written where the step may go on in it."""
    step = context.step
    tree = context.kept or kept_tree.begin(step.key if step else "", context.content_key)
    cached = tree.cached or cache.use.state == "filled" or bool(context.shards) or bool(signers)
    tree = tree.model_copy(update={"cached": cached, "others": signers})
    writes = step is not None and isinstance(step.action, RunAction) and bool(step.action.resume)
    return kept_tree.Noting(context.workspace, tree, writes=writes)


def _failed(
    outcome: SandboxOutcome, diagnosis: Diagnosis, last: Iterable[str], context: Context
) -> ExplainedError:
    """The error of commands that ended by themselves; a tree in which they had gone on is not kept again."""
    if context.kept is not None and outcome.ended is Ended.EXITED and not outcome.maybe_memory:
        kept_tree.drop(context.workspace)
        context.on_line("it had gone on in a kept tree; the next attempt starts clean")
    return _explain(outcome, looked_up(diagnosis, context), last)


def _place_of(step: Step | None) -> FailurePlace:
    from rocwright.diagnosis.diagnose import FailurePlace

    return FailurePlace() if step is None else where_of(step)


def share(
    engine: sandbox.Engine, job: SandboxJob, action: RunAction, context: Context, server: Path
) -> tuple[SandboxJob, str]:
    """The job with its tools as clients of the job server, as far as they know how; and what its shell is to
    open before its commands."""
    form = join(engine, job, server, _jobs_request(context), context.on_line)
    cache_env = {name: job.env[name] for name in _OF_THE_CACHE if name in job.env}
    return replace(job, env=environment(action, form.env) | cache_env), form.opens


def _jobs_request(context: Context) -> JobsRequest:
    return JobsRequest(jobs=context.jobs, memory=context.memory, component=context.component)


def install(engine: sandbox.Engine, job: SandboxJob, action: RunAction, context: Context) -> None:
    """Install the wheels among the inputs, without a network. Raises CheckError where that fails."""
    if not action.own_python:
        return
    packages = ", ".join(action.install) or action.python
    context.on_line(f"installing {packages} into {ENVIRONMENT}")
    script = install_script(action)
    lines: deque[str] = deque(maxlen=20)

    def note(line: str) -> None:
        lines.append(line)
        context.on_line(line)

    outcome = sandbox.run(engine, replace(job, argv=("/bin/sh", "-eu", "-c", script)), note)
    if not outcome.ok:
        raise cut_short(outcome, job, lines) or CheckError(
            f"{packages} cannot be installed for the build",
            cause=next(
                (line for line in lines if line.startswith("ERROR")), f"pip ended with status {outcome.code}"
            ),
            detail="\n".join(lines),
            next_step="check that the wheel is for this Python (the usual cause): rocwright shell "
            "STEP opens the sandbox",
        )


def install_script(action: RunAction) -> str:
    """The commands that install the wheels among the inputs into an environment, by the pip among them."""
    python = action.python or "python3"
    create_venv = f"{python} -m venv --without-pip --system-site-packages {ENVIRONMENT}"
    if not action.install:
        return create_venv
    wheels = " ".join(f"{IN}/{name}/*.whl" for name in action.install)
    return f"""{create_venv}
for pip in {IN}/*/pip-*.whl; do :; done
exec {python} $pip/pip --python {ENVIRONMENT}/bin/python install --no-index --no-deps --no-compile {wheels}"""


def guard(engine: sandbox.Engine, job: SandboxJob, package: str, context: Context) -> None:
    """Stop before compiling unless exactly one working copy of `package` is found. Raises CheckError."""
    context.on_line(f"guard: one {package}, and it imports")
    lines: deque[str] = deque(maxlen=MOST_SAID)
    words = ("python3", f"{GUARDS}/single_package.py", package, "--workdir", job.workdir)
    outcome = sandbox.run(engine, replace(job, argv=words), lines.append)
    for line in lines:
        context.on_line(line)
    if not outcome.ok:
        raise cut_short(outcome, job, lines) or CheckError(
            next((line.partition("] ")[2] for line in lines if line.startswith("error[")), "")
            or f"{package} cannot be built against",
            cause=_labelled(lines, "cause") or f"the guard of {package} ended with {outcome.code}",
            detail="\n".join(list(lines)[:60]),
            next_step=_labelled(lines, "next") or "read the guard's messages above",
            subject=package,
        )


def _labelled(lines: Iterable[str], label: str) -> str:
    return next(
        (line.strip().removeprefix(label).strip() for line in lines if line.strip().startswith(label)), ""
    )


def cut_short(outcome: SandboxOutcome, job: SandboxJob, last: Sequence[str]) -> ExplainedError | None:
    """The error of what the machine ended, for memory or time; None for what ended by itself.

    It goes by the kernel's counts and the clock: what the output says of it does not matter.
    """
    error: ExplainedError
    match outcome.ended:
        case Ended.OUT_OF_MEMORY:
            limit = f"its limit was {size(job.memory)}, " if job.memory else ""
            took = f"it took up to {size(outcome.peak_memory)}, " if outcome.peak_memory else ""
            error = OutOfMemoryError(
                "the step was killed because it exceeded its memory limit",
                cause=f"{limit}{took}with {job.env['JOBS']} jobs{_STALLED if outcome.stalled else ''}",
                detail="\n".join(list(last)[-MOST_LINES:]),
                next_step=f"rocwright build --jobs {max(1, int(job.env['JOBS']) // 2)}",
            )
            error.peak_memory = outcome.peak_memory
        case Ended.TIMED_OUT:
            error = StepTimeoutError(
                f"the step did not end within {(job.seconds or 0) / 60:.0f} minutes",
                cause="it hangs, or this machine is much slower than the recipe assumes",
                detail="\n".join(last),
                next_step="rocwright logs STEP shows the last lines; raise `limit` in the recipe's "
                "[resources]",
            )
        case Ended.TOO_MANY_PROCESSES:
            error = SandboxError(
                f"the step was killed because it started more than {job.processes:,} processes at once",
                cause="it keeps starting processes, or does not wait for those that it started",
                detail="\n".join(list(last)[-MOST_LINES:]),
                next_step="rocwright logs STEP shows the last lines; rocwright shell STEP opens its sandbox",
            )
        case Ended.EXITED | Ended.SIGNALLED:
            return None
    return error


def _explain(outcome: SandboxOutcome, diagnosis: Diagnosis, last: Iterable[str]) -> ExplainedError:
    full = [hit for hit in diagnosis.known if hit.issue.failure is FailureClass.OUT_OF_DISK]
    if full:
        return OutOfDiskError(
            "the disk filled up during the build",
            cause=full[0].place.text,
            next_step="free some disk space (rocwright clean --dry-run lists what can be removed), "
            "then run again",
        )
    how = "status" if outcome.ended is Ended.EXITED else "signal"
    first_error = (
        diagnosis.first.text
        if diagnosis.first
        else "no line of the log looks like an error; the last lines are below"
    )
    error = CompileError(
        f"the build commands ended with {how} {outcome.code}",
        cause=_MAYBE_MEMORY if outcome.maybe_memory else first_error,
        detail=excerpt(diagnosis, last),
        next_step="rocwright logs STEP shows the whole log; rocwright shell STEP opens its sandbox",
    )
    error.peak_memory = outcome.peak_memory
    add_known(error, diagnosis)
    return error
