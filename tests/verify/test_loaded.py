"""A library rebuilt for a card is carried by what was built with it, and is the one that is loaded."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import rocwright
from rocwheel_samples.wheel import make_wheel
from rocwright.catalog.load import builtin_catalog
from rocwright.model.steps import RunAction
from rocwright.plan.bundle import bundled
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import read_lock

DATA = Path(rocwright.__file__).parent / "catalog/data"
NAME = "librocblas.so.4"


def compiled(target: Path, *arguments: str, code: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    command: list[str | Path] = ["gcc", "-shared", "-x", "c", "-", "-x", "none", "-o", target, *arguments]
    subprocess.run(command, input=code, text=True, check=True)


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """What a build of torch has: the rebuilt library, the base's own, and a wheel that takes it in."""
    for place in ("build/rocblas/lib", "own"):
        compiled(tmp_path / place / NAME, f"-Wl,-soname,{NAME}", code="int rocblas_sgemm(void) { return 1; }")
    lib = tmp_path / "build/rocblas/lib"
    (lib / "librocblas.so").symlink_to(NAME)
    (lib / "rocblas/library").mkdir(parents=True)
    (lib / "rocblas/library/Kernels.co").write_bytes(b"code of the card")
    (tmp_path / "build/rocblas/share/doc").mkdir(parents=True)
    (tmp_path / "build/rocblas/share/doc/LICENSE.md").write_text("MIT\n")
    torch = tmp_path / "libtorch_hip.so"
    words = (f"-L{lib}", "-lrocblas", "-Wl,--no-as-needed", f"-Wl,-rpath,$ORIGIN:{tmp_path / 'own'}")
    compiled(torch, *words, code="int rocblas_sgemm(void); int torch(void) { return rocblas_sgemm(); }")
    pack(tmp_path, {"torch/lib/libtorch_hip.so": torch.read_bytes()})
    return tmp_path


def pack(build: Path, files: Mapping[str, bytes]) -> None:
    """Lay a wheel out with hashes in its RECORD, as the build's own tools do."""
    with zipfile.ZipFile(make_wheel(build / "made", "torch", files=files)) as wheel:
        wheel.extractall(build / "tree")
    words: list[str | Path] = ["-m", "wheel", "pack", build / "tree", "--dest-dir", build / "out"]
    (build / "out").mkdir(exist_ok=True)
    subprocess.run([sys.executable, *words], env=environment(build), check=True, capture_output=True)


def pack_archive(build: Path, library: bytes) -> None:
    """Lay an archive out as the recipes of llama.cpp do."""
    lib = build / "tree/llama/lib"
    lib.mkdir(parents=True)
    (lib / "libggml-hip.so.0").write_bytes(library)
    (build / "out").mkdir(exist_ok=True)
    with tarfile.open(build / "out/llama.tar.gz", "w:gz") as archive:
        archive.add(build / "tree/llama", "llama")


def environment(build: Path) -> dict[str, str]:
    """With the package `wheel`, which setuptools brings along."""
    setuptools = importlib.util.find_spec("setuptools")
    assert setuptools is not None and setuptools.origin is not None
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    vendored = Path(setuptools.origin).parent / "_vendor"
    return {"PATH": path, "PYTHONPATH": str(vendored), "OUT": str(build / "out"), "SOURCE_DATE_EPOCH": "1"}


def bundle(build: Path) -> subprocess.CompletedProcess[str]:
    """Run the recipe's commands, with the folders of this test in the place of a sandbox's."""
    commands = bundled((), [builtin_catalog().component("rocblas")])
    script = "\n".join(commands).replace("/build/", f"{build}/build/")
    words = ["sh", "-eu", "-c", script]
    return subprocess.run(
        words, env=environment(build), cwd=build, text=True, capture_output=True, check=False
    )


def findings(build: Path) -> list[dict[str, Any]]:
    """What the check of the recipe says of the wheel, installed, or of the archive, unpacked."""
    site, out = build / "site", build / "out"
    words: list[str | Path] = ["--quiet", "--no-deps", "--no-index", "--upgrade", "--target", site]
    for wheel in out.glob("*.whl"):
        subprocess.run([sys.executable, "-m", "pip", "install", *words, wheel], check=True)
    script: list[str | Path] = [sys.executable, DATA / "checks/rocm/loaded.py", site, "librocblas.so", out]
    done = subprocess.run(script, text=True, capture_output=True, check=False)
    lines = [json.loads(line.removeprefix("ROCWRIGHT-CHECK ")) for line in done.stdout.splitlines()]
    assert (done.returncode == 0) == all(line["ok"] for line in lines)
    return lines


def test_the_rebuilt_library_is_the_one_that_is_loaded(build: Path) -> None:
    [before] = findings(build)
    assert (before["ok"], before["detail"]) == (False, f"loads {build / 'own' / NAME}")
    for _ in range(2):  # as a build that was cut short goes on
        done = bundle(build)
        assert done.returncode == 0, done.stderr
    [after] = findings(build)
    assert after == {
        "name": "torch/lib/libtorch_hip.so",
        "ok": True,
        "detail": f"loads {build / 'site/torch/lib' / NAME}",
        "device": "cpu",
    }
    assert (build / "site/torch/lib/rocblas/library/Kernels.co").read_bytes() == b"code of the card"
    [licence] = (build / "site").glob("torch-*.dist-info/licenses/rocblas/LICENSE.md")
    assert licence.read_text() == "MIT\n"


def test_an_archive_carries_it_too(build: Path) -> None:
    library = (build / "tree/torch/lib/libtorch_hip.so").read_bytes()
    shutil.rmtree(build / "out")
    pack_archive(build, library)
    for _ in range(2):
        done = bundle(build)
        assert done.returncode == 0, done.stderr
    [finding] = findings(build)
    lib = build / "site/llama.tar.gz/llama/lib"
    assert (finding["ok"], finding["detail"]) == (True, f"loads {lib / NAME}")
    assert (lib / "rocblas/library/Kernels.co").read_bytes() == b"code of the card"
    assert (lib.parent / "licenses/rocblas/LICENSE.md").read_text() == "MIT\n"


def test_a_wheel_that_does_not_take_it_in_ends_the_build(build: Path) -> None:
    shutil.rmtree(build / "tree/torch")
    pack(build, {})
    done = bundle(build)
    assert done.returncode != 0
    assert f"takes in {NAME}" in done.stderr
    [finding] = findings(build)
    assert (finding["ok"], finding["detail"]) == (False, "nothing loads it")


def test_who_takes_it_in_carries_it_and_nobody_else() -> None:
    catalog = builtin_catalog()
    [path] = (DATA / "locks/pytorch").glob("gfx803_rocm-ubuntu-24.04-6.4_amd*.lock")
    steps = {step.name: step.action for step in make_plan(read_lock(path), catalog).steps}
    carrying = {
        name
        for name, action in steps.items()
        if isinstance(action, RunAction) and set(catalog.component("rocblas").bundle) & set(action.commands)
    }
    assert carrying == {"pytorch"}
