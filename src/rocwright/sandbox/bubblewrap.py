"""The bubblewrap engine: no daemon, no storage, some milliseconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rocwright.sandbox import seccomp
from rocwright.sandbox.engine import (
    HOSTNAME,
    MARK,
    STEP_DOWN_CAPABILITIES,
    USER,
    Launch,
    Scene,
    ask_version,
    is_root,
    step_down,
)
from rocwright.sandbox.layout import SCRATCH


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """bwrap, as root or as any user that may make user namespaces."""

    name: str = "bubblewrap"
    isolates: bool = True
    keeps_images: bool = False

    def version(self) -> str:
        version = ask_version("bwrap", "--version").removeprefix("bubblewrap ")
        seccomp.program()
        return version

    def launch(self, scene: Scene) -> Launch:
        user, command = _user(scene)
        rules = scene.folder / "seccomp.bpf"
        rules.write_bytes(seccomp.program())
        opened = ("/bin/sh", "-c", _FILTERED, str(rules))
        bound = () if scene.stays else (BOUND,)
        words = ("--seccomp", _DESCRIPTOR, *_words(scene), *user)
        return Launch(argv=(*opened, *unseen(scene.folder / WORDS, words, *bound), "--", *command))


def described(scene: Scene) -> tuple[str, ...]:
    """Return the command for a scene with all that it shows, for a reader; nothing is written for it."""
    user, command = _user(scene)
    return ("bwrap", *_words(scene), *user, "--", *command)


# The word that ends all inside with whoever started it.
BOUND = "--die-with-parent"

# The file of bwrap's arguments, in the folder of a sandbox.
WORDS = "bwrap"

_INTERFACES = Path("/sys/class/net")
_VIRTUAL = Path("/sys/devices/virtual/net")
_PROCESSORS = "/sys/devices/system"
_DESCRIPTOR = "9"
# Opens the filter of system calls for bwrap, which reads it from a descriptor and closes that.
_FILTERED = f'exec {_DESCRIPTOR}< "$0" && exec "$@"'

_UNSEEN = f"""exec 8< "$0" && exec env -i "{MARK}=${MARK}" "$(command -v bwrap)" --args 8 "$@"
"""

# Arguments that show of /sys the processors and the memory alone, which compilers count.
SYSTEM = (
    *("--tmpfs", "/sys", "--perms", "0755", "--dir", "/sys/devices"),
    *("--ro-bind-try", _PROCESSORS, _PROCESSORS, "--remount-ro", "/sys"),
)


def unseen(file: Path, words: Iterable[str], *arguments: str) -> tuple[str, ...]:
    """Write bwrap's arguments to `file`, and return the command that reads them there.

    The first process inside is bwrap. Everybody inside can read its command line, and without root its
    environment, too: both would name folders of the user.
    """
    file.write_text("".join(f"{word}\0" for word in words))
    return ("/bin/sh", "-c", _UNSEEN, str(file), *arguments)


def _system(scene: Scene) -> tuple[str, ...]:
    """Return the arguments for /sys: with a device all of it but the names of the network's interfaces."""
    if not scene.devices:
        return SYSTEM
    folders = {link.resolve().parent for link in _INTERFACES.glob("*")} | {_INTERFACES, _VIRTUAL}
    hidden = sorted(str(folder) for folder in folders if folder.is_dir())
    empty = (word for folder in hidden for word in ("--tmpfs", folder, "--remount-ro", folder))
    return ("--ro-bind", "/sys", "/sys", *empty)


_APART = (
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--hostname", HOSTNAME),
)
_AS_USER = ("--unshare-user", "--uid", str(USER), "--gid", str(USER), "--cap-drop", "ALL")


def _words(scene: Scene) -> tuple[str, ...]:
    return (*_APART, *_network(scene), *_files(scene))


def _network(scene: Scene) -> tuple[str, ...]:
    apart = () if scene.network else ("--unshare-net",)
    return apart if scene.terminal else (*apart, "--new-session")


def _files(scene: Scene) -> tuple[str, ...]:
    words = ["--ro-bind", str(scene.skeleton), "/", "--proc", "/proc", "--dev", "/dev"]
    words += _system(scene)
    for place in ("/tmp", "/run", "/dev/shm"):  # noqa: S108 - inside, each job has its own
        words += ["--perms", "1777", "--tmpfs", place]
    for folder in _missing(scene):
        words += ["--perms", "0755", "--dir", folder]
    for mount in scene.mounts:
        words += ["--bind" if mount.writable else "--ro-bind", str(mount.source), mount.target]
    for device in scene.devices:
        words += ["--dev-bind", device, device]
    return tuple(words)


def _missing(scene: Scene) -> list[str]:
    """Folders above mount points in the scratch folders, which bwrap would make for root alone."""
    targets = [PurePosixPath(mount.target) for mount in scene.mounts]
    above = {folder for target in targets if target.parts[1] in SCRATCH for folder in target.parents}
    return sorted(str(folder) for folder in above if len(folder.parts) > 2)


def _user(scene: Scene) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if not is_root():
        return _AS_USER, scene.command
    return (("--cap-drop", "ALL"), scene.command) if scene.as_caller else _as_root(scene)


def _as_root(scene: Scene) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """bwrap cannot be root outside and a plain user inside without handing root's files to that user."""
    added = (word for capability in STEP_DOWN_CAPABILITIES for word in ("--cap-add", capability))
    return ("--cap-drop", "ALL", *added), (*step_down(scene), *scene.command)
