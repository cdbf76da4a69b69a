"""LLVM's tools."""

from __future__ import annotations

import shutil

from rocwheel_samples import MissingError

LLVM = "22"
"""The release whose clang, lld and LLVM tools the tests compile and compare with (see tools/prepare)."""


def llvm(tool: str) -> str:
    """The path of one of LLVM's tools. Raises MissingError where it is not installed."""
    # by its folder first: clang-offload-bundler looks for llvm-objcopy beside the name that it was called by
    found = shutil.which(f"/usr/lib/llvm-{LLVM}/bin/{tool}") or shutil.which(f"{tool}-{LLVM}")
    if found is None:
        raise MissingError(f"{tool}-{LLVM} is not installed")
    return found
