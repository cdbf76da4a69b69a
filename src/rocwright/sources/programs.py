"""The programs of the host that builds start, by what they are for."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

from rocbase.errors import InputError

# For a root file system of Debian's packages, for one of an image, for sources in git.
PROGRAMS = {
    "debian": ("apt-get", "apt-cache", "mmdebstrap", "dpkg-deb", "unshare", "bwrap", "tar"),
    "image": ("skopeo", "unshare", "bwrap", "tar"),
    "git": ("git",),
}

_PACKAGES = {
    "apt-cache": "apt",
    "apt-get": "apt",
    "bwrap": "bubblewrap",
    "dpkg-deb": "dpkg",
    "unshare": "util-linux",
}


def missing(purposes: Iterable[str]) -> tuple[str, ...]:
    """Return the programs for these purposes that are not on PATH."""
    programs = dict.fromkeys(program for purpose in purposes for program in PROGRAMS[purpose])
    return tuple(program for program in programs if shutil.which(program) is None)


def debian_packages(programs: Iterable[str]) -> str:
    """Return the names of Debian's packages that have these programs."""
    return " ".join(dict.fromkeys(_PACKAGES.get(program, program) for program in programs))


def check_programs(purposes: Iterable[str]) -> None:
    """Raise InputError, with all names, if programs for these purposes are not on PATH."""
    lacking = missing(purposes)
    if not lacking:
        return
    verb = "is" if len(lacking) == 1 else "are"
    raise InputError(
        f"{', '.join(lacking)} {verb} not installed",
        cause=f"PATH has no such program ({len(lacking)} of those that this build starts)",
        next_step=f"install it (on Debian and Ubuntu: apt-get install {debian_packages(lacking)}), then try "
        "again",
    )
