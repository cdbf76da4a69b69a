"""Run one step given nothing but the store: its definition, its inputs, and where its outputs go."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from rocbase.errors import ExplainedError, InputError, InternalError
from rocwright.execution import kept_tree
from rocwright.execution.context import ActionResult, Context
from rocwright.execution.options import STEP_DEFAULTS, StepOptions
from rocwright.execution.workspace import Workspace, spare_the_users_work
from rocwright.home import Home
from rocwright.model.architecture import cannot_build
from rocwright.model.steps import BaseAction, FetchAction, FilePin, ImageAction, RunAction, Step, TreeAction
from rocwright.store.leases import locked
from rocwright.store.model import Output, Record, Store, finished, is_key, verified


def execute(
    key: str,
    store: Store,
    home: Home,
    on_line: Callable[[str], None],
    *,
    jobs: int = 1,
    memory: int | None = None,
    options: StepOptions = STEP_DEFAULTS,
    server: Path | None = None,
    shards: Sequence[str] = (),
) -> Record:
    """Make sure that the store has what `key` stands for, and give its record.

    Two processes that want the same key wait for each other; the second finds the first one's outputs. With
    `options.resume`, a step that was cut short goes on in its kept tree, where its recipe says that it can.
    `shards` are the keys of its shards; those that are not in the store are done without.
    Raises whatever the step's action raises; InputError where the store has not what the step needs.
    """
    step = load_step(store, key)
    with locked(store, key):
        existing = finished(store, key)
        # whoever made it may have been killed before others could find it
        if existing is not None and store.bring(key, here=False):
            on_line(f"{step.name}: already in the store")
            return existing
        inputs = resolve_inputs(store, step)
        content_key = step.content_key(
            {name: [output.known_by for output in outputs] for name, outputs in inputs.items()}
        )
        equivalent = finished(store, content_key)
        if equivalent is not None:
            on_line(f"{step.name}: its inputs are bit for bit those of an earlier run, nothing to do")
            return store.put_record(equivalent.model_copy(update={"key": key, "reused": content_key}))
        check_architecture(step)
        return _make(
            step,
            key,
            content_key,
            inputs,
            store,
            home,
            on_line,
            jobs,
            memory,
            options,
            server,
            shards,
        )


def check_architecture(step: Step) -> None:
    """Raise InputError where the programs of a step are for machines of another architecture than this."""
    if step.runs_on and (reason := cannot_build(step.runs_on)):
        raise InputError(
            f"{step.name}: this machine {reason}",
            cause=f"the step runs programs for {step.runs_on}",
            next_step=f"run it on a machine that is {step.runs_on}, with the same store: "
            f"rocwright exec-step {step.key} --store URL",
        )


def load_step(store: Store, key: str) -> Step:
    """The step of that key. Raises InputError where the store has none, or not what the key says."""
    definition = store.step(key) if is_key(key) else None
    if definition is None:
        raise InputError(
            f"the store at {store} has no step {key[:12]}",
            cause="no key that this machine trusts has planned it with this store",
            next_step="rocwright build, the right --store, or for another machine: rocwright trust add FILE",
        )
    try:
        step = Step.model_validate_json(definition)
    except ValidationError as error:
        raise InternalError(
            f"the definition of step {key[:12]} cannot be read",
            cause=str(error.errors()[0]["msg"]),
            next_step="rocwright build writes it again",
        ) from error
    if step.key != key:
        raise InternalError(
            f"the definition of step {key[:12]} has another key",
            cause="it was changed on disk, or written by another version of rocwright",
            next_step="rocwright build writes it again",
        )
    return step


def resolve_inputs(store: Store, step: Step) -> dict[str, list[Output]]:
    """The outputs behind each input's name. Raises InputError where a step before it is not done."""
    inputs: dict[str, list[Output]] = {}
    for item in step.inputs:
        record = finished(store, item.key)
        if record is None:
            raise InputError(
                f"{step.name} needs the step {item.key[:12]} ({item.name}), which is not in the store",
                cause="it has not been run yet, or its output was removed",
                next_step=f"rocwright exec-step {item.key} --store URL first, or rocwright build",
                subject=item.key,
            )
        outputs = list(record.outputs) if item.output == "*" else [record.output(item.output)]
        inputs.setdefault(item.name, []).extend(outputs)
    return inputs


