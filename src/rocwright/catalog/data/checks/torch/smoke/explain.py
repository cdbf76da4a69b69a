"""What an error of a device, or the end of a process, means, and what to do next. Pure: text in, text out."""

from __future__ import annotations

import re
import signal
from typing import NamedTuple


class Explanation(NamedTuple):
    """The likely cause, and the next step; both empty where nobody knows."""

    cause: str = ""
    next_step: str = ""


class Fault(NamedTuple):
    """A text that is known: a regular expression, what it means, what to do, and who has seen it."""

    pattern: str
    cause: str
    next_step: str
    source: str


FAULTS = (
    Fault(
        r"hipErrorNoBinaryForGpu|no kernel image is available|no binary for gpu|Unable to find code object",
        "missing kernels: this build holds no machine code for this device",
        "compare the targets that torch was built for with the device's (about/targets); build torch for it, "
        "or install a build that has it",
        "ROCm/legacy-rocm-build #1623, #2061, #1867",
    ),
    Fault(
        r"invalid device function",
        "missing kernels: the library under way was built for other targets than this device",
        "build that library (or torch) for the device's target; an override hides this until here",
        "pytorch #164346, #132570",
    ),
    Fault(
        r"Cannot read \S*TensileLibrary|Illegal seek for GPU arch|no such file.*[Tt]ensile",
        "missing kernels: the BLAS library carries no kernel files for this device",
        "build that library for the target, or take a release of it that has the target",
        "ROCm/rocBLAS #1339",
    ),
    Fault(
        r"HSA_STATUS_ERROR_INVALID_ISA",
        "missing kernels: the target set by an override is none that this device can run",
        "drop the override, and build for the device's own target",
        "likelovewant/ROCmLibs-for-gfx1103-AMD780M-APU #37",
    ),
    Fault(
        r"Memory access fault by GPU|illegal memory access|HSA_STATUS_ERROR_MEMORY",
        "a kernel read or wrote memory that is not its own",
        "run the operation alone (--only), with launches made one by one; then look for a known fault of the "
        "target, the driver or the firmware",
        "ROCm/legacy-rocm-build #5616, #5747; text of CUDA",
    ),
    Fault(
        r"HSA_STATUS_ERROR_OUT_OF_RESOURCES|[Oo]ut of memory|OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED",
        "the device has too little free memory for this size",
        "end what else uses the device, or take --size small",
        "text of torch, HIP and CUDA",
    ),
    Fault(
        r"undefined symbol|symbol lookup error",
        "a library was built against another version of what it is loaded with",
        "install torch and what stands on it from one build; look for a second copy of the library named",
        "text of the dynamic linker",
    ),
    Fault(
        r"cannot open shared object file",
        "a library that torch needs is not installed, or not where the loader looks",
        "install the package that holds the library named, or add its folder to those of the loader",
        "text of the dynamic linker",
    ),
    Fault(
        r"Permission denied.*(kfd|dri)|(kfd|dri)\S*.*Permission denied|Unable to open /dev/kfd",
        "the device files may not be opened by this user",
        "add the user to the groups that own the device files, and log in anew",
        "text of the ROCm runtime",
    ),
    Fault(
        r"operator \S+::\S+ does not exist",
        "the package's compiled library did not load beside this torch: it was built against another",
        "install the package built for this torch (same version, same kind of GPU)",
        "seen: torchvision 0.28.0 for CUDA beside torch 2.13.0 for the CPU",
    ),
    Fault(
        r"No module named '(torch|numpy)'",
        "the Python that runs the suite has no such package",
        "name the Python of the environment: rocwright verify --suite torch --python VENV/bin/python",
        "text of Python",
    ),
)

STICKY = r"(HIP|CUDA) error|hipError|cudaError|AcceleratorError|device-side assert"
"""After such an error the process's device is lost: what follows must run in a new process."""

NO_KERNEL_FOR_TYPE = (
    r"not implemented for '|not implemented for (Half|BFloat16)|not supported for (Half|BFloat16)"
)
"""torch has no such operation in this type: nothing was computed, so nothing is wrong."""


def explain(text: str) -> Explanation:
    """The cause and next step of the first known fault in a text."""
    for fault in FAULTS:
        if re.search(fault.pattern, text):
            return Explanation(fault.cause, fault.next_step)
    return Explanation()


def sticky(text: str) -> bool:
    """Whether the device is lost to the process that said so; missing kernels leave it as it was."""
    return re.search(STICKY, text) is not None and not explain(text).cause.startswith("missing kernels")


def no_kernel_for_type(text: str) -> bool:
    """Whether torch said that it has no such operation in this type."""
    return re.search(NO_KERNEL_FOR_TYPE, text) is not None


def ended(returncode: int) -> str:
    """How a process ended, in words: the signal by its name, or the exit status."""
    number = -returncode if returncode < 0 else returncode - 128
    if returncode < 0 or 128 < returncode < 128 + 65:
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return f"ended by {name}"
    return f"ended with status {returncode}"


def tail(text: str, lines: int = 4, width: int = 600) -> str:
    """The last lines that say something, as one; the end of them where they are long."""
    said = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(said[-lines:])[-width:] or "it said nothing"


def head(text: str, lines: int = 2, width: int = 400) -> str:
    """The first lines that say something, as one; the beginning of them where they are long."""
    said = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(said[:lines])[:width]


def crash_explanation(returncode: int, said: str) -> Explanation:
    """Why a process may have ended without a word of its own."""
    known = explain(said)
    if known.cause:
        return known
    if "SIGKILL" in ended(returncode):
        return Explanation(
            "the system ended it, most likely for want of memory", "take --size small, or free memory"
        )
    return Explanation(
        "the operation named ended its process: a fault in its kernels or in the libraries under them",
        "run it alone with --only and its name; what it said last stands above",
    )
