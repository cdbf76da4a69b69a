"""gfx-smoke on an emulated GPU, where an emulator is installed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.real.stacks import build_and_verify, rocwright

from rocwheel.wheels.emulators import emulators
from rocwright.home import Home

INSTALLED = [
    one
    for one in emulators()
    if shutil.which(one.program) or shutil.which(one.program, path=":".join(one.places))
]
TARGETS = ("gfx1103", "gfx1151")

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not INSTALLED, reason="no emulator of a GPU is installed"),
]


def test_gfx_smoke_runs_on_each_emulated_gpu_and_is_recorded_as_that(home: Home, tmp_path: Path) -> None:
    smoke = tmp_path / "gfx-smoke"
    build_and_verify(home, smoke, "gfx-smoke", ",".join(TARGETS))
    found = json.loads(rocwright(home, smoke, "verify", "--device", "emulated", "--json"))
    assert all(one["ok"] for one in found), [one for one in found if not one["ok"]]
    for target in TARGETS:
        on = [one for one in found if one["device"] == f"emulated {target} (rocjitsu)"]
        told = {one["name"]: one["detail"] for one in on}
        assert {"vector add fp32", "histogram int32", "reduction fp32", "thread_ids"} <= set(told)
        assert told["version"].startswith("rocjitsu ")
        assert "configuration sha256" in told["emulator"]
    run = json.loads(rocwright(home, smoke, "history", "--json"))[0]
    assert run["said"] == "ran on an emulated GPU"
