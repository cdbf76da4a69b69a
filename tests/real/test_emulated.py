"""gfx-smoke on an emulated GPU, where there is an emulator; its self-test's kernels compile everywhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.real.stacks import build_and_verify, rocwright

from rocwheel.wheels.emulators import emulators
from rocwright import sandbox
from rocwright.bases.roots import unpacked_root
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import builtin_catalog
from rocwright.home import Home
from rocwright.plan.make import make_plan
from rocwright.resolve.files import read_lock
from rocwright.sandbox.model import Job, Mount
from rocwright.store.local import LocalStore

pytestmark = pytest.mark.real

PROGRAMS = DATA / "checks/emulator/programs"
TARGETS = ("gfx1103", "gfx1151")


@pytest.fixture(scope="module")
def smoke(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with gfx-smoke, built for the GPUs that can be emulated."""
    folder = tmp_path_factory.mktemp("project") / "gfx-smoke"
    build_and_verify(home, folder, "gfx-smoke", ",".join(TARGETS))
    return folder


def in_root(home: Home, smoke: Path, work: Path, command: str) -> None:
    """Run a shell command in the root that builds gfx-smoke, with the programs at /programs."""
    plan = make_plan(read_lock(smoke / "rocwright.lock"), builtin_catalog())
    (key,) = [one.key for one in plan.steps if one.name == "root/build"]
    store = LocalStore(home.store)
    record = store.record(key)
    assert record is not None
    sandbox.make_writable(work)
    lines: list[str] = []
    job = Job(
        root=unpacked_root(store, record.output("root").sha256, home.roots, print),
        argv=("/bin/sh", "-eu", "-c", command),
        env={"PATH": "/usr/bin:/bin", "HOME": "/work"},
        workdir="/work",
        mounts=(
            Mount(source=PROGRAMS, target="/programs"),
            Mount(source=work, target="/work", writable=True),
        ),
    )
    ended = sandbox.run(sandbox.pick(None, home.probes), job, lines.append)
    assert ended.ok, "\n".join(lines)


def test_the_kernels_of_the_self_test_compile_for_each_gpu_without_a_warning(
    home: Home, smoke: Path, tmp_path: Path
) -> None:
    names = sorted(path.stem for path in PROGRAMS.glob("*.hip"))
    assert len(names) == 5
    offload = " ".join(f"--offload-arch={one}" for one in TARGETS)
    compile_ = f"hipcc {offload} -O2 -Wall -Wextra -Werror /programs/$name.hip -o $name"
    (tmp_path / "work").mkdir()
    in_root(home, smoke, tmp_path / "work", f"for name in {' '.join(names)}; do {compile_}; done")
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == names


def test_gfx_smoke_refuses_a_scale_that_is_no_part(home: Home, smoke: Path, tmp_path: Path) -> None:
    (wheel,) = (smoke / "out").rglob("gfx_smoke-*.whl")
    work = tmp_path / "work"
    work.mkdir()
    shutil.unpack_archive(wheel, work, "zip")
    program = "gfx_smoke/bin/gfx-smoke"
    (work / program).chmod(0o755)
    tries = " ".join(f"'{one}'" for one in ("0", "-1", "1.5", "nan", "", "1x"))
    refused = f'for part in {tries}; do s=0; ./{program} --scale "$part" || s=$?; [ $s = 64 ]; done'
    in_root(home, smoke, work, f"{refused}; s=0; ./{program} --scale 0.5 || s=$?; [ $s = 2 ]")


INSTALLED = [
    one
    for one in emulators()
    if shutil.which(one.program, path=":".join(one.places)) or shutil.which(one.program)
]


@pytest.mark.skipif(not INSTALLED, reason="no emulator of a GPU is installed")
def test_gfx_smoke_runs_on_each_emulated_gpu_and_is_recorded_as_that(home: Home, smoke: Path) -> None:
    found = json.loads(rocwright(home, smoke, "verify", "--device", "emulated", "--json"))
    assert all(one["ok"] for one in found), [one for one in found if not one["ok"]]
    for target in TARGETS:
        on = [one for one in found if one["device"] == f"emulated {target} (rocjitsu)"]
        told = {one["name"]: one["detail"] for one in on}
        assert {"vector add fp32", "histogram int32", "reduction fp32", "thread_ids"} <= set(told)
        assert told["version"].startswith("rocjitsu ")
        assert "configuration sha256" in told["emulator"]
    [run] = json.loads(rocwright(home, smoke, "history", "--limit", "1", "--json"))
    assert run["said"] == "ran on an emulated GPU"
