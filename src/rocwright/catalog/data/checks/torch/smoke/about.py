"""What torch is at hand, and which devices it sees."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from typing import Any


def describe(torch: Any) -> dict[str, Any]:
    """Versions, the targets that torch was built for, and each device with its name, target and memory."""
    found: dict[str, Any] = {
        "torch": str(torch.__version__),
        "hip": str(getattr(torch.version, "hip", None) or ""),
        "cuda": str(torch.version.cuda or ""),
        "python": platform.python_version(),
        "executable": sys.executable,
        "threads": torch.get_num_threads(),
        "built_for": [],
        "devices": [],
        "why_none": "",
    }
    if not torch.backends.cuda.is_built():
        found["why_none"] = "this torch was built for the CPU alone"
        return found
    found["built_for"] = list(torch.cuda.get_arch_list())
    try:
        torch.cuda.init()
    except Exception as error:
        found["why_none"] = f"{type(error).__name__}: {error}"
        return found
    for index in range(torch.cuda.device_count()):
        told = torch.cuda.get_device_properties(index)
        found["devices"].append(
            {
                "index": index,
                "name": f"emulated {told.name}" if emulator_here() else told.name,
                "target": target(torch, told),
                "memory": told.total_memory,
                "units": told.multi_processor_count,
            }
        )
    return found


EMULATORS = ("librocjitsu",)
"""How the names of libraries begin that stand in for a GPU's driver; emulators.toml has them too."""


def emulator_here() -> str:
    """The library of an emulator in this process: what it shows is no GPU, whatever it is called."""
    try:
        lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    paths = [path for line in lines for path in line.split(maxsplit=5)[5:] if path.startswith("/")]
    return next((path for path in paths if path.rpartition("/")[2].startswith(EMULATORS)), "")


def target(torch: Any, properties: Any) -> str:
    """The device's target: what the HIP runtime calls it, or NVIDIA's compute capability."""
    if torch.version.hip:
        return str(getattr(properties, "gcnArchName", ""))
    return f"sm_{properties.major}{properties.minor}"
