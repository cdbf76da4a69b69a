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
from tests.real import faulty_torch

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


GFX = pytest.mark.xdist_group("gfx-smoke")
LLAMA = pytest.mark.xdist_group("llama-vulkan")
TORCH = pytest.mark.xdist_group("torch-extensions")
"""What shares a home runs in one process; two such groups run at once."""


@GFX
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


FIRST = """\
name = "first"
summary = "a wheel that another build needs"
license = "MIT"
kind = "wheel"
run = ["python3 -m build --wheel --no-isolation --outdir $OUT"]
output = [{ name = "wheel", pattern = "first-*.whl" }]
system = { build = BUILD, run = ["python"] }
release = [{ version = "1.0", places = [{ builtin = "first" }], source = "this test" }]
"""
SECOND = """\
name = "second"
summary = "needs the first wheel, and packages from the index, to be built"
license = "MIT"
kind = "wheel"
python = ["humanize>=4"]
guard = ["first"]
run = [
  "python3 -c 'import first, humanize; print(first.SAID, humanize.naturalsize(1024))'",
  "python3 -m build --wheel --no-isolation --outdir $OUT",
]
output = [{ name = "wheel", pattern = "second-*.whl" }]
system = { build = BUILD, run = ["python"] }
[[release]]
version = "2.0"
places = [{ builtin = "second" }]
needs = { first = "==1.0", python = ">=3" }
source = "this test"
"""
STACK = """\
name = "pair"
summary = "two wheels, one of which needs the other"
components = ["second"]
bases = ["debian:sid"]
source = "this test"
"""
SETUP = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "NAME"
version = "VERSION"
"""


@GFX
def test_a_wheel_is_installed_for_what_needs_it_with_packages_from_the_index(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = tmp_path / "catalog"
    # the packages of gfx-smoke, so that its root file system serves
    packages = json.dumps(list(builtin_catalog().component("gfx-smoke").system.build))
    files = {
        "components/first.toml": FIRST.replace("BUILD", packages),
        "components/second.toml": SECOND.replace("BUILD", packages),
        "stacks/pair.toml": STACK,
    }
    for name, version in (("first", "1.0"), ("second", "2.0")):
        said = SETUP.replace("NAME", name).replace("VERSION", version)
        files |= {f"sources/{name}/pyproject.toml": said, f"sources/{name}/{name}.py": 'SAID = "here"\n'}
    for file, text in files.items():
        (catalog / file).parent.mkdir(parents=True, exist_ok=True)
        (catalog / file).write_text(text)
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(catalog))
    folder = tmp_path / "pair"
    folder.mkdir()
    words = ("pair", "--gpu", "gfx1151", "--base", "debian:sid")
    built = json.loads(rocwright(home, folder, "build", *words, "--json"))
    assert {one["filename"].split("-")[0] for one in built["artifacts"]} == {"first", "second"}
    log = rocwright(home, folder, "logs", "second")
    assert "here 1.0 kB" in log
    assert "guard: one first, and it imports" in log

    environment = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    rocwright(home, folder, "install", *words, "--into", str(environment))
    done = subprocess.run(
        [environment / "bin/python", "-c", "import first, second; print(first.SAID)"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "here\n", done.stderr


@LLAMA
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


@TORCH
def test_torch_extensions_are_built_against_the_torch_of_the_base(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "torch"
    built = build_and_verify(home, folder, "torch-extensions", "gfx1151")
    failed = [one for one in built["findings"] if not one["ok"]]
    assert not failed, failed
    assert {one["filename"].split("-")[0] for one in built["artifacts"]} == {"torchvision", "torchaudio"}
    lock = read_lock(folder / "rocwright.lock")
    assert lock.provided["pytorch"] == "2.6.0"
    assert not any(step["name"] == "pytorch" for step in built["run"]["steps"])
    index = folder / "rocwright-out" / "simple" / "torchvision" / "index.html"
    assert "torchvision-0.21.0" in index.read_text()


@pytest.fixture(scope="module")
def torch_suite(home: Home, tmp_path_factory: pytest.TempPathFactory) -> faulty_torch.Run:
    """The torch suite on the base's torch, or on that of an interpreter in ROCWRIGHT_TEST_TORCH."""
    if python := os.environ.get("ROCWRIGHT_TEST_TORCH"):
        return faulty_torch.outside(python)
    build_and_verify(home, tmp_path_factory.mktemp("suite") / "torch", "torch-extensions", "gfx1151")
    torch = "usr/lib/python3/dist-packages/torch"
    root = next(path for path in home.roots.iterdir() if (path / torch).is_dir())
    return faulty_torch.sandboxed(root, "bubblewrap")


