"""What is exported stands alone: built by another tool, without rocwright, it gives the same artifact."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real.stacks import rocwright

from rocwright.bases.roots import remove_tree
from rocwright.files import sha256_file
from rocwright.home import Home
from rocwright.resolve.files import read_lock
from rocwright.sandbox import cgroup
from rocwright.store.local import LocalStore

pytestmark = pytest.mark.real


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder for all of it; buildah's storage in it may hold mounts, and is large."""
    yield tmp_path
    storage = storage_of(tmp_path)
    for words in (["rm", "--all"], ["rmi", "--all", "--force"]):
        subprocess.run(["buildah", *storage, *words], capture_output=True, check=False)
    remove_tree(tmp_path)


def storage_of(place: Path) -> list[str]:
    return ["--root", str(place / "storage"), "--runroot", str(place / "runroot")]


def isolation() -> list[str]:
    """crun refuses machines with cgroups of both versions."""
    runc = not cgroup.unified() and shutil.which("runc")
    return ["--isolation", "oci", *(["--runtime", "runc"] if runc else [])]


@pytest.mark.skipif(shutil.which("buildah") is None, reason="buildah is not installed")
@pytest.mark.skipif(os.geteuid() != 0, reason="buildah's storage in a folder of the test needs root")
def test_an_exported_containerfile_gives_the_same_artifact(place: Path) -> None:
    project, context = place / "project", place / "context"
    project.mkdir()
    home = Home(place / "home")
    rocwright(home, project, "init", "--stack", "gfx-smoke", "--gpu", "gfx1151")
    rocwright(home, project, "lock")
    (artifact,) = json.loads(rocwright(home, project, "build", "--json"))["artifacts"]
    rocwright(home, project, "export", "containerfile", "--out", str(context))
    lock = read_lock(project / "rocwright.lock")
    store = LocalStore(home.store)
    for root in lock.roots:
        packages = context / "base/packages" / root.role
        packages.mkdir(parents=True)
        # what the script would download, from the copies that are here already
        for pin in root.packages:
            shutil.copyfile(store.verified(pin.sha256), packages / pin.filename)
    subprocess.run(["./prepare.sh"], cwd=context, check=True)
    root_files = subprocess.run(
        ["tar", "-tf", "base/build.tar"], cwd=context, capture_output=True, text=True, check=True
    )
    assert "./usr/bin/python3" in root_files.stdout
    out = place / "out"
    build = ["build", *isolation(), "--network", "none", "--output", f"type=local,dest={out}", "."]
    subprocess.run(["buildah", *storage_of(place), *build], cwd=context, check=True)
    assert sha256_file(out / artifact["filename"]) == artifact["sha256"]
