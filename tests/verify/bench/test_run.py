"""Measuring what is built: in a sandbox, on a named device, with figures on record."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from samples.project import make_sources, open_project, put_roots
from tests.verify.stored import put_alpha
from tests.verify.test_run import RECIPE

from rocbase.errors import CheckError, InputError
from rocwheel_samples.trees import write_tree
from rocwright.home import Home
from rocwright.records.model import Figure, Which
from rocwright.records.opening import read_records
from rocwright.verify.bench import run
from rocwright.verify.bench.on_record import measured

TABLE = """[[measurement]]
name       = "toy"
components = ["alpha"]
script     = "bench/toy.py"
model      = true
arguments  = ["{artifact}", "{runs}", "{model}"]
figure     = [
  { name = "speed", unit = "things/s", better = "higher", pattern = '^speed: (.+) things/s$' },
  { name = "half speed", unit = "things/s", better = "higher", pattern = '^half: (.+) things/s$' },
]
"""

SCRIPT = """import os, sys
assert os.listdir(sys.argv[1])
assert open(sys.argv[3], "rb").read(4) == b"GGUF"
print("device: llvmpipe (LLVM 22)")
for number in range(int(sys.argv[2])):
    print(f"speed: {100 + number} things/s")
"""


def bench(
    home: Home,
    engine: str,
    root: Path,
    folder: Path,
    script: str,
    *,
    runs: int = 3,
    model: Path | None = None,
) -> list[Figure]:
    """Measure a stack that is in the store by this program."""
    make_sources(folder, RECIPE)
    write_tree(folder / "catalog", {"bench/toy.py": script, "bench.toml": TABLE, "checks/told.py": ""})
    project = open_project(folder, home.path)
    put_roots(project, root)
    put_alpha(project, folder)
    return run.bench(project, project.locked, engine=engine, runs=runs, model=model, say=print)


@pytest.fixture(autouse=True)
def own_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """bench.toml is found where the catalogs of this process are."""
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(tmp_path / "sources" / "catalog"))


def test_figures_are_measured_named_and_kept(
    home: Home, engine: str, python_root: Path, tmp_path: Path
) -> None:
    (found,) = bench(home, engine, python_root, tmp_path / "sources", SCRIPT)
    assert found.values == (100, 101, 102)
    assert (found.device, found.unit) == ("llvmpipe (LLVM 22)", "things/s")
    assert found.model == run.OWN_MODEL
    with read_records(home) as records:
        (ran,) = records.runs()
        assert (ran.command, ran.outcome, ran.said) == ("bench", "measured", "")
        assert measured(records, Which(stack=ran.stack)) == (found,)
        assert records.matrix() == []


def test_a_users_model_is_read_and_named(home: Home, engine: str, python_root: Path, tmp_path: Path) -> None:
    model = tmp_path / "mine.gguf"
    model.write_bytes(b"GGUF" + bytes(96))
    (found,) = bench(home, engine, python_root, tmp_path / "sources", SCRIPT, model=model)
    assert found.model.startswith("mine.gguf (100 B, sha256 ")


def test_what_is_no_model_is_refused(home: Home, engine: str, python_root: Path, tmp_path: Path) -> None:
    model = tmp_path / "mine.gguf"
    model.write_bytes(b"PK\x03\x04")
    with pytest.raises(InputError, match="is not a model in GGUF"):
        bench(home, engine, python_root, tmp_path / "sources", SCRIPT, model=model)


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("print('device: cpu')", "not every run printed its figures: none did"),
        (SCRIPT + "print('half: 1 things/s')", "half speed \\(1 of 3\\)"),
        ("print('out of memory'); raise SystemExit(3)", "ended with 3: out of memory"),
    ],
)
def test_a_program_that_fails_leaves_no_figures(
    home: Home, engine: str, python_root: Path, tmp_path: Path, script: str, cause: str
) -> None:
    with pytest.raises(CheckError) as failed:
        bench(home, engine, python_root, tmp_path / "sources", script)
    assert re.search(cause, failed.value.cause)
    with read_records(home) as records:
        (ran,) = records.runs()
        assert ran.outcome == "failed"
        assert measured(records, Which(stack=ran.stack)) == ()


def test_a_device_that_is_not_there_is_no_failure(
    home: Home, engine: str, python_root: Path, tmp_path: Path
) -> None:
    # whatever it ends with
    program = "print('absent: no device'); sys.exit(1)"
    assert bench(home, engine, python_root, tmp_path / "sources", f"import sys; {program}") == []


EMULATOR = (
    SCRIPT
    + """
import shutil, subprocess
shutil.copy("/bin/sh", "librocjitsu.so")
subprocess.run(["./librocjitsu.so", "-c", "echo 'device: AMD Radeon 780M Graphics'; sleep 3; :"])
"""
)
"""A program that has a file of that name mapped: itself."""


def test_an_emulated_gpu_is_refused(home: Home, engine: str, python_root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="an emulated GPU is not measured"):
        bench(home, engine, python_root, tmp_path / "sources", EMULATOR)
    with read_records(home) as records:
        (ran,) = records.runs()
        assert measured(records, Which(stack=ran.stack)) == ()


def test_a_stack_of_which_nothing_is_measured_is_named(
    home: Home, engine: str, python_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "measurements", lambda: ())
    with pytest.raises(InputError, match="is measured"):
        bench(home, engine, python_root, tmp_path / "sources", SCRIPT)
