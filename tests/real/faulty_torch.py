"""A torch that is made to fail: a sitecustomize on PYTHONPATH changes the real one after its import."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rocwright import sandbox
from rocwright.catalog.folders import DATA
from rocwright.sandbox.model import Mount, SandboxJob
from rocwright.verify.lines import MARK

HOOK = """\
import importlib.util, os, signal, sys, time

def change(torch):
{body}

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        run = spec.loader.exec_module
        def changed(module):
            run(module)
            change(module)
        spec.loader.exec_module = changed
        return spec

sys.meta_path.insert(0, Finder())
"""

FAULTS = {
    # one value of a product, off in its fourth digit
    "off by a little": """
right = torch.mm
def mm(a, b):
    found = right(a, b)
    if found.dtype == torch.float32 and found.numel() > 100:
        found[2, 5] += 3e-4 * found.abs().max()
    return found
torch.mm = mm
""",
    # one shape alone, as a tile's edge
    "off at one shape": """
right_conv = torch.nn.functional.conv2d
def conv2d(image, *rest, **named):
    found = right_conv(image, *rest, **named)
    if image.dtype == torch.float32 and image.shape[2] == 21:
        found[0, 3, 4, 4] *= 1.01
    return found
torch.nn.functional.conv2d = conv2d
""",
    "no number": """
right_softmax = torch.Tensor.softmax
def softmax(x, dim):
    found = right_softmax(x, dim)
    return torch.where(found == found.max(), float("nan"), found) if x.dtype == torch.float16 else found
torch.Tensor.softmax = softmax
""",
    "crash": """
def topk(*ignored):
    print("Memory access fault by GPU node-1 on address 0x7f. Reason: Page not present", flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)
torch.Tensor.topk = topk
""",
    "hang": """
torch.fft.rfft = lambda x: time.sleep(600)
""",
    "missing kernels": """
def bmm(*ignored):
    raise RuntimeError("HIP error: invalid device function\\nHIP kernel errors might be reported later")
torch.bmm = bmm
def solve(*ignored):
    raise RuntimeError("CUDA error: no kernel image is available for execution on the device")
torch.linalg.solve = solve
""",
    # the last bit of a product is any: no seed reaches it
    "other bits each time": """
drifting = torch.mm
def mm(a, b):
    found = drifting(a, b)
    if found.dtype == torch.float32 and found.numel() > 1:
        found.view(torch.int32).flatten()[1] ^= os.urandom(1)[0] & 1
    return found
torch.mm = mm
""",
    # the same, and torch says so
    "other bits, as torch says": """
told = torch.bmm
def bmm(a, b):
    if torch.are_deterministic_algorithms_enabled():
        raise RuntimeError("bmm does not have a deterministic implementation, but you set ...")
    found = told(a, b)
    if found.dtype == torch.float32 and found.numel() > 1:
        found.view(torch.int32).flatten()[1] ^= os.urandom(1)[0] & 1
    return found
torch.bmm = bmm
""",
    # as kernels that run at once do
    "other bits unless it blocks": """
alone = torch.mv
def mv(a, b):
    found = alone(a, b)
    if found.dtype == torch.float32 and found.numel() > 1 and not os.environ.get("HIP_LAUNCH_BLOCKING"):
        found.view(torch.int32).flatten()[1] ^= os.urandom(1)[0] & 1
    return found
torch.mv = mv
""",
    "crash at import": "os.kill(os.getpid(), signal.SIGABRT)\n",
    "missing library": """
raise ImportError("libMIOpen.so.1: cannot open shared object file: No such file or directory")
""",
}


Rows = dict[str, dict[str, Any]]
Run = Callable[..., Rows]
"""Runs the torch suite with a folder first on PYTHONPATH, and gives its outcomes by `group/name`."""


def write(folder: Path, *faults: str) -> None:
    """Write a sitecustomize with these faults into the folder."""
    lines = [f"    {line}" for one in faults for line in FAULTS[one].splitlines() if line]
    (folder / "sitecustomize.py").write_text(HOOK.replace("{body}", "\n".join(lines)))
    # a sandbox reads it as another user than the tests'
    folder.chmod(0o755)


def rows(output: str) -> Rows:
    """The outcomes in what the suite printed with --marks."""
    found = [json.loads(line.removeprefix(MARK)) for line in output.splitlines() if line.startswith(MARK)]
    return {one["name"].partition(": ")[2]: one for one in found}


def sandboxed(root: Path, engine: str) -> Run:
    """The suite in a root file system that has torch, as `rocwright verify` runs it."""

    def run(folder: Path, *words: str, suite: str = "torch") -> Rows:
        lines: list[str] = []
        job = SandboxJob(
            root=root,
            argv=("python3", "/catalog/checks/torch/suite.py", suite, "--marks", *words),
            env={"PATH": "/usr/bin:/bin", "HOME": "/tmp", "PYTHONPATH": "/faults", "LANG": "C.UTF-8"},
            mounts=(Mount(source=DATA, target="/catalog"), Mount(source=folder, target="/faults")),
            seconds=600,
        )
        sandbox.run(sandbox.ENGINES[engine], job, lines.append)
        return rows("\n".join(lines))

    return run


def outside(python: str) -> Run:
    """The suite with an interpreter of this machine."""

    def run(folder: Path, *words: str, suite: str = "torch") -> Rows:
        done = subprocess.run(
            [python, DATA / "checks/torch/suite.py", suite, "--marks", *words],
            env=os.environ | {"PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        return rows(done.stdout)

    return run
