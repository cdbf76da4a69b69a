"""Extension modules that cannot be loaded, or register nothing, are found where their wheel is checked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from rocwheel_samples.trees import write_tree
from rocwright.catalog.folders import DATA

TORCH = """import ctypes
names = ["own"]

class _C:
    _dispatch_get_all_op_names = staticmethod(lambda: list(names))

class ops:
    @staticmethod
    def load_library(path):
        names.extend(f"op{one}" for one in range(ctypes.CDLL(path, ctypes.RTLD_GLOBAL | 2).operators()))
"""
"""Loads as torch does, at once with all symbols, and asks the library how many operators it has."""


def test_each_module_is_loaded_with_all_its_symbols_and_counted(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            "torch.py": TORCH,
            "good.c": "int operators(void) { return 3; }",
            "empty.c": "int operators(void) { return 0; }",
            "lacks.c": "int cutlass(void); int operators(void) { return cutlass(); }",
        },
    )
    (tmp_path / "engine").mkdir()
    for name in ("good", "empty", "lacks"):
        made = ["gcc", "-shared", "-fPIC", f"{name}.c", "-o", f"engine/{name}.so"]
        subprocess.run(made, cwd=tmp_path, check=True)
    names = ["engine/good.so", "engine/empty.so", "engine/lacks.so", "engine/nowhere.so"]
    done = subprocess.run(
        [sys.executable, DATA / "checks/torch/loads.py", *names],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    told = [json.loads(line.removeprefix("ROCWRIGHT-CHECK ")) for line in done.stdout.splitlines()]
    assert [(one["name"], one["ok"]) for one in told] == [
        ("loads/engine/good.so", True),
        ("loads/engine/empty.so", False),
        ("loads/engine/lacks.so", False),
        ("loads/engine/nowhere.so", False),
    ]
    assert told[0]["detail"] == "3 operators"
    assert "undefined symbol: cutlass" in told[2]["detail"]
