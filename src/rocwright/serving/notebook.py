"""A notebook server in the environment of a wheel stack."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rocwright.catalog.notebook import Notebook, the_notebook
from rocwright.catalog.server import Server
from rocwright.home import Home
from rocwright.sandbox.model import GPU_DEVICES
from rocwright.serving import in_environment, state
from rocwright.serving.environments import Environment
from rocwright.serving.launch import Launch
from rocwright.serving.model import RunRequest
from rocwright.serving.service import Service
from rocwright.serving.start import check_wanted


def server_named(component: str) -> Server | None:
    """How it is started, where a server's component is the notebook's."""
    return the_notebook().server if component == the_notebook().name else None


def prepare(
    environment: Environment,
    home: Home,
    request: RunRequest,
    folder: Path,
    *,
    stays: bool,
    say: Callable[[str], None],
) -> Launch:
    """Lay everything out that it runs on; nothing is started yet. A token is made, which it asks for.

    Raises InputError for a name or port that is taken, and for a folder that cannot be shown.
    """
    notebook = the_notebook()
    port = check_wanted(notebook.server, request, state.servers(home), say)
    service = Service(
        stack=environment.stack,
        gpu=environment.gpu,
        base=environment.base,
        component=notebook.name,
        version=_version(environment, notebook),
        server=notebook.server,
        on=in_environment.on_what([device for device in GPU_DEVICES if Path(device).exists()]),
    )
    return in_environment.prepare(
        environment, home, request, service, port, keyed=True, folder=folder, stays=stays
    )


def _version(environment: Environment, notebook: Notebook) -> str:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name, parse_wheel_filename

    name = canonicalize_name(Requirement(notebook.requires[0]).name)
    wheels = (parse_wheel_filename(installed.filename) for installed in environment.wheels)
    return next((str(version) for wheel, version, _, _ in wheels if wheel == name), "of the base")
