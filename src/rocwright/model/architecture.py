"""The processors that stacks are built for."""

from __future__ import annotations

import platform
from enum import StrEnum

from rocbase.errors import InputError


class Architecture(StrEnum):
    """A processor, by the kernel's name for it: what `uname -m` says."""

    X86_64 = "x86_64"
    AARCH64 = "aarch64"


def host_architecture() -> Architecture:
    """The architecture of this machine. Raises InputError where nothing is built for it."""
    architecture = host()
    if architecture is None:
        raise InputError(
            f"nothing is built for {platform.machine()} machines, and this is one",
            cause=f"stacks are built for {' and '.join(Architecture)}",
            next_step=f"use another machine; to plan for it from here, name it: --arch {Architecture.X86_64}",
        )
    return architecture


def architecture_named(name: str) -> Architecture:
    """The architecture of that name, this machine's where it is "". Raises InputError for any other name."""
    if not name:
        return host_architecture()
    if name not in list(Architecture):
        raise InputError(
            f"{name!r} is not an architecture that stacks are built for",
            cause=f"these are: {', '.join(Architecture)}",
            next_step="name one of them, or leave it out for this machine's",
        )
    return Architecture(name)


def host() -> Architecture | None:
    """The architecture of this machine, or None where nothing is built for it."""
    return next((architecture for architecture in Architecture if architecture == platform.machine()), None)


def cannot_build(architecture: str) -> str:
    """What is said of this machine where it cannot run the programs of an architecture, or ""."""
    return "" if architecture == host() else f"cannot build for {architecture} (it is {platform.machine()})"


def described() -> str:
    """The processor and kernel of this machine, as evidence names them."""
    return f"{platform.machine()} Linux {platform.release()}"
