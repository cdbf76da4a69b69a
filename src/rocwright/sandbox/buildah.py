"""The buildah engine: an empty working container, filled with the skeleton and the mounts."""

from __future__ import annotations

from dataclasses import dataclass
from shutil import which

from rocwright.sandbox import cgroup, seccomp
from rocwright.sandbox.containers import LABELS
from rocwright.sandbox.engine import (
    HOSTNAME,
    MARK,
    USER,
    Launch,
    Scene,
    ask_version,
    is_root,
    needs_root,
)

_FILL = """set -eu
place=$(buildah mount "$1")
cp -a "$2/." "$place"
"""

# A runtime that sets no_new_privs, for which buildah has no option.
_RUNTIME = """#!/bin/sh
bundle=
for word; do
    test "$last" != --bundle || bundle=$word
    last=$word
done
test -z "$bundle" || sed -i '0,/"process":{{/s//"process":{{"noNewPrivileges":true,/' "$bundle/config.json"
exec {runtime} "$@"
"""


@dataclass(frozen=True, slots=True)
class Buildah:
    """buildah with an OCI runtime; its chroot isolation would share the host's network and processes.

    The root itself is a writable layer, but not for user 1000. The groups of devices cannot be given.
    """

    name: str = "buildah"
    isolates: bool = True
    keeps_images: bool = True

    def version(self) -> str:
        version = ask_version("buildah", "--version").removeprefix("buildah version ").split(" ")[0]
        if not is_root():
            raise needs_root("buildah", "without root it maps the caller to user 0 inside, not to user 1000")
        return version

    def launch(self, scene: Scene) -> Launch:
        base = ("/usr/bin/env", f"TMPDIR={scene.folder}")
        profile = scene.folder / "seccomp.json"
        profile.write_text(seccomp.profile())
        flags = (*_runtime(scene), *_apart(scene), *_files(scene))
        remove = (*base, "buildah", "rm", scene.name)
        return Launch(
            prepare=(
                (*base, "buildah", "from", "--quiet", "--name", scene.name, *_own(scene), "scratch"),
                (*base, "/bin/sh", "-c", _FILL, "sh", scene.name, str(scene.skeleton)),
            ),
            argv=(*base, "buildah", "run", *flags, scene.name, "--", *scene.command),
            finish=(remove,),
            undo=(remove,),
            joins_cgroup=False,
        )


def _own(scene: Scene) -> tuple[str, ...]:
    """Devices, and a cgroup below the scene's, since the runtime removes the one it is given."""
    words = [word for device in scene.devices for word in ("--device", device)]
    words += ["--security-opt", f"seccomp={scene.folder / 'seccomp.json'}", *LABELS]
    return (*words, *(() if scene.cgroup is None else ("--cgroup-parent", f"{scene.cgroup}/job")))


def _runtime(scene: Scene) -> tuple[str, ...]:
    """crun refuses machines with cgroups of both versions. What runc keeps lies in the scene's folder."""
    runtime = "crun" if cgroup.unified() or which("runc") is None else "runc"
    wrapper = scene.folder / "oci-runtime"
    wrapper.write_text(_RUNTIME.format(runtime=runtime))
    wrapper.chmod(0o700)
    words = ("--isolation", "oci", "--runtime", str(wrapper))
    return words if runtime == "crun" else (*words, "--runtime-flag", f"root={scene.folder / 'runtime'}")


def _apart(scene: Scene) -> tuple[str, ...]:
    words = ["--hostname", HOSTNAME, "--no-hosts", "--network", "host" if scene.network else "none"]
    words += ["--user", f"{USER}:{USER}", "--cap-drop", "all", "--env", f"{MARK}={scene.name}"]
    return (*words, f"--terminal={'true' if scene.terminal else 'false'}")


def _files(scene: Scene) -> tuple[str, ...]:
    words: list[str] = []
    for place in ("/tmp", "/run"):  # noqa: S108 - inside, each job has its own
        words += ["--mount", f"type=tmpfs,destination={place},tmpfs-mode=1777"]
    for mount in scene.mounts:
        words += ["--volume", f"{mount.source}:{mount.target}:{'rw' if mount.writable else 'ro'}"]
    return tuple(words)
