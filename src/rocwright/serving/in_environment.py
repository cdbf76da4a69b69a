"""A server in the environment of a wheel stack: what its recipe names, or a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from rocbase.errors import InputError
from rocwright.catalog.model import Component
from rocwright.catalog.server import GPU, Compute
from rocwright.execution.progress import Progress
from rocwright.home import Home
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import read_lock
from rocwright.project import Project
from rocwright.sandbox.model import Mount
from rocwright.serving.environments import Environment, remember, remembered
from rocwright.serving.laid import Product, program_of
from rocwright.serving.launch import Launch, boxed, new_mark
from rocwright.serving.model import RunRequest
from rocwright.serving.models.model import Model
from rocwright.serving.ports import is_loopback
from rocwright.serving.prepare import prepare as environment_of
from rocwright.serving.program import program_job
from rocwright.serving.service import ARTIFACT, KEY, Service, claimed, make_key
from rocwright.serving.state import key_of
from rocwright.serving.wheels import Agree, built_lock, not_installed

# The kind of components that are source trees, which run in an environment of the other components.
APPLICATION = "application"

# Kinds of components that are served in an environment.
INSTALLED = ("wheel", "wheels", APPLICATION)


def check_place(component: Component, stack: str, request: RunRequest, require: Sequence[str]) -> None:
    """Raise InputError for an environment in a container, which has no image here, and for packages where
    there is no environment."""
    if component.kind not in INSTALLED:
        if require:
            raise InputError(
                f"--require has no effect on {stack}",
                cause="only a server that runs in an environment of Python packages takes more of them",
                next_step="leave --require out",
            )
        return
    if request.place != "host":
        raise InputError(
            f"{stack} is not served in {request.place}",
            cause="its server runs in an environment of wheels, which has no image in a store",
            next_step=f"leave --in out, or rocwright run {stack} --image FOLDER, and start it in that image",
        )


def launch_of(
    project: Project,
    component: Component,
    request: RunRequest,
    model: Model | None,
    compute: Compute,
    progress: Progress,
    *,
    digest: str,
    require: Sequence[str],
    engine: str | None,
    dry: bool,
    stays: bool,
    agree: Agree,
) -> Launch:
    """The server of a wheel stack, built and installed where it is not, with the packages that `require`
    names; nothing is started yet. In a `dry` run nothing is written, and the environment that was had for
    `digest` is taken. Raises what a build raises, InputError in a dry run without it."""
    server = component.server
    assert server is not None, "it was looked for by that"
    if dry:
        environment = remembered(project.home, digest)
        if environment is None:
            raise not_installed(project.request.stack)
        lock = read_lock(project.lock_path, project.request)
    else:
        lock = built_lock(project, engine, progress, progress.say, agree=agree)
        environment = environment_of(project, lock, progress.say, progress, extra=require, engine=engine)
        remember(project.home, digest, project.lock_path, environment)
    service = Service(
        stack=environment.stack,
        component=component.name,
        version=next(entry.version for entry in lock.components if entry.name == component.name),
        gpu=environment.gpu,
        base=environment.base,
        server=server,
        on=compute,
        model=model,
        options=request.options,
        env=dict(request.variables),
    )
    if not dry:
        service.make_kept(project.home)
    shown = [*service.shown_of_catalog(project.catalog), *service.kept(project.home)]
    if component.kind == APPLICATION:
        plan = make_plan(lock, project.catalog)
        product = Product(project=project, lock=lock, plan=plan, component=component, version=service.version)
        shown.append(Mount(source=program_of(product, progress.say, dry=dry), target=ARTIFACT))
    return prepare(
        environment,
        project.home,
        request,
        service,
        request.port or server.port,
        keyed=request.key and not is_loopback(request.host),
        shown=shown,
        stays=stays,
        dry=dry,
    )


def prepare(
    environment: Environment,
    home: Home,
    request: RunRequest,
    service: Service,
    port: int,
    *,
    keyed: bool,
    folder: Path | None = None,
    shown: Sequence[Mount] = (),
    stays: bool,
    dry: bool = False,
) -> Launch:
    """Lay everything out that it runs on; nothing is started yet, and of a `dry` run nothing is written.
    `keyed` says that it asks for a key; `folder` is one of the user's, which it sees and may change; `shown`
    is what else it sees.

    Raises InputError for a name that is taken, and for a folder that cannot be shown.
    """
    server, mark = service.server, new_mark(request.name)
    with nullcontext() if dry else claimed(home, request.name):
        token = make_key(home, request.name)[0] if keyed and not dry else ""
        shown = [*shown, *service.model_mounts]
        if keyed:
            shown.append(Mount(source=key_of(home, request.name), target=KEY))
        places = service.places(request.host, port, ARTIFACT)
        words, env = service.words(places, keyed=keyed), service.variables(places)
        job = program_job(environment, home, words, env=env, folder=folder, extra=shown)
        ready = boxed(job, home, request.name, mark, stays=stays, dry=dry)
    server_state = service.state(home, request, port, keyed=keyed, mark=mark, command=ready.argv)
    return Launch(state=server_state, argv=ready.argv, env=ready.env, server=server, key=token)


def on_what(devices: Sequence[str]) -> Compute:
    """What a server computes on that finds that out by itself."""
    return Compute(name=GPU if devices else "cpu", summary="the GPU" if devices else "the processor")
