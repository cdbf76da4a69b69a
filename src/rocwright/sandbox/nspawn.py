"""The systemd-nspawn engine: for root only."""

from __future__ import annotations

from dataclasses import dataclass

from rocwright.sandbox import seccomp
from rocwright.sandbox.engine import (
    HOSTNAME,
    MARK,
    STEP_DOWN_CAPABILITIES,
    Launch,
    Scene,
    ask_version,
    is_root,
    needs_root,
    step_down,
)

# nspawn leaves locks and folders in /run/systemd when it is killed, so it gets one that dies with it.
_APART = """mkdir -p /run/systemd && mount -t tmpfs tmpfs /run/systemd && exec "$@"
"""

# What nspawn leaves to a container unless told otherwise (systemd-nspawn(1), --capability=).
_DEFAULT_CAPABILITIES = (
    *("CAP_AUDIT_CONTROL", "CAP_AUDIT_WRITE", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH"),
    *("CAP_FOWNER", "CAP_FSETID", "CAP_IPC_OWNER", "CAP_KILL", "CAP_LEASE", "CAP_LINUX_IMMUTABLE"),
    *("CAP_MKNOD", "CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST", "CAP_NET_RAW"),
    *("CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_ADMIN", "CAP_SYS_BOOT"),
    *("CAP_SYS_CHROOT", "CAP_SYS_NICE", "CAP_SYS_PTRACE", "CAP_SYS_RESOURCE", "CAP_SYS_TTY_CONFIG"),
)


@dataclass(frozen=True, slots=True)
class Nspawn:
    """systemd-nspawn, without systemd: nothing is registered, no unit is made."""

    name: str = "nspawn"
    isolates: bool = True
    keeps_images: bool = False

    def version(self) -> str:
        version = ask_version("systemd-nspawn", "--version")
        if not is_root():
            raise needs_root("systemd-nspawn", "it needs root for its namespaces and mounts")
        return version.removeprefix("systemd ")

    def launch(self, scene: Scene) -> Launch:
        apart = ("unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", _APART, "sh")
        engine = ("systemd-nspawn", *_settings(scene), *_files(scene))
        return Launch(argv=(*apart, *engine, "--", *step_down(scene), *scene.command))


def _settings(scene: Scene) -> tuple[str, ...]:
    dropped = ",".join(
        capability for capability in _DEFAULT_CAPABILITIES if capability not in STEP_DOWN_CAPABILITIES
    )
    words = ["--quiet", "--register=no", "--keep-unit", "--settings=no", "--link-journal=no"]
    words += ["--resolv-conf=off", "--timezone=off", f"--hostname={HOSTNAME}", "--as-pid2"]
    words += [f"--drop-capability={dropped}", "--no-new-privileges=yes", f"--setenv={MARK}={scene.name}"]
    words += [f"--system-call-filter=~{' '.join(seccomp.names())}"]
    words += [f"--console={'interactive' if scene.terminal else 'pipe'}"]
    return (*words, *(() if scene.network else ("--private-network",)))


def _files(scene: Scene) -> tuple[str, ...]:
    words = [f"--directory={scene.skeleton}", "--read-only"]
    for place in ("/tmp", "/run"):  # noqa: S108 - inside, each job has its own
        words += [f"--tmpfs={place}:mode=1777"]
    words += ["--tmpfs=/run/host:mode=0755"]  # would tell of the host, and nspawn needs it to be a mount
    for mount in scene.mounts:
        flag = "--bind" if mount.writable else "--bind-ro"
        words += [f"{flag}={_escape(str(mount.source))}:{_escape(mount.target)}"]
    for device in scene.devices:
        words += [f"--bind={_escape(device)}"]
    return tuple(words)


def _escape(path: str) -> str:
    return path.replace("\\", "\\\\").replace(":", "\\:")
