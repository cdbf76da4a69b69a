"""The three stacks, built and verified for real by the command: real compilers, real sandboxes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rocwright.bases.roots import remove_tree
from rocwright.catalog.load import builtin_catalog
from rocwright.home import Home
from rocwright.plan.make import make_plan
from rocwright.resolve.files import read_lock
from rocwright.sandbox import ENGINES, probe_all

pytestmark = pytest.mark.real

ISOLATING = [name for name, engine in ENGINES.items() if engine.isolates]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """One home for all stacks, as on a user's machine; removed at the end, it is large."""
    path = tmp_path_factory.mktemp("home")
    yield Home(path)
    remove_tree(path)


def rocwright(home: Home, folder: Path, *words: str, check: bool = True) -> str:
    """Run the command as a user does; gives its standard output."""
    done = subprocess.run(
        [sys.executable, "-m", "rocwright", *words],
        cwd=folder,
        env=os.environ | {"ROCWRIGHT_HOME": str(home.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not check or done.returncode == 0, done.stderr[-4000:] + done.stdout[-2000:]
    return done.stdout


def build_and_verify(home: Home, folder: Path, stack: str, gpus: str) -> dict[str, Any]:
    folder.mkdir()
    rocwright(home, folder, "init", "--stack", stack, "--gpu", gpus)
    rocwright(home, folder, "lock")
    built: dict[str, Any] = json.loads(rocwright(home, folder, "build", "--verify", "--json"))
    return built


def test_gfx_smoke_is_built_for_three_gpus_and_is_the_same_in_every_engine(
    home: Home, tmp_path: Path
) -> None:
    folder = tmp_path / "gfx-smoke"
    built = build_and_verify(home, folder, "gfx-smoke", "gfx803,gfx1103,gfx1151")
    (artifact,) = built["artifacts"]
    (finding,) = [one for one in built["findings"] if one["check"] == "machine-code"]
    assert finding["ok"], finding
    assert "gfx803, gfx1103, gfx1151" in finding["detail"]

    lock = read_lock(folder / "rocwright.lock")
    step = next(one for one in make_plan(lock, builtin_catalog()).steps if one.name == "gfx-smoke")
    tried = []
    for probe in probe_all(home.probes):
        if probe.engine not in ISOLATING or not probe.ok:
            continue
        store = home.store
        for path in (store / "records").glob("??/*.json"):
            if json.loads(path.read_text())["step"] == step.name:
                path.unlink()
        again = json.loads(rocwright(home, folder, "build", "--engine", probe.engine, "--json"))
        ran = [one for one in again["run"]["steps"] if one["name"] == step.name]
        assert [(one["outcome"], one["engine"]) for one in ran] == [("built", probe.engine)]
        assert again["artifacts"][0]["sha256"] == artifact["sha256"], probe.engine
        tried.append(probe.engine)
    wanted = {"podman", "buildah", "bubblewrap", "nspawn"} if os.environ.get("CI") else {"bubblewrap"}
    assert wanted <= set(tried)


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

    again = json.loads(rocwright(home, folder, "build", "--json"))
    assert again["run"]["steps"] == []
    other = json.loads(rocwright(home, folder, "plan", "llama-vulkan", "--gpu", "gfx1151", "--json"))
    assert {one["state"] for one in other if one["kind"] == "run"} == {"in store"}


def test_torch_extensions_are_built_against_the_torch_of_the_base(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "torch"
    built = build_and_verify(home, folder, "torch-extensions", "gfx1151")
    failed = [one for one in built["findings"] if not one["ok"]]
    assert not failed, failed
    assert {one["filename"].split("-")[0] for one in built["artifacts"]} == {"torchvision", "torchaudio"}
    lock = read_lock(folder / "rocwright.lock")
    assert lock.provided == {"torch": "2.6.0"}
    assert not any(step["name"] == "torch" for step in built["run"]["steps"])
    index = folder / "rocwright-out" / "simple" / "torchvision" / "index.html"
    assert "torchvision-0.21.0" in index.read_text()