@TORCH
def test_a_torch_that_computes_wrongly_crashes_hangs_or_lacks_kernels_is_named(
    torch_suite: faulty_torch.Run, tmp_path: Path
) -> None:
    faults = ("off by a little", "off at one shape", "no number", "crash", "hang", "missing kernels")
    faulty_torch.write(tmp_path, *faults)
    tried = ("mm", "conv2d fp", "softmax fp", "sort", "topk", "fft", "rfft", "solve", "einsum", "sum fp")
    only = [word for one in tried for word in ("--only", f"/{one}")]
    found = torch_suite(tmp_path, "--device", "cpu", "--size", "small", "--operation-seconds", "20", *only)
    states: dict[str, set[str]] = {}
    for name, one in found.items():
        states.setdefault(one["state"], set()).add(name)

    assert states["wrong"] == {"products/mm fp32", "convolutions/conv2d fp32", "reductions/softmax fp16"}
    product = found["products/mm fp32"]
    assert "values wrong, first at [2, 5]" in product["detail"]
    assert 0 < product["tolerance"] < product["error"] < 1e-3
    assert "21x3" in found["convolutions/conv2d fp32"]["detail"]
    assert "not a number" in found["reductions/softmax fp16"]["detail"]

    assert states["crash"] == {f"sorting/topk {one}" for one in ("fp64", "fp32", "fp16")}
    assert "SIGSEGV" in found["sorting/topk fp32"]["detail"]
    assert "memory that is not its own" in found["sorting/topk fp32"]["detail"]
    assert states["hang"] == {"transforms/rfft fp64", "transforms/rfft fp32"}
    assert "within 20 s" in found["transforms/rfft fp32"]["detail"]

    lacking = {name for name in states["error"] if "missing kernels" in found[name]["detail"]}
    assert {"factorizations/solve fp64", "factorizations/solve fp32"} <= lacking == states["error"]
    assert all("next: " in found[name]["detail"] for name in lacking)

    assert {"products/mm fp64", "products/mm fp16", "products/einsum fp32"} <= states["ok"]
    assert {"convolutions/conv2d fp64", "sorting/sort fp32", "transforms/fft fp32"} <= states["ok"]


@TORCH
@pytest.mark.parametrize(
    ("fault", "told"),
    [("crash at import", "ended by SIGABRT"), ("missing library", "next: install the package that holds")],
)
def test_a_torch_that_cannot_be_imported_is_told(
    torch_suite: faulty_torch.Run, tmp_path: Path, fault: str, told: str
) -> None:
    faulty_torch.write(tmp_path, fault)
    (only,) = torch_suite(tmp_path, "--device", "cpu").values()
    assert not only["ok"]
    assert told in only["detail"]


@TORCH
def test_what_a_torch_computes_is_right_and_what_is_not_there_is_no_failure(
    torch_suite: faulty_torch.Run, tmp_path: Path
) -> None:
    found = torch_suite(
        tmp_path, "--device", "cpu", "--size", "small", "--lacks", "triton=no compiler for this target"
    )
    assert {one["state"] for one in found.values()} == {"ok", "absent"}
    assert found["compile/pointwise fp32"]["detail"].endswith("it needs triton: no compiler for this target")
    assert found["attention/cudnn-kernel fp16"]["state"] == "absent"
    assert len(found) > 300
