"""What podman and docker share: one `run` command line, translated from a scene."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from rocwright.sandbox.engine import HOSTNAME, MARK, USER, Scene, is_root

LABELS = ("--security-opt", "label=disable")
"""With SELinux, a container may not read folders of the host; relabelling (`:z`) would change the user's."""


def run_flags(scene: Scene) -> tuple[str, ...]:
    """Flags of `podman run` and `docker run` alike, up to the image."""
    # as root, a program with the caller's own rights to files is root, without a capability
    user = 0 if scene.as_caller and is_root() else USER
    words = ["--rm", "--name", scene.name, "--hostname", HOSTNAME, "--user", f"{user}:{user}"]
    words += ["--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges"]
    words += LABELS
    words += ["--network", "host" if scene.network else "none", "--log-driver", "none", "--entrypoint", ""]
    words += ["--env", f"{MARK}={scene.name}"]
    words += ["--interactive"] if scene.terminal else []
    words += ["--tty"] if scene.terminal and sys.stdin.isatty() and sys.stdout.isatty() else []
    for place in ("/tmp", "/run"):  # noqa: S108 - inside, each job has its own
        words += ["--tmpfs", f"{place}:rw,exec,nosuid,nodev,mode=1777"]
    for mount in scene.mounts:
        words += ["--volume", f"{mount.source}:{mount.target}:{'rw' if mount.writable else 'ro'}"]
    for device in scene.devices:
        words += ["--device", device]
    for group in scene.groups:
        words += ["--group-add", str(group)]
    return tuple(words)


def ulimits() -> tuple[str, ...]:
    """Flags that keep to the caller's own limits, which an engine may not be allowed to raise.

    podman lowers its own process limit to the machine's largest process id, and cannot go back above it.
    """
    ceilings = {"nofile": _number("/proc/sys/fs/nr_open"), "nproc": _number("/proc/sys/kernel/pid_max")}
    words: list[str] = []
    for name, kind in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
        hard = resource.getrlimit(kind)[1]
        value = ceilings[name] if hard == resource.RLIM_INFINITY else min(hard, ceilings[name])
        words += ["--ulimit", f"{name}={value}:{value}"]
    return tuple(words)


def _number(path: str) -> int:
    return int(Path(path).read_text())
