"""Starts a server: what it runs, where, and what a person would type for the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from rocbase.errors import InputError
from rocwright import sandbox
from rocwright.catalog.model import Component, Serve
from rocwright.catalog.server import GPU, Compute, Server
from rocwright.execution.progress import Progress
from rocwright.sandbox.model import Mount, SandboxJob
from rocwright.serving import container, state
from rocwright.serving.laid import Product, image_of, program_of, root_of
from rocwright.serving.launch import Launch, boxed, new_mark
from rocwright.serving.model import RunRequest, ServerState
from rocwright.serving.models.model import Model
from rocwright.serving.ports import check_free, free_port, is_loopback
from rocwright.serving.service import ARTIFACT, KEY, Service, claimed, make_key
from rocwright.serving.words import CACHE, IMAGE, environment_for

ANY = "0.0.0.0"  # noqa: S104 - within a container, of which one port is published


def check_wanted(
    server: Server, wanted: RunRequest, home_servers: list[ServerState], say: Callable[[str], None]
) -> int:
    """The port to listen on: the product's own, or the next free one, where none is named.

    Raises InputError for what cannot be, before anything is built: a name or a port that is taken, or an
    address for others without a key."""
    running = [one for one in home_servers if state.runs(one)]
    if any(one.name == wanted.name for one in running):
        raise state.taken(wanted.name)
    check_key(server, wanted)
    if not wanted.port:
        return free_port(wanted.host, server.port, running, say)
    check_free(wanted.host, wanted.port, running)
    return wanted.port


def check_key(server: Server, wanted: RunRequest) -> None:
    """Raises InputError where others would reach a server that asks for no key, which nobody allowed."""
    if wanted.key and not server.can_ask_for_key and not is_loopback(wanted.host):
        raise InputError(
            f"others could use {wanted.name} without a key",
            cause=f"it cannot ask for one, and --host {wanted.host} lets others reach it",
            next_step="leave --host out, or allow it with --no-auth",
        )


def prepare(
    product: Product, wanted: RunRequest, model: Model | None, on: Compute, progress: Progress, *, stays: bool
) -> Launch:
    """Lay everything out that a server runs on, in its own folder. Nothing is started yet."""
    with claimed(product.project.home, wanted.name):
        return _launch(product, wanted, model, on, progress, stays=stays)


def _launch(
    product: Product,
    wanted: RunRequest,
    model: Model | None,
    on: Compute,
    progress: Progress,
    *,
    stays: bool,
) -> Launch:
    server, home, request = product.component.server, product.project.home, product.lock.request
    assert server is not None, "it was looked for by that"
    service = Service(
        stack=product.project.request.stack,
        component=product.component.name,
        version=product.version,
        gpu=request.gpu,
        base=request.base,
        server=server,
        on=on,
        model=model,
    )
    port = wanted.port or server.port
    mark = new_mark(wanted.name)
    contained = wanted.place != "host"
    mounts = [Mount(source=_cache(product), target=CACHE, writable=True), *service.model_mounts]
    key = ""
    if wanted.key and not is_loopback(wanted.host):
        key, key_file = make_key(home, wanted.name)
        sandbox.make_writable(key_file)
        mounts.append(Mount(source=key_file, target=KEY))
    mounts += service.shown_of_catalog(product.project.catalog)
    for one in service.kept(home):
        sandbox.make_writable(one.source)
        mounts.append(one)
    devices = devices_for(product.component, on)
    env = environment_for(product.component, product.project.catalog, product.lock, on)
    job = None
    if contained:
        archive, image = image_of(product)
        loaded = container.load(wanted.place, archive, home.work)
        places = service.places(ANY, server.port, image.prefix)
        words, env = service.words(places, keyed=bool(key)), env | service.variables(places)
        what = container.Contained(
            name=mark,
            image=loaded,
            entrypoint=words[0],
            words=words[1:],
            env=env,
            mounts=mounts,
            devices=devices,
            host=wanted.host,
            port=port,
            inside=server.port,
        )
        argv, around = container.command(wanted.place, what), container.environment(mark)
    else:
        places = service.places(wanted.host, port, ARTIFACT)
        words, env = service.words(places, keyed=bool(key)), env | service.variables(places)
        if product.component.kind != IMAGE:
            mounts.append(Mount(source=program_of(product, progress.say), target=ARTIFACT))
        job = SandboxJob(
            root=root_of(product, progress),
            argv=words,
            env=env,
            mounts=tuple(mounts),
            network=True,
            devices=devices,
        )
        ready = boxed(job, home, wanted.name, mark, stays=stays)
        argv, around = ready.argv, dict(ready.env)
    kept = service.state(home, wanted, port, keyed=bool(key), mark=mark, command=argv)
    return Launch(state=kept, argv=argv, env=around, server=server, key=key, job=job)


def devices_for(component: Component, on: Compute) -> tuple[str, ...]:
    """The device nodes that a product opens to compute there."""
    if on.name != GPU:
        return ()
    serve = component.serve or Serve()
    return tuple(name for name in serve.devices if Path(name).exists())


def _cache(product: Product) -> Path:
    """The folder in which a product keeps what it compiles for a GPU, from run to run."""
    home = product.project.home
    folder = home.programs / f"{product.component.name}-{product.version}.cache"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    sandbox.make_writable(folder)
    os.utime(folder)  # its last use, for clean
    return folder
