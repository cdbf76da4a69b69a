"""A program in the environment of a wheel stack: on the caller's terminal, in the caller's folder, as the
caller."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from rocbase.errors import InputError
from rocwright import sandbox
from rocwright.home import Home
from rocwright.sandbox.model import GPU_DEVICES, Mount, SandboxJob
from rocwright.serving.environments import ENGINE, HOME, INSIDE, PLACE, Environment

# Where a program has its own home: what it keeps there (caches of compiled kernels) it finds again.
AT_HOME = f"{PLACE}-home"

# Variables of the caller that programs get: how the terminal is, and how to speak.
_PASSED_ON = ("TERM", "COLORTERM", "NO_COLOR", "LANG", "TZ")


def run_program(
    environment: Environment,
    home: Home,
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
    engine: str = ENGINE,
) -> int:
    """Run it to its end; its exit status (128 and the signal's number for a signal).

    It sees its environment and the current `folder`, and the network, and nothing else of the machine.
    `engine` is bubblewrap or podman. Raises InputError where that folder cannot be shown, SandboxError where
    the engine does not work here.
    """
    job = program_job(environment, home, argv, env=env or {}, folder=folder or Path.cwd())
    return sandbox.foreground(sandbox.pick(engine, home.probes), job)


def program_command(
    environment: Environment,
    home: Home,
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> tuple[str, ...]:
    """The command by which bubblewrap would run it, for a reader; nothing is written. Raises InputError where
    the folder cannot be shown."""
    job = program_job(environment, home, argv, env=env or {}, folder=folder or Path.cwd())
    return sandbox.describe(job, environment.stack).argv


def program_job(
    environment: Environment,
    home: Home,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    folder: Path | None,
    extra: Sequence[Mount] = (),
) -> SandboxJob:
    """What is run, with all that it sees, `extra` among it; without a `folder` it sees none of the caller's.
    Raises InputError."""
    root, own = home.roots / environment.root, environment.folder(home)
    if folder is not None:
        check_homes(folder, home)
        check_folder(folder, root)
        extra = (Mount(source=folder, target=str(folder), writable=True), *extra)
    os.utime(own)  # its last use, for clean
    return SandboxJob(
        root=root,
        argv=tuple(argv),
        env=program_environment(environment) | dict(env),
        workdir=str(folder or AT_HOME),
        mounts=(
            Mount(source=own / INSIDE, target=PLACE),
            Mount(source=own / HOME, target=AT_HOME, writable=True),
            *extra,
        ),
        network=True,
        devices=tuple(name for name in GPU_DEVICES if Path(name).exists()),
        as_caller=True,
    )


def program_environment(environment: Environment) -> dict[str, str]:
    """All variables that a program has: what the card and the recipes want among them."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {
        "LANG": "C.UTF-8",
        **passed,
        "PATH": f"{PLACE}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": AT_HOME,
        "USER": "user",
        "VIRTUAL_ENV": PLACE,
        "PYTHONNOUSERSITE": "1",
        **environment.env,
    }


def check_homes(folder: Path, home: Home) -> None:
    """Raise InputError for a folder in which the caller's home is, or rocwright's with its keys and store."""
    for name, place in (("your home", Path.home()), ("the home folder of rocwright", home.path)):
        if place.resolve().is_relative_to(folder.resolve()):
            raise InputError(
                f"{folder} is not shown to a program: {name} is in it",
                cause="a program sees and may change the folder that it is started in, with all below",
                next_step="start it in the folder that holds it",
            )


def check_folder(folder: Path, root: Path) -> None:
    """Raise InputError for a folder that would hide what a program needs."""
    place = root / folder.relative_to("/")
    if place.is_dir() and any(place.iterdir()):
        raise InputError(
            f"{folder} is a folder of the system's own",
            cause="the environment has one of that name, which the program needs",
            next_step="start the program in a folder of yours",
        )
