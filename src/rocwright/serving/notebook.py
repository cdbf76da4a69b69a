"""A notebook server in the environment of a wheel stack."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

from rocwheel.files.atomic import write_atomic
from rocwright.catalog.notebook import Notebook, the_notebook
from rocwright.catalog.server import Server
from rocwright.home import Home
from rocwright.records.model import now
from rocwright.sandbox.model import Mount
from rocwright.serving import state
from rocwright.serving.environments import Environment
from rocwright.serving.launch import Launch, boxed, new_mark
from rocwright.serving.model import ServerState, Wanted, address
from rocwright.serving.program import program_job
from rocwright.serving.start import KEY, check_wanted


def server_named(component: str) -> Server | None:
    """How it is started, where a server's component is the notebook's."""
    return the_notebook().server if component == the_notebook().name else None


def prepare(
    environment: Environment,
    home: Home,
    wanted: Wanted,
    folder: Path,
    *,
    stays: bool,
    say: Callable[[str], None],
) -> Launch:
    """Lay everything out that it runs on; nothing is started yet. A token is made, which it asks for.

    Raises InputError for a name or port that is taken, and for a folder that cannot be shown.
    """
    notebook = the_notebook()
    server = notebook.server
    port = check_wanted(server, wanted, state.servers(home), say)
    left = state.read(home, wanted.name)
    if left is not None:
        state.forget(home, left.name)
    mark = new_mark(wanted.name)
    token = secrets.token_urlsafe(24)
    state.claim(home, wanted.name)
    try:
        key = state.key_of(home, wanted.name)
        write_atomic(key, token, mode=0o600)
        places = {"host": wanted.host, "port": str(port), "model": "", "artifact": "", "key_file": KEY}
        words = [word.format_map(places) for word in server.command]
        env = {name: value.format_map(places) for name, value in server.env.items()}
        shown = (Mount(source=key, target=KEY),)
        job = program_job(environment, home, words, env=env, folder=folder, more=shown)
        ready = boxed(job, home, wanted.name, mark, stays=stays)
    except BaseException:
        state.forget(home, wanted.name)
        raise
    kept = ServerState(
        name=wanted.name,
        stack=environment.stack,
        component=notebook.name,
        version=_version(environment, notebook),
        gpu=environment.gpu,
        base=environment.base,
        on="gpu" if job.devices else "cpu",
        model="",
        place="host",
        host=wanted.host,
        port=port,
        key=True,
        health=server.health,
        addresses={one.name: f"{address(wanted.host, port)}{one.path}" for one in server.address},
        mark=mark,
        boot=state.boot_id(),
        begun=now(),
        command=ready.argv,
    )
    return Launch(state=kept, argv=ready.argv, env=ready.env, server=server, key=token)


def _version(environment: Environment, notebook: Notebook) -> str:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name, parse_wheel_filename

    name = canonicalize_name(Requirement(notebook.requires[0]).name)
    wheels = (parse_wheel_filename(one.filename) for one in environment.wheels)
    return next((str(version) for wheel, version, _, _ in wheels if wheel == name), "of the base")
