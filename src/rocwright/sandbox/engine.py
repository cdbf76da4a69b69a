"""What an engine is given and what it gives back; an engine only translates a scene into a command line."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rocbase.errors import SandboxError
from rocbase.processes import run as process
from rocwright.sandbox.model import MOST_PROCESSES, Mount

# User and group id of every job, as seen inside.
USER = 1000

HOSTNAME = "rocwright"

# Environment variable that tells the processes of one sandbox from all others; the job never sees it.
MARK = "ROCWRIGHT_SANDBOX"

_PASSED_ON = (
    "PATH",
    "HOME",
    "USER",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_HOST",
    "DOCKER_CONFIG",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A job made ready for any engine.

    `skeleton` holds the mount points and symlinks of the root; `mounts` fill it, in this order.
    `command` is run inside as user and group 1000 and sets directory, umask and environment by itself.
    `cgroup` is the cgroup's path below its hierarchy (`/a/b`), None where there is none; its limits are set.
    `processes` is the most at once, for an engine that has a limit of its own. `stays` tells of one that goes
    on when whoever started it has ended. With `as_caller` the command runs with the caller's rights to files.
    """

    name: str
    folder: Path
    skeleton: Path
    mounts: tuple[Mount, ...]
    command: tuple[str, ...]
    network: bool = False
    devices: tuple[str, ...] = ()
    cgroup: str | None = None
    processes: int = MOST_PROCESSES
    terminal: bool = False
    stays: bool = False
    as_caller: bool = False

    @property
    def groups(self) -> tuple[int, ...]:
        """Group ids that own the devices, which the job needs to open them."""
        nodes = [node for name in self.devices for node in _nodes(Path(name))]
        return tuple(sorted({node.stat().st_gid for node in nodes} - {0, USER}))


def _nodes(path: Path) -> list[Path]:
    return [node for node in path.rglob("*") if not node.is_dir()] if path.is_dir() else [path]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The commands that run one scene.

    `prepare` come before, `undo` after a run that was cut short, `finish` after one that was not.
    `joins_cgroup` is False where the engine's own processes stay out of the scene's cgroup; `counted` is
    False where the job does too, so that its memory is added up process by process.
    """

    argv: tuple[str, ...]
    prepare: tuple[tuple[str, ...], ...] = ()
    finish: tuple[tuple[str, ...], ...] = ()
    undo: tuple[tuple[str, ...], ...] = ()
    joins_cgroup: bool = True
    counted: bool = True


class Engine(Protocol):
    """One way to run a job apart from the host."""

    @property
    def name(self) -> str:
        """The word by which a user asks for the engine."""

    @property
    def isolates(self) -> bool:
        """False for the host, which hides nothing."""

    @property
    def keeps_images(self) -> bool:
        """Whether it has a storage of its own, which may lie on another disk."""

    def version(self) -> str:
        """The version that would run. Raises SandboxError where the engine is absent or cannot be reached."""

    def launch(self, scene: Scene) -> Launch:
        """The commands for a scene. Changes nothing but the scene's own folder."""


def is_root() -> bool:
    """True where the caller is the host's root."""
    return os.geteuid() == 0


def needs_root(engine: str, reason: str) -> SandboxError:
    """The refusal of an engine that a plain user cannot use."""
    return SandboxError(
        f"{engine} works only as root",
        cause=reason,
        next_step="run as root, or choose bubblewrap or podman",
    )


def host_environment(name: str) -> dict[str, str]:
    """The few variables that an engine's own commands get, with the mark of sandbox `name`."""
    return {key: os.environ[key] for key in _PASSED_ON if key in os.environ} | {MARK: name}


# What `step_down` needs; the job itself has none.
STEP_DOWN_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_SYS_CHROOT")


def step_down(scene: Scene) -> tuple[str, ...]:
    """Words before a command that is started as root inside and is to run as user 1000, of the host too.

    setpriv leaves no capability in any set, the bounding and the inheritable one included. A root may lack it
    (it is util-linux's): then chroot does it, the one program of coreutils that changes the user by number,
    and only no_new_privs sees to it that what is left in those two sets can never be had.
    """
    groups = ",".join(map(str, scene.groups))
    return ("/bin/sh", "-c", _STEP_DOWN.format(user=USER), "sh", groups)


_STEP_DOWN = """groups=$1
shift
test -x /usr/bin/setpriv || exec /usr/sbin/chroot --userspec={user}:{user} --groups="$groups" / "$@"
test -n "$groups" && groups=--groups=$groups || groups=--clear-groups
exec /usr/bin/setpriv --reuid={user} --regid={user} "$groups" --inh-caps=-all --bounding-set=-all -- "$@"
"""


# The end of a next step for whoever has several engines to choose from.
OTHER = ", or choose another sandbox"


def ask_version(*argv: str) -> str:
    """The first line that a command prints. Raises SandboxError where it is absent or fails."""
    from shutil import which

    if which(argv[0]) is None:
        raise SandboxError(
            f"{argv[0]} is not installed",
            cause=f"the command {argv[0]!r} was not found on PATH",
            next_step=f"install {argv[0]}{OTHER}",
        )
    completed = process.run(argv, timeout=20)
    if not completed.ok:
        raise SandboxError(
            f"{argv[0]} does not answer",
            cause=last_line(completed.stderr) or f"it ended with status {completed.returncode}",
            next_step=f"run `{' '.join(argv)}` and fix what it reports",
        )
    return completed.stdout.strip().splitlines()[0] if completed.stdout.strip() else "unknown"


def last_line(text: str) -> str:
    """The last line that is not empty, the place where engines say what went wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