def _make(
    step: Step,
    key: str,
    content_key: str,
    inputs: dict[str, list[Output]],
    store: Store,
    home: Home,
    on_line: Callable[[str], None],
    jobs: int,
    memory: int | None,
    options: StepOptions,
    server: Path | None,
    shards: Sequence[str],
) -> Record:
    spare_the_users_work([step], home)
    workspace = Workspace.of(home, key)
    tree = None
    if options.resume and isinstance(step.action, RunAction):
        tree = kept_tree.find(step, content_key, workspace, on_line, compiler_cache=options.compiler_cache)
    if tree is None:
        workspace.create()
    else:
        workspace.empty_scratch()
    context = Context(
        store=store,
        home=home,
        workspace=workspace,
        inputs=inputs,
        on_line=on_line,
        jobs=jobs,
        memory=memory,
        limit=step.resources.limit,
        options=options,
        parent=_parent(step, store),
        step=step,
        server=server,
        kept=tree,
        content_key=content_key,
        shards=[shard for shard_key in shards if (shard := finished(store, shard_key)) is not None],
    )
    started, clock = datetime.now(UTC), time.monotonic()
    try:
        produced = _perform(step, context)
    except ExplainedError as error:
        from rocwright.diagnosis.explain import explain, where_of

        explain(error, where_of(step))
        raise
    outputs = _keep(step, produced, store)
    record = Record(
        key=key,
        content_key=content_key,
        step=step.name,
        kind=step.kind,
        outputs=outputs,
        started=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=round(time.monotonic() - clock, 3),
        engine=produced.engine,
        tools=produced.tools,
        peak_memory=produced.peak_memory,
        jobs=jobs,
        compiler_cache=dict(produced.compiler_cache or {}),
        cache=produced.cache,
        notes=produced.notes,
        commits=dict(produced.commits or {}),
        resumed=produced.resumed,
        shards=produced.shards,
        cache_signers=produced.cache_signers,
    )
    if content_key != key:
        store.put_record(record.model_copy(update={"key": content_key}))
    stored = store.put_record(record)
    workspace.remove()
    return stored


def _parent(step: Step, store: Store) -> str:
    """The last commit of the tree from which the commands before this tree step started, or ""."""
    if not isinstance(step.action, TreeAction):
        return ""
    for item in step.inputs:
        producer = load_step(store, item.key) if store.step(item.key) else None
        if producer is not None and isinstance(producer.action, RunAction):
            trees = (store.record(source.key) for source in producer.inputs if source.name == "src")
            commits = [commit for record in trees if record for commit in record.commits.values()]
            return commits[-1] if commits else ""
    return ""


def _perform(step: Step, context: Context) -> ActionResult:
    match step.action:
        case FetchAction():
            from rocwright.execution.fetch import fetch

            fetch(
                step.action.files,
                context.store,
                context.home,
                context.workspace.scratch,
                context.on_line,
            )
            return ActionResult(outputs={})
        case BaseAction():
            return _make_base(step, step.action, context)
        case TreeAction():
            from rocwright.execution.tree import run_tree

            return run_tree(step.action, context)
        case RunAction():
            from rocwright.execution.run import run_run

            return run_run(step.action, context)
        case ImageAction():
            from rocwright.execution.image import run_image

            return run_image(step.action, context)


def _make_base(step: Step, action: BaseAction, context: Context) -> ActionResult:
    from rocwright.catalog.load import the_catalog
    from rocwright.execution.tally import count_packages
    from rocwright.sources.bases.debian import make_root
    from rocwright.sources.bases.image import make_image_root
    from rocwright.sources.bases.tools import Tools
    from rocwright.sources.signed_packages import require_signed

    packages = [
        (package.filename, verified(context.store, package.sha256))
        for package in context.inputs["packages"]
        if action.family == "debian" or package.sha256 != action.image
    ]
    target, scratch = context.workspace.out / "root.tar.zst", context.workspace.scratch
    on_line = count_packages(packages, the_catalog().managers.values(), context.on_line)
    tools = Tools(context.home, context.on_line)
    match action.family:
        case "debian":
            files = {package.sha256: package.filename for package in context.inputs["packages"]}
            require_signed(files, _pins(step, context.store), tools)
            content = make_root(action, packages, target, scratch, tools, on_line)
            outputs, contents = {"root": target}, {"root": content}
            return ActionResult(outputs=outputs, contents=contents, tools=tools.digest)
        case "image":
            content = make_image_root(action, packages, context.store, target, scratch, on_line)
    return ActionResult(outputs={"root": target}, contents={"root": content})


def _pins(step: Step, store: Store) -> list[FilePin]:
    """The files that the steps before a root fetched for it."""
    keys = [item.key for item in step.inputs if item.name == "packages"]
    fetches = [load_step(store, key).action for key in keys if store.step(key) is not None]
    return [pin for action in fetches if isinstance(action, FetchAction) for pin in action.files]


def _keep(step: Step, produced: ActionResult, store: Store) -> tuple[Output, ...]:
    if isinstance(step.action, FetchAction):
        # in the order of the key: a tree may depend on which archive is unpacked last
        return tuple(
            Output(name=pin.sha256, filename=pin.filename, sha256=pin.sha256, size=pin.size)
            for pin in sorted(step.action.files, key=lambda pin: (pin.filename, pin.sha256))
        )
    outputs = []
    for name, path in produced.outputs.items():
        filename = path.name
        digest, size = store.put_file(path, move=True)
        content = produced.contents.get(name, "")
        outputs.append(Output(name=name, filename=filename, sha256=digest, size=size, content=content))
    return tuple(outputs)
