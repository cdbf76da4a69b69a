"""The podman engine: a root file system of mounts, no image."""

from __future__ import annotations

from dataclasses import dataclass
from shutil import which

from rocwright.sandbox import cgroup, seccomp
from rocwright.sandbox.containers import run_flags, ulimits
from rocwright.sandbox.engine import USER, Launch, Scene, ask_version, is_root

# In the folder of a sandbox on a terminal: the number of its first process, as this machine counts.
PIDFILE = "pid"


@dataclass(frozen=True, slots=True)
class Podman:
    """podman, as root or as a user with subordinate ids."""

    name: str = "podman"
    isolates: bool = True
    keeps_images: bool = True

    def version(self) -> str:
        return ask_version("podman", "--version").removeprefix("podman version ")

    def launch(self, scene: Scene) -> Launch:
        base = ("podman", *base_words())
        place, joins = _cgroup(scene)
        profile = scene.folder / "seccomp.json"
        profile.write_text(seccomp.profile())
        user = () if is_root() else (f"--userns=keep-id:uid={USER},gid={USER}",)
        own = (
            "--read-only-tmpfs=false",
            "--no-hosts",
            "--passwd=false",
            "--shm-size=0",
            "--pull=never",
            f"--security-opt=seccomp={profile}",
            *((f"--pidfile={scene.folder / PIDFILE}",) if scene.terminal else ()),
            *ulimits(),
            *place,
            *user,
        )
        command = ("--rootfs", str(scene.skeleton), *scene.command)
        return Launch(
            argv=(*base, "run", *own, *run_flags(scene), *command),
            undo=((*base, "rm", "--force", "--ignore", "--time", "0", scene.name),),
            joins_cgroup=joins,
        )


def base_words() -> tuple[str, ...]:
    """Words of every podman command. crun refuses machines with cgroups of both versions; runc does not."""
    words = ("--cgroup-manager", "cgroupfs")
    return words if cgroup.unified() or which("runc") is None else ("--runtime", "runc", *words)


def _cgroup(scene: Scene) -> tuple[tuple[str, ...], bool]:
    """The container below the scene's cgroup, or, where crun can do it, in it with no other."""
    if cgroup.unified() and which("crun") is not None:
        return ("--cgroups=disabled",), True
    pids_limit = f"--pids-limit={scene.processes}"
    return (pids_limit,) if scene.cgroup is None else (pids_limit, "--cgroup-parent", scene.cgroup), False
