"""Running what was built as a server on this machine, and what runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from rocwright.api.gpus import AUTO, chosen_targets, gpus_here, silent

if TYPE_CHECKING:
    from subprocess import Popen

    from rocwright.catalog.server import FirstRequest
    from rocwright.execution.progress import Progress
    from rocwright.home import Home
    from rocwright.serving.launch import Launch
    from rocwright.serving.model import Place, RunRequest, ServerState

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedServer:
    """A server that was started, or that would be, and the key that it asks for ("": none).

    `process` is its first process where it was started by this one; `request` is a first thing to ask it;
    `seconds` it took until it could be used.
    """

    server: ServerState
    key: str = ""
    request: FirstRequest | None = None
    seconds: float = 0.0
    process: Popen[bytes] | None = None
    folder: Path


def run_server(
    stack: str = "",
    *,
    model: str = "",
    beside: Mapping[str, str] = MappingProxyType({}),
    trust_model: bool = False,
    gpu: str = AUTO,
    base: str = "",
    versions: Mapping[str, str] = MappingProxyType({}),
    optional: Sequence[str] = (),
    accept_missing: Sequence[str] = (),
    name: str = "",
    host: str = "127.0.0.1",
    port: int = 0,
    place: Place = "host",
    on: str = "",
    key: bool = True,
    options: Sequence[str] = (),
    variables: Mapping[str, str] = MappingProxyType({}),
    require: Sequence[str] = (),
    detach: bool = True,
    dry: bool = False,
    engine: str | None = None,
    home: str | Path | None = None,
    progress: Progress | None = None,
    agree: Say = silent,
    say: Say = silent,
) -> StartedServer:
    """Run a stack's server, and wait until it can be used; what it needs is fetched or built before.

    `versions` pins components of the stack, `optional` adds such as are not built otherwise, and
    `accept_missing` names libraries of ROCm that may lack code for the GPU, as in `request`. Without a
    `stack` it is the one of which most was seen on the GPU; `gpu` is the machine's by default, or the
    fallback of gpu_names.toml where there is none. `model` is a file, a folder, `hf:OWNER/NAME/FILE` of a
    hub, or "tiny" for the one that is made here; `beside` are files that belong to it, by the names that
    the recipe has for them; pickled weights are refused unless `trust_model`. `place` is host (bubblewrap,
    with the base from the store), podman or docker; `on` says what it computes on: gpu, cpu, or what else
    its recipe knows. Where `host` is not the loopback, a key is made and asked for, unless `key` is False.
    `options` and `variables` go to the server's program, and `require` are Python packages (PEP 508) that the
    environment of a stack of wheels gets in addition. Without `detach` it ends with this process. With
    `dry` nothing is built, written or started: the answer has the command. `agree` hears what a long build
    needs before it starts, and may raise.

    Raises InputError for what is not known, a name or port in use, OutOfMemoryError for a model that does not
    fit, CheckError where this machine cannot do it or the server ends while it loads, and what builds raise.
    """
    from rocwright.serving import known, state
    from rocwright.serving.asked import asked_for, environment_words
    from rocwright.serving.model import RunRequest

    home_of = _home(home)
    if name:
        state.check_name(name)
    request = RunRequest(
        model=model,
        name=name,
        host=host,
        port=port,
        place=place,
        on=on,
        key=key,
        options=tuple(options),
        variables=tuple(variables.items()),
    )
    paths = [str(Path(path).expanduser().absolute()) for path in (model, *beside.values())]
    of_stack = environment_words(stack, gpu, base, versions, optional, accept_missing, require)
    digest = asked_for([*of_stack, trust_model, paths, *beside.items(), *astuple(request)])
    again = known.relaunch(home_of, digest, stays=detach, say=say) if stack and not dry else None
    if again is not None:
        return started(again, home_of, say)
    return _run_chosen(
        stack,
        request,
        digest,
        home_of,
        companions=beside,
        trust=trust_model,
        gpu=gpu,
        base=base,
        versions=versions,
        optional=optional,
        accept_missing=accept_missing,
        require=require,
        detach=detach,
        dry=dry,
        engine=engine,
        progress=progress,
        agree=agree,
        say=say,
    )


def _run_chosen(
    stack: str,
    request: RunRequest,
    digest: str,
    home: Home,
    *,
    companions: Mapping[str, str],
    trust: bool,
    gpu: str,
    base: str,
    versions: Mapping[str, str],
    optional: Sequence[str],
    accept_missing: Sequence[str],
    require: Sequence[str],
    detach: bool,
    dry: bool,
    engine: str | None,
    progress: Progress | None,
    agree: Say,
    say: Say,
) -> StartedServer:
    """Choose, check, build and start; what it came to is kept for the next start of the same."""
    from rocwright.api.projects import project as project_for
    from rocwright.catalog.load import the_catalog
    from rocwright.catalog.server import GPU
    from rocwright.execution.progress import PlainProgress
    from rocwright.plan.resolve.own import own_request
    from rocwright.serving import (
        check,
        choose,
        container,
        in_environment,
        known,
        laid,
        start,
        state,
    )
    from rocwright.serving.asked import asked_for, environment_words
    from rocwright.serving.model_file import may_last, model_of
    from rocwright.serving.own_fit import own_need
    from rocwright.serving.words import check_own
    from rocwright.verify.proven import ORIGIN

    catalog = the_catalog()
    local_gpus = gpus_here(catalog)
    words = environment_words(stack, gpu, base, versions, optional, accept_missing, require)
    own = own_request(Path.cwd(), stack, {}) if stack and gpu == AUTO else None
    gpu = own[1].gpu[0] if own is not None else gpu
    (target,) = (local_gpus[0],) if gpu == AUTO and local_gpus else chosen_targets(gpu, silent, catalog)
    lasts = bool(stack) and all(may_last(address) for address in (request.model, *companions.values()))
    named = stack or choose.best_stack(catalog, target, home, request.model)
    project = project_for(
        named,
        "" if own is not None else target,
        base,
        home=home.path,
        extra=optional,
        versions=versions,
        accept_missing=accept_missing,
        say=say,
    )
    stack = project.request.stack
    component = choose.served_component(project.catalog, stack)
    if component is None or component.server is None:
        raise laid.not_served(project)
    check_own(component.server, request.options, dict(request.variables))
    request = replace(request, name=request.name or named.partition(ORIGIN)[0])
    compute = choose.compute_for(component, target if target in local_gpus else "", request.on, dry=dry)
    messages = [
        *filter(None, (check.unknown_cards(catalog) if gpu == AUTO else "",)),
        f"stack: {stack}, for {target}" + ("" if target in local_gpus else ", which is not in this machine"),
        f"on: {compute.summary}",
        *(f"warning: {warning}" for warning in component.server.warnings),
    ]
    for line in messages:
        say(line)
    in_environment.check_place(component, stack, request, require)
    laid.check_place(component, request.place)
    container.check_works(request.place)
    if dry:
        start.check_key(component.server, request)
    else:
        port = start.check_wanted(component.server, request, state.servers(home), say)
        lasts = lasts and port == (request.port or component.server.port)
        request = replace(request, port=port)
    reporter = progress or PlainProgress()
    model = model_of(
        request.model,
        component.server,
        home,
        companions=companions,
        trust=trust,
        bring=not dry,
        say=say,
        progress=reporter,
    )
    files = known.stamps(model.files) if model is not None else ()
    machine = check.machine_here(catalog, home)
    # who asks for the processor needs no right to the card
    card = target in local_gpus and (compute.name == GPU or not request.on)
    if card:
        check.check_machine(machine, catalog, stack, target, say)
    room = check.room_here(machine, target if compute.name == GPU else "")
    contained = request.place != "host"

    def fits() -> None:
        if model is not None:
            check.check_fit(model, room, None, silent)

    if component.kind in in_environment.INSTALLED:
        fits()
        launch = in_environment.launch_of(
            project,
            component,
            request,
            model,
            compute,
            reporter,
            digest=asked_for(words),
            require=require,
            engine=engine,
            dry=dry,
            stays=detach,
            agree=agree,
        )
        return _unstarted(launch, home) if dry else started(launch, home, say)
    product = laid.product_of(
        project, engine, reporter, contained=contained, build=not dry, before_build=fits, agree=agree
    )
    memory = 0
    if model is not None:
        need = None if contained or dry else own_need(product, model, compute, reporter)
        memory = check.check_fit(model, room, need, say)
    launch = start.prepare(product, request, model, compute, reporter, stays=detach, dry=dry)
    if dry:
        return _unstarted(launch, home)
    running = started(launch, home, say)
    if lasts and files is not None and (memory or model is None):
        known.remember(
            home, digest, launch, project.lock_path, files, memory=memory, card=card, messages=messages
        )
    return running


def _unstarted(launch: Launch, home: Home) -> StartedServer:
    from rocwright.serving.state import folder_of

    folder = folder_of(home, launch.state.name)
    return StartedServer(server=launch.state, request=launch.server.request, folder=folder)


def started(launch: Launch, home: Home, say: Say) -> StartedServer:
    """Start what was made ready, and wait until it can be used. Raises CheckError where it ends before."""
    from rocwright.serving import launch as launching
    from rocwright.serving import ready, state, stop

    server, process = launching.start(launch, home)
    try:
        say(f"starting {server.name} on {server.url}")
        log = state.log_of(home, server.name)
        alive = launching.living(process)
        seconds = ready.wait_until_ready(server, launch.server.seconds, alive, log, say)
    except BaseException:
        stop.stop(home, server.name)
        process.wait()
        raise
    return StartedServer(
        server=server,
        key=launch.key,
        request=launch.server.request,
        seconds=seconds,
        process=process,
        folder=state.folder_of(home, server.name),
    )


def ask_server(running: StartedServer) -> str:
    """The answer of a running server to the first request of its recipe; "" where the recipe has none.

    Raises CheckError where it does not answer, or not in the shape that the recipe tells.
    """
    from rocwright.serving.ask import ask

    return ask(running.server, running.request, running.key) if running.request is not None else ""


def attend_server(running: StartedServer, *, home: str | Path | None = None) -> None:
    """Wait until a server ends that was started without `detach`, and end it where this process is asked to
    end; nothing of it is left. Raises CheckError, or what its log says, where it ended by itself."""
    from rocwright.serving.attend import attend

    if running.process is None:
        raise ValueError("it was not started by this process")
    attend(_home(home), running.server, running.process)


def servers(home: str | Path | None = None) -> list[tuple[ServerState, bool]]:
    """The servers that were started here and not stopped, by name, and whether each runs."""
    from rocwright.serving import state

    return [(server, state.runs(server)) for server in state.servers(_home(home))]


def stop_server(name: str, *, home: str | Path | None = None) -> bool:
    """End a server and remove what it left; whether it still ran.

    Raises InputError where none has that name, SandboxError where it does not end.
    """
    from rocwright.serving import stop

    return stop.stop(_home(home), name)


def restart_server(name: str, *, home: str | Path | None = None, say: Say = silent) -> StartedServer:
    """End a server and start it with the same command; its key stays. Raises as `run_server` does."""
    from rocwright.serving import restart

    place = _home(home)
    return started(restart.again(place, name), place, say)


def server_log(name: str, *, home: str | Path | None = None) -> list[Path]:
    """The files, the newest last, of what a server prints that was started here; none where there is none."""
    from rocwright.serving import logs, state

    return logs.files_of(state.log_of(_home(home), name)) if state.is_name(name) else []


def follow_log(path: str | Path, *, home: str | Path | None = None) -> Iterator[str]:
    """The text of a log and what is added to it; that of a server ends when the server does."""
    from rocwright.execution.follow_log import follow
    from rocwright.serving import state
    from rocwright.serving.logs import is_written

    place, path = _home(home), Path(path)
    server = state.read(place, path.parent.name) if path.parent.parent == place.servers else None
    return follow(path, lambda: server is None or state.runs(server) or is_written(path))


def _home(home: str | Path | None) -> Home:
    from rocwright.home import Home

    return Home(Path(home).absolute()) if home is not None else Home.default()
