"""Starts a server: what it runs, where, and what a person would type for the same."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
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
    server: Server, run_request: RunRequest, home_servers: list[ServerState], say: Callable[[str], None]
) -> int:
    """The port to listen on: the product's own, or the next free one, where none is named.

    Raises InputError for what cannot be, before anything is built: a name or a port that is taken, or an
    address for others without a key."""
    running = [entry for entry in home_servers if state.runs(entry)]
    if any(entry.name == run_request.name for entry in running):
        raise state.name_in_use(run_request.name)
    check_key(server, run_request)
    if not run_request.port:
        return free_port(run_request.host, server.port, running, say)
    check_free(run_request.host, run_request.port, running)
    return run_request.port


def check_key(server: Server, run_request: RunRequest) -> None:
    """Raises InputError where others would reach a server that asks for no key, which nobody allowed."""
    if run_request.key and not server.can_ask_for_key and not is_loopback(run_request.host):
        raise InputError(
            f"others could use {run_request.name} without a key",
            cause=f"it cannot ask for one, and --host {run_request.host} lets others reach it",
            next_step="leave --host out, or allow it with --no-auth",
        )


def prepare(
    product: Product,
    run_request: RunRequest,
    model: Model | None,
    compute: Compute,
    progress: Progress,
    *,
    stays: bool,
    dry: bool = False,
) -> Launch:
    """Lay everything out that a server runs on, in its own folder. Nothing is started yet, and of a `dry`
    run nothing is written."""
    with nullcontext() if dry else claimed(product.project.home, run_request.name):
        return _launch(product, run_request, model, compute, progress, stays=stays, dry=dry)


def _launch(
    product: Product,
    run_request: RunRequest,
    model: Model | None,
    compute: Compute,
    progress: Progress,
    *,
    stays: bool,
    dry: bool,
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
        on=compute,
        model=model,
        options=run_request.options,
        env=dict(run_request.variables),
    )
    port = run_request.port or server.port
    mark = new_mark(run_request.name)
    contained = run_request.place != "host"
    keyed = run_request.key and not is_loopback(run_request.host)
    mounts = [
        Mount(source=_cache_of(product), target=CACHE, writable=True),
        *service.model_mounts,
        *((Mount(source=state.key_of(home, run_request.name), target=KEY),) if keyed else ()),
        *service.shown_of_catalog(product.project.catalog),
        *service.kept(home),
    ]
    key = "" if dry else _lay_out(product, service, run_request, mounts, keyed=keyed)
    devices = devices_for(product.component, compute)
    env = environment_for(product.component, product.project.catalog, product.lock, compute)
    job = None
    if contained:
        archive, image = image_of(product)
        loaded = (
            container.digests(archive)[0] if dry else container.load(run_request.place, archive, home.work)
        )
        places = service.places(ANY, server.port, image.prefix)
        words, env = service.words(places, keyed=keyed), env | service.variables(places)
        spec = container.Contained(
            name=mark,
            image=loaded,
            entrypoint=words[0],
            words=words[1:],
            env=env,
            mounts=mounts,
            devices=devices,
            host=run_request.host,
            port=port,
            inside=server.port,
        )
        argv, around = container.command(run_request.place, spec), container.environment(mark)
    else:
        places = service.places(run_request.host, port, ARTIFACT)
        words, env = service.words(places, keyed=keyed), env | service.variables(places)
        if product.component.kind != IMAGE:
            mounts.append(Mount(source=program_of(product, progress.say, dry=dry), target=ARTIFACT))
        job = SandboxJob(
            root=root_of(product, progress, dry=dry),
            argv=words,
            env=env,
            mounts=tuple(mounts),
            network=True,
            devices=devices,
        )
        ready = boxed(job, home, run_request.name, mark, stays=stays, dry=dry)
        argv, around = ready.argv, dict(ready.env)
    server_state = service.state(home, run_request, port, keyed=keyed, mark=mark, command=argv)
    return Launch(state=server_state, argv=argv, env=around, server=server, key=key, job=job)


def _lay_out(
    product: Product, service: Service, run_request: RunRequest, mounts: Sequence[Mount], *, keyed: bool
) -> str:
    """Make the folders that a server writes to, and its key; gives the key, "" for none."""
    home, cache = product.project.home, _cache_of(product)
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.utime(cache)  # its last use, for clean
    service.make_kept(home)
    key = ""
    if keyed:
        key, key_file = make_key(home, run_request.name)
        sandbox.make_writable(key_file)
    for mount in mounts:
        if mount.writable:
            sandbox.make_writable(mount.source)
    return key


def devices_for(component: Component, compute: Compute) -> tuple[str, ...]:
    """The device nodes that a product opens to compute there."""
    if compute.name != GPU:
        return ()
    serve = component.serve or Serve()
    return tuple(name for name in serve.devices if Path(name).exists())


def _cache_of(product: Product) -> Path:
    """The folder in which a product keeps what it compiles for a GPU, from run to run."""
    return product.project.home.programs / f"{product.component.name}-{product.version}.cache"
