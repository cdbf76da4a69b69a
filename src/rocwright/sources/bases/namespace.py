"""A user namespace in which root file systems are made: its root owns one folder of the host.

A plain user has the range of user ids in /etc/subuid for it, root one of its own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from rocbase.processes.python import python_module
from rocwright.sandbox import seccomp
from rocwright.sandbox.bubblewrap import SYSTEM
from rocwright.sandbox.engine import HOSTNAME
from rocwright.sources.bases import enter

# Where the folder is seen by the command: the folders above it may be closed to the namespace.
PLACE = PurePosixPath("/tmp")  # noqa: S108 - the mount is seen in the namespace only

# Where the namespace shows the tools root, below PLACE.
TOOLS = "tools"

# What bwrap needs of the host where it is the tools root's own, which is entered for it.
_ENTER = """mount --rbind "$1" "$1/tools/tmp"
for name in dev proc sys; do mount --rbind "/$name" "$1/tools/$name"; done"""
_PRIVATE = """set -e
mount --make-rprivate /
while [ "$1" != -- ]; do mount --bind "$1" "$2"; shift 2; done
shift
{enter}
mount --rbind "$1" "$2"
shift 2
exec "$@"
"""


def in_namespace(
    folder: Path, command: Sequence[str], binds: Mapping[str, Path] | None = None, *, ids: bool = True
) -> list[str]:
    """Return the words that run `command` as root of a user namespace, with `folder` at PLACE.

    `binds` are more folders by their names below PLACE. Without `ids` root is the only user there and owns
    what the caller owns, which takes no range of user ids.
    """
    words = ["sh", "-c", _PRIVATE.format(enter=_ENTER if _enters(binds) else ""), "sh"]
    for name, path in (binds or {}).items():
        (folder / name).mkdir(exist_ok=True)
        words += [str(path.absolute()), str(folder.absolute() / name)]
    words += ["--", str(folder.absolute()), str(PLACE)]
    if not ids:
        return ["unshare", "--map-root-user", "--mount", *words, *command]
    if os.geteuid() == 0:
        return ["unshare", "--mount", *words, *python_module(enter.__name__, *command)]
    return ["unshare", "--map-auto", "--map-root-user", "--mount", *words, *command]


def _enters(binds: Mapping[str, Path] | None) -> bool:
    return TOOLS in (binds or {}) and shutil.which("bwrap") is None


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
    binds: Mapping[str, Path] | None = None,
    ids: bool = True,
    directory: str = "/",
    network: bool = False,
    mounting: bool = False,
) -> list[str]:
    """Return the words that run `command` as root of a sandbox that sees `mounts` alone.

    `mounts` are words of bubblewrap that name what lies in `folder` by its place below PLACE; `binds` and
    `ids` are those of `in_namespace`; the command starts in `directory`. With `mounting` it may mount in the
    sandbox. Raises SandboxError without libseccomp.
    """
    rules = folder / "seccomp.bpf"
    rules.write_bytes(seccomp.program(seccomp.MOUNTING if mounting else ()))
    # everybody inside can read the command line and the environment of bwrap
    words = ["env", "-i", f"PATH={os.environ['PATH']}", "sh", "-c", _FILTERED, "sh", str(PLACE / rules.name)]
    words += ["chroot", str(PLACE / TOOLS)] if _enters(binds) else []
    words += ["bwrap", "--seccomp", "9", *_APART, *([] if network else ["--unshare-net"])]
    words += [*mounts, "--chdir", directory]
    for name in (*CAPABILITIES, *(("SYS_ADMIN",) if mounting else ())):
        words += ["--cap-add", f"CAP_{name}"]
    for name, text in environment.items():
        words += ["--setenv", name, text]
    return in_namespace(folder, [*words, "--", *command], binds, ids=ids)


_APART = (
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--hostname", HOSTNAME),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"),
)


# What programs need of /etc to start; the settings of apt and how names are resolved are the host's.
_ETC = ("alternatives", "dpkg", "group", "ld.so.cache", "nsswitch.conf", "passwd", "ssl")
_HOST_ETC = ("hosts", "resolv.conf")
_HOST_APT = ("apt.conf", "apt.conf.d", "auth.conf", "auth.conf.d", "trusted.gpg.d")


def programs(root: PurePosixPath = PLACE / TOOLS) -> list[str]:
    """Return the mounts that show the programs of a root, as the namespace sees it, and what they need."""
    words = ["--ro-bind", f"{root}/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib64"):
        words += ["--symlink", f"usr/{name}", f"/{name}"]
    for name in _ETC:
        words += ["--ro-bind-try", f"{root}/etc/{name}", f"/etc/{name}"]
    return [*words, "--proc", "/proc", "--dev", "/dev", *SYSTEM]


def host_settings(folder: Path) -> list[str]:
    """Copy the host's settings of apt and of name resolution to `folder`; return the mounts that show them.

    They are copied because a link in /etc may lead to what a sandbox does not show. What the caller may not
    read is left out.
    """
    for name in ("apt.conf.d", "preferences.d", "trusted.gpg.d"):
        (folder / "apt" / name).mkdir(parents=True)
    for name in (*_HOST_ETC, *(f"apt/{name}" for name in _HOST_APT)):
        source, copy = Path("/etc", name), folder / name
        with contextlib.suppress(OSError, shutil.Error):
            if source.is_dir():
                shutil.copytree(source, copy, dirs_exist_ok=True)
            else:
                shutil.copyfile(source, copy)
    proxies = [
        f'Acquire::{name}::Proxy "{proxy}";\n' for name in ("http", "https") if (proxy := _proxy(name))
    ]
    (folder / "apt/apt.conf.d/99environment").write_text("".join(proxies))
    shown = (name for name in ("apt", *_HOST_ETC) if (folder / name).exists())
    return [word for name in shown for word in ("--ro-bind", str(PLACE / name), f"/etc/{name}")]


def _proxy(scheme: str) -> str:
    """Return the proxy that the caller's environment names; "" for none that apt's settings can hold."""
    proxy = next(filter(None, (os.environ.get(name) for name in (f"{scheme}_proxy", "all_proxy"))), "")
    return "" if set(proxy) & set('";\n') else proxy
