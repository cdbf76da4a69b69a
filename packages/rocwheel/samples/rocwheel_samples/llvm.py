"""LLVM's tools."""

from __future__ import annotations

import shutil

from rocwheel_samples import MissingError

LLVM = "19"
"""The release whose clang, lld and LLVM tools the tests compile and compare with (see tools/prepare)."""

NEW_LLVM = "22"
"""A release that knows the newest targets, and makes SPIR-V alone; its llvm-objdump lists HIP's bundles."""


def llvm(tool: str, release: str = LLVM) -> str:
    """The path of one of LLVM's tools. Raises MissingError where it is not installed."""
    # by its folder first: clang-offload-bundler looks for llvm-objcopy beside the name that it was called by
    found = shutil.which(f"/usr/lib/llvm-{release}/bin/{tool}") or shutil.which(f"{tool}-{release}")
    if found is None:
        raise MissingError(f"{tool}-{release} is not installed")
    return found
