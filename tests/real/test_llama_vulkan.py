"""llama-vulkan, built and run for real on a Vulkan device that is a program."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from tests.real.stacks import build_and_verify, rocwright

from rocwright.home import Home

pytestmark = [pytest.mark.real, pytest.mark.nightly]


def test_llama_vulkan_is_built_and_runs_on_a_vulkan_device(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "llama"
    built = build_and_verify(home, folder, "llama-vulkan", "gfx1151")
    failed = [one for one in built["findings"] if not one["ok"]]
    assert not failed, failed
    names = {one["name"] for one in built["findings"]}
    assert {"same-greedy-tokens", "logits-close", "server-chat"} <= names

    (image,) = [one for one in built["artifacts"] if one["filename"].endswith(".oci.tar")]
    with tarfile.open(image["path"]) as layout:
        members = set(layout.getnames())
    assert {"oci-layout", "index.json"} <= members

    measured = json.loads(rocwright(home, folder, "bench", "--runs", "2", "--json"))
    assert {one["name"] for one in measured} == {
        "prompt",
        "generation",
        "server start",
        "server, 1 user",
        "server, 8 users",
    }
    # there is no GPU where this runs: the device that is named is a program
    assert all(one["device"].startswith("llvmpipe") and len(one["values"]) == 2 for one in measured)
    shown = rocwright(home, folder, "bench", "--compare", "llama-vulkan")
    assert "in software" in shown

    again = json.loads(rocwright(home, folder, "build", "--json"))
    assert again["run"]["steps"] == []
    words = ("llama-vulkan", "--gpu", "gfx1151")
    rocwright(home, folder, "lock", *words)
    other = json.loads(rocwright(home, folder, "plan", *words, "--json"))
    assert {one["state"] for one in other if one["kind"] == "run"} == {"in store"}
