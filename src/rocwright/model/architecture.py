"""The processors that stacks are built for."""

from __future__ import annotations

from enum import StrEnum


class Architecture(StrEnum):
    """A processor, by the kernel's name for it: what `uname -m` says."""

    X86_64 = "x86_64"
    AARCH64 = "aarch64"
