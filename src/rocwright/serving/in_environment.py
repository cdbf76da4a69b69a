"""A server in the environment of a wheel stack: what its recipe names, or a notebook."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rocwheel.errors import InputError
from rocwheel.files.atomic import write_atomic
from rocwright.catalog.model import Component
from rocwright.catalog.server import GPU, Compute, Server
from rocwright.execution.progress import Progress
from rocwright.home import Home
from rocwright.project import Project
from rocwright.records.model import now
from rocwright.sandbox.model import Mount
from rocwright.serving import state
from rocwright.serving.environments import Environment
from rocwright.serving.launch import Launch, boxed, new_mark
from rocwright.serving.model import ServerState, Wanted, address
from rocwright.serving.models.model import Model
from rocwright.serving.ports import is_loopback
from rocwright.serving.prepare import prepare as environment_of
from rocwright.serving.program import program_job
from rocwright.serving.start import BESIDE, KEY, MODELS
from rocwright.serving.wheels import built_lock
from rocwright.serving.words import words_of

INSTALLED = ("wheel",)
"""Kinds of components that are installed into an environment, and served there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What is started in an environment: its server, what it is called in which version, what it computes on.

    `keyed` says that it asks for a key. `folder` is one of the user's, which it sees and may change; `env`
    and `shown` are variables and files beside those of the environment.
    """

    component: str
    version: str
    server: Server
    on: Compute
    keyed: bool
    folder: Path | None = None
    model: Model | None = None
    env: Mapping[str, str] = field(default_factory=dict)


def check_place(stack: str, wanted: Wanted) -> None:
    """Raise InputError for a container: an environment has no image here."""
    if wanted.place != "host":
        raise InputError(
            f"{stack} is not served in {wanted.place}",
            cause="its server runs in an environment of wheels, which has no image in a store",
            next_step=f"leave --in out, or rocwright run {stack} --image FOLDER, and start it in that image",
        )


def launch_of(
    project: Project,
    component: Component,
    wanted: Wanted,
    model: Model | None,
    on: Compute,
    progress: Progress,
    *,
    engine: str | None,
    stays: bool,
) -> Launch:
    """The server of a wheel stack, built and installed where it is not; nothing is started yet. Raises what a
    build raises."""
    server = component.server
    assert server is not None, "it was looked for by that"
    lock = built_lock(project, engine, progress, progress.say)
    environment = environment_of(project, lock, progress.say, progress, engine=engine)
    service = Service(
        component=component.name,
        version=next(one.version for one in lock.components if one.name == component.name),
        server=server,
        on=on,
        keyed=wanted.key and not is_loopback(wanted.host),
        model=model,
        env=on.env,
    )
    return prepare(environment, project.home, wanted, service, wanted.port or server.port, stays=stays)


def prepare(
    environment: Environment, home: Home, wanted: Wanted, service: Service, port: int, *, stays: bool
) -> Launch:
    """Lay everything out that it runs on; nothing is started yet. Raises InputError for a name that is taken,
    and for a folder that cannot be shown."""
    server, model = service.server, service.model
    left = state.read(home, wanted.name)
    if left is not None and state.runs(left):
        raise state.taken(wanted.name)
    state.forget(home, wanted.name)
    mark = new_mark(wanted.name)
    token = secrets.token_urlsafe(24) if service.keyed else ""
    state.claim(home, wanted.name)
    try:
        shown = _shown(model)
        if token:
            key = state.key_of(home, wanted.name)
            write_atomic(key, token, mode=0o600)
            shown = (*shown, Mount(source=key, target=KEY))
        places = {
            "host": wanted.host,
            "port": str(port),
            "model": f"{MODELS}/{model.path.name}" if model is not None else "",
            "artifact": "",
            "key_file": KEY,
            "page": "",
        }
        beside = _beside(model)
        words = words_of(server, places, environment.gpu, service.on, keyed=bool(token), beside=beside)
        env = {name: value.format_map(places) for name, value in server.env.items()} | dict(service.env)
        job = program_job(environment, home, words, env=env, folder=service.folder, more=shown)
        ready = boxed(job, home, wanted.name, mark, stays=stays)
    except BaseException:
        state.forget(home, wanted.name)
        raise
    kept = ServerState(
        name=wanted.name,
        stack=environment.stack,
        component=service.component,
        version=service.version,
        gpu=environment.gpu,
        base=environment.base,
        on=service.on.name,
        model=str(model.path) if model is not None else "",
        place="host",
        host=wanted.host,
        port=port,
        key=bool(token),
        health=server.health,
        addresses={one.name: f"{address(wanted.host, port)}{one.path}" for one in server.address},
        mark=mark,
        boot=state.boot_id(),
        begun=now(),
        command=ready.argv,
    )
    return Launch(state=kept, argv=ready.argv, env=ready.env, server=server, key=token)


def _beside(model: Model | None) -> dict[str, str]:
    found = model.companions if model is not None else {}
    return {name: f"{BESIDE}/{name}/{path.name}" for name, path in found.items()}


def _shown(model: Model | None) -> tuple[Mount, ...]:
    """The model's files as the server sees them: they are read, and not written."""
    if model is None:
        return ()
    own: Sequence[Mount] = [Mount(source=one.resolve(), target=f"{MODELS}/{one.name}") for one in model.paths]
    at = _beside(model)
    more = [Mount(source=path.resolve(), target=at[name]) for name, path in model.companions.items()]
    return (*own, *more)


def on_what(devices: Sequence[str]) -> Compute:
    """What a server computes on that finds that out by itself."""
    return Compute(name=GPU if devices else "cpu", summary="the GPU" if devices else "the processor")
