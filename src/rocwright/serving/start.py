"""Starts a server: what it runs, where, and what a person would type for the same."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from rocwheel.errors import InputError
from rocwheel.files.atomic import write_atomic
from rocwheel.toml.folders import holder
from rocwright import sandbox
from rocwright.catalog.model import Component, Serve
from rocwright.catalog.server import GPU, Compute, Server
from rocwright.execution.progress import Progress
from rocwright.records.model import now
from rocwright.sandbox.model import Job, Mount
from rocwright.serving import container, state
from rocwright.serving.laid import Product, image_of, program_of, root_of
from rocwright.serving.launch import Launch, boxed, new_mark
from rocwright.serving.model import ServerState, Wanted, address
from rocwright.serving.models.model import Model
from rocwright.serving.ports import check_free, free_port, is_loopback
from rocwright.serving.words import CACHE, environment_for, words_of

ARTIFACT, MODELS, BESIDE, KEY, PAGE = "/artifact", "/models", "/beside", "/run/key", "/page"
"""Where a server sees its program, its model and what belongs to that, its key and the page that it shows."""

ANY = "0.0.0.0"  # noqa: S104 - within a container, of which one port is published


def check_wanted(
    server: Server, wanted: Wanted, home_servers: list[ServerState], say: Callable[[str], None]
) -> int:
    """The port to listen on: the product's own, or the next free one, where none is named.

    Raises InputError for what cannot be, before anything is built: a name or a port that is taken, or an
    address for others without a key."""
    running = [one for one in home_servers if state.runs(one)]
    if any(one.name == wanted.name for one in running):
        raise state.taken(wanted.name)
    if wanted.key and not server.can_ask_for_key and not is_loopback(wanted.host):
        raise InputError(
            f"others could use {wanted.name} without a key",
            cause=f"it cannot ask for one, and --host {wanted.host} lets others reach it",
            next_step="leave --host out, or allow it with --no-auth",
        )
    if not wanted.port:
        return free_port(wanted.host, server.port, running, say)
    check_free(wanted.host, wanted.port, running)
    return wanted.port


def prepare(
    product: Product, wanted: Wanted, model: Model | None, on: Compute, progress: Progress, *, stays: bool
) -> Launch:
    """Lay everything out that a server runs on, in its own folder. Nothing is started yet."""
    server = product.component.server
    assert server is not None, "it was looked for by that"
    home = product.project.home
    _clear(product, wanted.name)
    state.claim(home, wanted.name)
    try:
        key = secrets.token_urlsafe(24) if wanted.key and not is_loopback(wanted.host) else ""
        if key:
            key_file = state.key_of(home, wanted.name)
            write_atomic(key_file, f"{key}\n", mode=0o600)
            sandbox.make_writable(key_file)
        launch = _launch(product, wanted, model, on, progress, key, stays=stays)
    except BaseException:
        state.forget(home, wanted.name)
        raise
    return launch


def _clear(product: Product, name: str) -> None:
    """Remove what an ended server of that name has left."""
    left = state.read(product.project.home, name)
    if left is not None and state.runs(left):
        raise state.taken(name)
    state.forget(product.project.home, name)


def _launch(
    product: Product,
    wanted: Wanted,
    model: Model | None,
    on: Compute,
    progress: Progress,
    key: str,
    *,
    stays: bool,
) -> Launch:
    server, home = product.component.server, product.project.home
    assert server is not None
    port = wanted.port or server.port
    mark = new_mark(wanted.name)
    contained = wanted.place != "host"
    mounts, job = [Mount(source=_cache(product), target=CACHE, writable=True)], None
    if model is not None:
        mounts += [Mount(source=one.resolve(), target=f"{MODELS}/{one.name}") for one in model.paths]
    found = model.companions if model is not None else {}
    beside = {name: f"{BESIDE}/{name}/{path.name}" for name, path in found.items()}
    mounts += [Mount(source=path.resolve(), target=beside[name]) for name, path in found.items()]
    if key:
        mounts.append(Mount(source=state.key_of(home, wanted.name), target=KEY))
    if server.page:
        mounts.append(Mount(source=_page(product, server.page), target=PAGE))
    places = {
        "artifact": ARTIFACT,
        "model": f"{MODELS}/{model.path.name}" if model is not None else "",
        "host": ANY if contained else wanted.host,
        "port": str(server.port if contained else port),
        "key_file": KEY,
        "page": PAGE,
    }
    devices = devices_for(product.component, on)
    env = environment_for(product.component, product.project.catalog, product.lock, on)
    if contained:
        archive, image = image_of(product)
        loaded = container.load(wanted.place, archive)
        places["artifact"] = image.prefix
        words = words_of(server, places, product.lock.request.gpu, on, keyed=bool(key), beside=beside)
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
        words = words_of(server, places, product.lock.request.gpu, on, keyed=bool(key), beside=beside)
        mounts.append(Mount(source=program_of(product, progress.say), target=ARTIFACT))
        job = Job(
            root=root_of(product, progress),
            argv=words,
            env=env,
            mounts=tuple(mounts),
            network=True,
            devices=devices,
        )
        ready = boxed(job, home, wanted.name, mark, stays=stays)
        argv, around = ready.argv, dict(ready.env)
    kept = ServerState(
        name=wanted.name,
        stack=product.project.request.stack,
        component=product.component.name,
        version=product.version,
        gpu=product.lock.request.gpu,
        base=product.lock.request.base,
        on=on.name,
        model=str(model.path) if model is not None else "",
        place=wanted.place,
        host=wanted.host,
        port=port,
        key=bool(key),
        health=server.health,
        addresses={one.name: f"{address(wanted.host, port)}{one.path}" for one in server.address},
        mark=mark,
        boot=state.boot_id(),
        begun=now(),
        command=argv,
    )
    return Launch(state=kept, argv=argv, env=around, server=server, key=key, job=job)


def devices_for(component: Component, on: Compute) -> tuple[str, ...]:
    """The device nodes that a product opens to compute there."""
    if on.name != GPU:
        return ()
    serve = component.serve or Serve()
    return tuple(name for name in serve.devices if Path(name).exists())


def _page(product: Product, name: str) -> Path:
    """The folder of the catalog with a page."""
    folders = product.project.catalog.folders
    folder = holder(name, folders)
    if folder is None:
        raise InputError(
            f"the catalog has no {name}",
            cause=f"the server of {product.component.name} shows that page",
            next_step="rocwright catalog check",
        )
    return folder / name


def _cache(product: Product) -> Path:
    """The folder in which a product keeps what it compiles for a GPU, from run to run."""
    home = product.project.home
    folder = home.programs / f"{product.component.name}-{product.version}.cache"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    sandbox.make_writable(folder)
    os.utime(folder)  # its last use, for clean
    return folder
