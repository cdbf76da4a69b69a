"""Programs in the environment of a wheel stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocwright.execution.progress import Progress
    from rocwright.home import Home
    from rocwright.serving.api import StartedServer
    from rocwright.serving.environments import Environment

Say = Callable[[str], None]


def environment(
    stack: str = "",
    *,
    gpu: str = "auto",
    base: str = "",
    versions: Mapping[str, str] = MappingProxyType({}),
    optional: Sequence[str] = (),
    accept_missing: Sequence[str] = (),
    extra: Sequence[str] = (),
    engine: str | None = None,
    home: str | Path | None = None,
    progress: Progress | None = None,
    agree: Say = lambda line: None,
    say: Say = lambda line: None,
) -> Environment:
    """The environment of a wheel stack: its base, the wheels that were built, and what these require.

    What is not there yet is fetched, built and installed. `versions` pins
    components of the stack, `optional` adds such as are not built otherwise, and `accept_missing` is as in
    `request`. `extra` are requirements
    (PEP 508) of your own; they are locked beside the stack's lock. Without a `stack` it is that of the
    project in this folder. `agree` hears what a long build needs before it starts, and may raise. Raises
    InputError for a stack that makes no wheels, CheckError where they do not install, what a build raises.
    """
    from rocwright.api.projects import project as project_for
    from rocwright.execution.progress import PlainProgress
    from rocwright.serving.asked import asked_for, environment_words
    from rocwright.serving.environments import remember
    from rocwright.serving.prepare import prepare
    from rocwright.serving.wheels import built_lock, check_makes_wheels

    project = (
        project_for(
            stack,
            gpu,
            base,
            home=home,
            extra=optional,
            versions=versions,
            accept_missing=accept_missing,
            say=say,
        )
        if stack
        else project_for(home=home, say=say)
    )
    check_makes_wheels(project)
    reporter = progress or PlainProgress()
    locked = built_lock(project, engine, reporter, say, agree=agree)
    created = prepare(project, locked, say, reporter, extra=extra, engine=engine)
    digest = asked_for(environment_words(stack, gpu, base, versions, optional, accept_missing, extra))
    remember(project.home, digest, project.lock_path, created)
    return created


def known_environment(
    stack: str = "",
    *,
    gpu: str = "auto",
    base: str = "",
    versions: Mapping[str, str] = MappingProxyType({}),
    optional: Sequence[str] = (),
    accept_missing: Sequence[str] = (),
    extra: Sequence[str] = (),
    home: str | Path | None = None,
) -> Environment | None:
    """The environment that `environment` gave for the same, if lock, catalog and machine are as they were."""
    from rocwright.serving.asked import asked_for, environment_words
    from rocwright.serving.environments import remembered

    return remembered(
        _home(home), asked_for(environment_words(stack, gpu, base, versions, optional, accept_missing, extra))
    )


def check_folder(folder: str | Path = ".", *, home: str | Path | None = None) -> None:
    """Raise InputError for a folder that no program may see, before anything is locked or built for it."""
    from rocwright.serving.program import check_homes

    check_homes(Path(folder).absolute(), _home(home))


def run_program(
    environment: Environment,
    argv: Sequence[str],
    *,
    folder: str | Path = ".",
    env: Mapping[str, str] | None = None,
    place: str = "host",
    home: str | Path | None = None,
) -> int:
    """Run a program in an environment on this terminal; its exit status, 128 and the number for a signal.

    It sees, and may change, `folder`, which is its current one, and a home of its own; it has the network.
    `place` is host (bubblewrap) or podman, a container of the same files without an image. Raises InputError
    for a folder that cannot be shown, SandboxError where the engine does not work.
    """
    from rocwright.serving import program
    from rocwright.serving.environments import ENGINE

    engine = ENGINE if place == "host" else place
    workdir = Path(folder).absolute()
    return program.run_program(environment, _home(home), argv, env=env, folder=workdir, engine=engine)


def program_command(
    environment: Environment,
    argv: Sequence[str],
    *,
    folder: str | Path = ".",
    env: Mapping[str, str] | None = None,
    home: str | Path | None = None,
) -> tuple[str, ...]:
    """The words of the command, bubblewrap's, by which `run_program` would run it on the host.

    They are for a reader: nothing runs, and nothing is written. Raises InputError for a folder that cannot be
    shown.
    """
    from rocwright.serving import program

    return program.program_command(environment, _home(home), argv, env=env, folder=Path(folder).absolute())


def start_notebook(
    environment: Environment,
    *,
    folder: str | Path = ".",
    name: str = "",
    host: str = "127.0.0.1",
    port: int = 0,
    detach: bool = True,
    home: str | Path | None = None,
    say: Say = lambda line: None,
) -> StartedServer:
    """Start a notebook server in an environment that has `notebook_packages()`, and wait until it answers.

    It sees, and may change, `folder`. The token that it asks for is the answer's `key`, and in no command and
    no variable. Raises InputError for a name or port that is taken, CheckError where it ends at once.
    """
    from rocwright.catalog.notebook import the_notebook
    from rocwright.serving import notebook
    from rocwright.serving.api import started
    from rocwright.serving.model import RunRequest

    place = _home(home)
    request = RunRequest(name=name or f"{environment.stack}-{the_notebook().name}", host=host, port=port)
    launch = notebook.prepare(environment, place, request, Path(folder).absolute(), stays=detach, say=say)
    return started(launch, place, say)


def write_image(
    environment: Environment, folder: str | Path, *, home: str | Path | None = None
) -> list[Path]:
    """Write an environment as an OCI image to `folder`, with a unit for podman and a compose file.

    The variables that the card and the recipes want are inside. `podman load -i` takes the image.
    """
    from rocwright.config import store_of
    from rocwright.model.architecture import host_architecture
    from rocwright.serving.environment_image import write

    place = _home(home)
    return write(environment, host_architecture(), store_of(place), place, Path(folder).absolute())


def notebook_packages() -> tuple[str, ...]:
    """What an environment needs for a notebook server, as `extra` of `environment`."""
    from rocwright.catalog.notebook import the_notebook

    return the_notebook().requires


def _home(home: str | Path | None) -> Home:
    from rocwright.home import Home

    return Home(Path(home).absolute()) if home is not None else Home.default()
