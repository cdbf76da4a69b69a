"""The docker engine: podman's command line, with an imported image of the skeleton alone."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from rocbase.errors import SandboxError
from rocbase.files.atomic import sha256_bytes
from rocwright.sandbox import seccomp
from rocwright.sandbox.containers import run_flags
from rocwright.sandbox.engine import Launch, Scene, ask_version, is_root

_IMPORT = """set -eu
docker image inspect "$1" > /dev/null 2>&1 && exit
tar -C "$2" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -c . | docker import - "$1" > /dev/null
"""


@dataclass(frozen=True, slots=True)
class Docker:
    """docker with a daemon on this machine, which must see the same files."""

    name: str = "docker"
    isolates: bool = True
    keeps_images: bool = True

    def version(self) -> str:
        try:
            return ask_version("docker", "version", "--format", "{{.Server.Version}}")
        except SandboxError as error:
            if "not installed" in error.message:
                raise
            raise SandboxError(
                "docker does not answer",
                cause=f"its daemon cannot be reached ({error.cause})",
                next_step="start the daemon (systemctl start docker) or add your user to the group docker",
            ) from error

    def launch(self, scene: Scene) -> Launch:
        image = image_name(scene.skeleton)
        profile = scene.folder / "seccomp.json"
        profile.write_text(seccomp.profile())
        parent_flags = _parent_flags(scene.cgroup)
        own = (
            "--pull=never",
            f"--pids-limit={scene.processes}",
            # docker's own profile lets io_uring and sockets to the host of a virtual machine through
            f"--security-opt=seccomp={profile}",
            *parent_flags,
        )
        return Launch(
            prepare=(("/bin/sh", "-c", _IMPORT, "sh", image, str(scene.skeleton)),),
            argv=("docker", "run", *own, *run_flags(scene), image, *scene.command),
            undo=(("docker", "rm", "--force", scene.name),),
            joins_cgroup=False,
            counted=bool(parent_flags),
        )


def _parent_flags(group: str | None) -> tuple[str, ...]:
    """The flags that put the container below the scene's cgroup, none where the daemon takes only systemd's
    slices for that, or has cgroups of its own as a user's."""
    if group is None or not is_root():
        return ()
    with contextlib.suppress(SandboxError):
        if ask_version("docker", "info", "--format", "{{.CgroupDriver}}") == "cgroupfs":
            return (f"--cgroup-parent={group}",)
    return ()


def image_name(skeleton: Path) -> str:
    """A name for the image of a skeleton: the same for the same folders, links and modes."""
    lines = []
    for directory, folders, files in os.walk(skeleton):
        for name in (*folders, *files):
            path = Path(directory, name)
            link = path.readlink() if path.is_symlink() else ""
            lines.append(f"{path.relative_to(skeleton)}\0{path.lstat().st_mode:o}\0{link}")
    return f"rocwright-skeleton:{sha256_bytes(chr(10).join(sorted(lines)).encode())[:16]}"
