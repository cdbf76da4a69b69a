"""A user namespace in which root file systems are made: its root owns one folder of the host.

A plain user has the range of user ids in /etc/subuid for it, root one of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from rocbase.processes.python import python_module
from rocwright.sandbox import seccomp
from rocwright.sandbox.bubblewrap import SYSTEM
from rocwright.sandbox.engine import HOSTNAME
from rocwright.sources.bases import enter

# Where the folder is seen by the command: the folders above it may be closed to the namespace.
PLACE = PurePosixPath("/tmp")  # noqa: S108 - the mount is seen in the namespace only

_PRIVATE = 'mount --make-rprivate / && mount --bind "$0" "$1" && shift && exec "$@"'


def in_namespace(folder: Path, command: Sequence[str]) -> list[str]:
    """Return the words that run `command` as root of a user namespace, with `folder` at PLACE."""
    words = ["sh", "-c", _PRIVATE, str(folder.absolute()), str(PLACE), *command]
    if os.geteuid() == 0:
        return ["unshare", "--mount", *words[:5], *python_module(enter.__name__, *command)]
    return ["unshare", "--map-auto", "--map-root-user", "--mount", *words]


def give(*paths: Path) -> None:
    """Let root of the namespace write to these files or folders."""
    if os.geteuid() == 0:
        for path in paths:
            os.chown(path, enter.FIRST, enter.FIRST, follow_symlinks=False)


# What installing packages takes. Each is a capability over the ids of the namespace alone.
CAPABILITIES = (
    *("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL"),
    *("SETFCAP", "SETGID", "SETUID", "SYS_CHROOT"),
)

_FILTERED = 'exec 9< "$1" && rm "$1" && shift && exec "$@"'


def sandboxed(
    folder: Path,
    command: Sequence[str],
    mounts: Sequence[str],
    environment: Mapping[str, str],
    *,
    network: bool = False,
    mounting: bool = False,
) -> list[str]:
    """Return the words that run `command` as root of a sandbox that sees `mounts` alone.

    `mounts` are words of bubblewrap that name what lies in `folder` by its place below PLACE. With `mounting`
    the command may mount in the sandbox. Raises SandboxError without libseccomp.
    """
    rules = folder / "seccomp.bpf"
    rules.write_bytes(seccomp.program(seccomp.MOUNTING if mounting else ()))
    # everybody inside can read the command line and the environment of bwrap
    words = ["env", "-i", f"PATH={os.environ['PATH']}", "sh", "-c", _FILTERED, "sh", str(PLACE / rules.name)]
    words += ["bwrap", "--seccomp", "9", *mounts]
    words += [*_APART, *([] if network else ["--unshare-net"])]
    for name in (*CAPABILITIES, *(("SYS_ADMIN",) if mounting else ())):
        words += ["--cap-add", f"CAP_{name}"]
    for name, text in environment.items():
        words += ["--setenv", name, text]
    return in_namespace(folder, [*words, "--", *command])


_APART = (
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--hostname", HOSTNAME),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv", "--chdir", "/"),
)


def host_programs() -> list[str]:
    """Return the mounts that show the host's programs, and of its settings what they need to start."""
    words = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib64"):
        path = Path("/", name)
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            words += ["--ro-bind", str(path), str(path)]
    for name in ("alternatives", "group", "ld.so.cache", "passwd"):
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return [*words, "--proc", "/proc", "--dev", "/dev", *SYSTEM]
