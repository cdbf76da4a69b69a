"""Runs `rocm-sdk test`, which is in the Python packages of ROCm that were built, on a machine with a GPU.

usage: sdk.py OUTPUTS FOLDER      the folder with the packages, and one that this may write

Prints one line: ROCWRIGHT-CHECK {"name": ..., "ok": ..., "detail": ...}. The test calls rocminfo, rocm-smi
and amd-smi, which want a GPU: without the compute driver's device nothing is tried, and the line says so.
Needs Python 3.11 with venv, and setuptools: the package with the command is a source distribution.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

MARK = "ROCWRIGHT-CHECK "
DRIVER = Path("/dev/kfd")
NAME = "rocm-sdk test"


def tell(ok: bool, detail: str, **more: str) -> int:
    # without a device: whether a kernel ran on the card is not known
    print(MARK + json.dumps({"name": NAME, "ok": ok, "detail": detail} | more), flush=True)
    return 0 if ok else 1


def last(text: str) -> str:
    """The end of what a program said, on one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-4:])[-400:]


def run(words: list[str]) -> subprocess.CompletedProcess[str]:
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(words, text=True, errors="replace", check=False, **pipe)
    print(done.stdout, flush=True)
    return done


def main(outputs: Path, folder: Path, driver: Path = DRIVER) -> int:
    if not driver.exists():
        return tell(True, f"it wants a GPU, and there is no {driver} here", state="absent")
    packages = sorted(map(str, (*outputs.glob("rocm_sdk_*.whl"), *outputs.glob("rocm-*.tar.gz"))))
    if not packages:
        return tell(False, f"no Python package of ROCm in {outputs}")
    venv.create(folder, with_pip=True, system_site_packages=True)
    pip = [f"{folder}/bin/python", "-m", "pip", "install", "--no-index", "--no-deps", "--no-build-isolation"]
    installed = run([*pip, *packages])
    if installed.returncode:
        return tell(False, f"pip could not install the packages: {last(installed.stdout)}")
    tested = run([f"{folder}/bin/rocm-sdk", "test"])
    return tell(tested.returncode == 0, last(tested.stdout) or f"ended with {tested.returncode}")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
