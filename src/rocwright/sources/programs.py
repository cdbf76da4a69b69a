"""The programs of the host that builds start, by what they are for."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
from collections.abc import Iterable

from rocbase.errors import InputError
from rocwright.diagnosis.facts import host_facts

# Debian's package lists are read by these; mmdebstrap asks dpkg for the architecture.
LISTS = ("apt-get", "apt-cache", "mmdebstrap", "dpkg-deb", "unshare")
# unshare maps users other than the caller by it; root needs no such map.
_MAP = () if os.geteuid() == 0 else ("newuidmap",)
# For a root file system of Debian's packages, for one of an image, for sources in git.
PROGRAMS = {
    "debian": (*LISTS, *_MAP, "bwrap", "tar"),
    "image": ("skopeo", "unshare", *_MAP, "bwrap", "tar"),
    "git": ("git",),
}


def missing(purposes: Iterable[str]) -> tuple[str, ...]:
    """Return the programs for these purposes that are not on PATH."""
    programs = dict.fromkeys(program for purpose in purposes for program in PROGRAMS[purpose])
    return _absent(programs)


def _absent(programs: Iterable[str]) -> tuple[str, ...]:
    return tuple(program for program in programs if shutil.which(program) is None)


def install_command(programs: Iterable[str], ids: Iterable[str] = ()) -> str:
    """Return the command that installs programs on this distribution, or on that of these `ids`."""
    programs = [*programs]
    if not ids:
        with contextlib.suppress(OSError):
            release = platform.freedesktop_os_release()
            ids = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    # a derivative names itself first
    installers = (row for name in ids for row in host_facts().installer if name in row.ids)
    installer = next(installers, None)
    if installer is None:
        return f"install the packages of your distribution that have {', '.join(programs)}"
    packages = dict.fromkeys(installer.packages.get(program, program) for program in programs)
    absent = [program for program in programs if not installer.packages.get(program, program)]
    command = f"{installer.command} {' '.join(filter(None, packages))}"
    return f"{command}  # and {', '.join(absent)} from elsewhere" if absent else command


def check_programs(purposes: Iterable[str]) -> None:
    """Raise InputError, with all names, if programs for these purposes are not on PATH."""
    require_programs(missing(purposes))


def require_programs(programs: Iterable[str]) -> None:
    """Raise InputError, with all names, if some of these programs are not on PATH."""
    lacking = _absent(programs)
    if not lacking:
        return
    verb = "is" if len(lacking) == 1 else "are"
    raise InputError(
        f"{', '.join(lacking)} {verb} not installed",
        cause=f"PATH has no such program ({len(lacking)} of those that this starts)",
        next_step=f"{install_command(lacking)}; then try again",
    )
