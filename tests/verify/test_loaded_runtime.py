"""A runtime that opens a card is carried by what calls HIP, and is loaded before the base's own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.verify.test_loaded import DATA, compiled, environment, pack

from rocwright.catalog.load import builtin_catalog
from rocwright.model.steps import RunAction
from rocwright.plan.bundle import bundled
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.lock import make_lock
from rocwright.plan.resolve.model import Request
from rocwright.plan.resolve.upstream import OfflineUpstream

RUNTIME, HIP = "libhsa-runtime64.so.1", "libamdhip64.so.7"
INIT = "int hsa_init(void) { return 1; }"


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """Return a build of torch: the rebuilt runtime, the base's own and HIP, and a wheel that calls HIP."""
    for place in ("build/rocr/lib", "own"):
        compiled(tmp_path / place / RUNTIME, f"-Wl,-soname,{RUNTIME}", code=INIT)
    own = tmp_path / "own"
    words = [f"-Wl,-soname,{HIP}", "-Wl,--no-as-needed", f"-Wl,-rpath,{own}", str(own / RUNTIME)]
    compiled(own / HIP, *words, code="int hsa_init(void); int hip(void) { return hsa_init(); }")
    (tmp_path / "build/rocr/share/doc").mkdir(parents=True)
    (tmp_path / "build/rocr/share/doc/LICENSE.md").write_text("NCSA\n")
    torch = tmp_path / "libtorch_hip.so"
    words = ["-Wl,--no-as-needed", f"-Wl,-rpath,{own}", str(own / HIP)]
    compiled(torch, *words, code="int hip(void); int torch(void) { return hip(); }")
    pack(tmp_path, {"torch/lib/libtorch_hip.so": torch.read_bytes()})
    return tmp_path


def bundle(build: Path) -> subprocess.CompletedProcess[str]:
    """Run the recipe's commands, with the folders of this test in the place of a sandbox's."""
    commands = bundled((), [builtin_catalog().component("rocr")])
    script = "\n".join(commands).replace("/build/", f"{build}/build/")
    words = ["sh", "-eu", "-c", script]
    return subprocess.run(
        words, env=environment(build), cwd=build, text=True, capture_output=True, check=False
    )


def installed(build: Path) -> Path:
    """Unpack the wheel as pip does."""
    with zipfile.ZipFile(next((build / "out").glob("*.whl"))) as wheel:
        wheel.extractall(build / "site")
    return build / "site"


def files_of_a_process_with(library: Path) -> str:
    """Load a library, and return what the kernel says is mapped then."""
    load = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print(open('/proc/self/maps').read())"
    words: list[str | Path] = [sys.executable, "-c", load, library]
    return subprocess.run(words, text=True, capture_output=True, check=True).stdout


def test_the_runtime_of_the_wheel_is_loaded_before_hip_asks_for_one(build: Path) -> None:
    for _ in range(2):  # as a build that was cut short goes on
        done = bundle(build)
        assert done.returncode == 0, done.stderr
    site = installed(build)
    words: list[str | Path] = [sys.executable, DATA / "checks/rocm/loaded.py", site, "libhsa-runtime64.so"]
    checked = subprocess.run(words, text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stdout
    [line] = [json.loads(text.removeprefix("ROCWRIGHT-CHECK ")) for text in checked.stdout.splitlines()]
    assert line["detail"] == f"loads {site / 'torch/lib' / RUNTIME}"
    mapped = files_of_a_process_with(site / "torch/lib/libtorch_hip.so")
    assert str(site / "torch/lib" / RUNTIME) in mapped
    assert str(build / "own" / HIP) in mapped
    assert str(build / "own" / RUNTIME) not in mapped
    [licence] = site.glob("torch-*.dist-info/licenses/rocr/LICENSE.md")
    assert licence.read_text() == "NCSA\n"


def test_a_wheel_that_does_not_call_hip_ends_the_build(build: Path) -> None:
    shutil.rmtree(build / "tree/torch")
    pack(build, {})
    done = bundle(build)
    assert done.returncode != 0
    assert "calls HIP" in done.stderr


def test_torch_carries_it_and_nobody_else() -> None:
    catalog = builtin_catalog()
    request = Request(stack="pytorch", gpu=("gfx803",), base="debian:experimental", extra=("rocr",))
    plan = make_plan(make_lock(request, catalog, OfflineUpstream(), lambda _: None), catalog)
    carrying = {
        step.name
        for step in plan.steps
        if isinstance(step.action, RunAction)
        and set(catalog.component("rocr").bundle) & set(step.action.commands)
    }
    assert carrying == {"pytorch"}
