"""The programs of the host that builds start, by what they are for."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
from collections.abc import Iterable

from rocbase.errors import InputError
from rocwright.diagnosis.facts import Installer, host_facts

# unshare maps users other than the caller by it; root needs no such map.
_MAP = () if os.geteuid() == 0 else ("newuidmap",)
# For a root file system of Debian's packages, for one of an image, for sources in git, for servers.
PROGRAMS = {
    "debian": ("unshare", *_MAP, "tar"),
    "image": ("skopeo", "unshare", *_MAP, "bwrap", "tar"),
    "git": ("git",),
    "serve": ("bwrap",),
}


def missing(purposes: Iterable[str], *, tools: bool = True, ids: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the programs for these purposes that are not on PATH.

    Without `tools` a root of Debian also takes a program that makes the tools root: one that this
    distribution, or that of these `ids`, has packages of.
    """
    purposes = [*purposes]
    maker = () if tools or "debian" not in purposes or tools_sources() else _first_source(ids)
    return _absent(dict.fromkeys([*maker, *(name for purpose in purposes for name in PROGRAMS[purpose])]))


def tools_sources() -> list[str]:
    """Return the programs of this host that a tools root can be made by, the best first."""
    sources = host_facts().tools_root.sources.items()
    return [name for name, others in sources if not _absent([name, *others])]


def _first_source(ids: Iterable[str]) -> tuple[str, ...]:
    """Return the programs of the first source that a distribution has packages of."""
    packages = installer.packages if (installer := _installer(ids)) else {}
    sources = ((name, *others) for name, others in host_facts().tools_root.sources.items())
    return next(names for names in sources if all(packages.get(name, name) for name in names))


def _absent(programs: Iterable[str]) -> tuple[str, ...]:
    return tuple(program for program in programs if shutil.which(program) is None)


def install_command(programs: Iterable[str], ids: Iterable[str] = ()) -> str:
    """Return the command that installs programs on this distribution, or on that of these `ids`."""
    programs, installer = [*programs], _installer(ids)
    if installer is None:
        return f"install the packages of your distribution that have {', '.join(programs)}"
    packages = dict.fromkeys(installer.packages.get(program, program) for program in programs)
    absent = [program for program in programs if not installer.packages.get(program, program)]
    command = f"{installer.command} {' '.join(filter(None, packages))}"
    return f"{command}  # and {', '.join(absent)} from elsewhere" if absent else command


def _installer(ids: Iterable[str] = ()) -> Installer | None:
    if not ids:
        with contextlib.suppress(OSError):
            release = platform.freedesktop_os_release()
            ids = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    # a derivative names itself first
    return next((row for name in ids for row in host_facts().installer if name in row.ids), None)


def check_programs(purposes: Iterable[str], *, tools: bool, otherwise: str = "") -> None:
    """Raise InputError, with all names, if `missing` programs for these purposes are not on PATH.

    `otherwise` is what else the user can do.
    """
    lacking = missing(purposes, tools=tools)
    if not lacking:
        return
    verb = "is" if len(lacking) == 1 else "are"
    raise InputError(
        f"{', '.join(lacking)} {verb} not installed",
        cause=f"PATH has no such program ({len(lacking)} of those that this starts)",
        next_step=f"{install_command(lacking)}; then try again{f', or {otherwise}' if otherwise else ''}",
    )
