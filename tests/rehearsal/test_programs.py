"""The programs that a rehearsal runs in its sandbox: trials and their report, and imports with stand-ins."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rocwheel_samples.trees import write_tree
from rocwright.catalog.folders import DATA
from rocwright.rehearsal.report import TrialReport, read_report

TRIAL: dict[str, Any] = {
    "files": [],
    "skip": [],
    "always": [],
    "each": {},
    "says": [],
    "never": [],
    "sample": 2,
    "seconds": 30,
}


def rehearse(
    folder: Path, *trials: dict[str, Any], every: bool = False, seed: str = "1", status: int = 0
) -> TrialReport | None:
    """Run trials in a folder; their report, where the program ends well."""
    asked = {"seed": seed, "all": every, "trials": [TRIAL | {"name": "tried"} | one for one in trials]}
    out = folder / "out"
    out.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, DATA / "guards/rehearse.py"],
        cwd=folder,
        env=os.environ | {"REHEARSAL": json.dumps(asked), "OUT": str(out), "JOBS": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return read_report(out / "report.json", len(trials)) if status == 0 else None


def told(folder: Path, **trial: Any) -> list[str]:
    """What is wrong with the units of one trial."""
    report = rehearse(folder, trial)
    assert report is not None
    return [one.detail for one in report.units]


def test_each_file_and_each_value_is_a_unit(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a/one.c": "", "a/two.c": "", "b.h": ""})
    each = {"CXX": ["g++", "clang++"]}
    report = rehearse(tmp_path, {"run": 'test -f "$FILE"; echo $CXX', "files": ["**/*.c"], "each": each})
    assert report is not None
    names = {f"{file} {compiler}" for file in ("a/one.c", "a/two.c") for compiler in each["CXX"]}
    assert {one.unit for one in report.units} == names
    assert report.of == (4,)
    assert all(one.ok for one in report.units)


def test_a_sample_is_that_of_its_seed_and_the_rest_is_counted(tmp_path: Path) -> None:
    write_tree(tmp_path, {f"{number}.c": "" for number in range(30)})

    def drawn(seed: str, *, every: bool = False) -> set[str]:
        report = rehearse(tmp_path, {"run": "true", "files": ["*.c"]}, seed=seed, every=every)
        assert report is not None
        assert report.of == (30,)
        return {one.unit for one in report.units}

    assert len(drawn("1")) == 2
    assert drawn("1") == drawn("1")
    assert len({frozenset(drawn(str(seed))) for seed in range(4)}) > 1
    assert len(drawn("1", every=True)) == 30


def test_some_files_are_never_tried_and_others_are_in_each_sample(tmp_path: Path) -> None:
    write_tree(tmp_path, {f"{number}.c": "" for number in range(30)})
    files = {"files": ["*.c"], "skip": ["1*.c"], "always": ["7.c"]}
    for seed in "123":
        report = rehearse(tmp_path, {"run": "true", **files}, seed=seed)
        assert report is not None
        names = {one.unit for one in report.units}
        assert report.of == (19,)
        assert len(names) == 2
        assert "7.c" in names
        assert not {one for one in names if one.startswith("1")}


def test_a_failure_is_told_by_its_error(tmp_path: Path) -> None:
    [fault] = told(tmp_path, run="echo first; echo 'a.h:3: error: no uint8_t'; echo last; exit 1")
    assert fault == "a.h:3: error: no uint8_t"


@pytest.mark.parametrize(
    ("says", "never", "fault"),
    [
        (["with ROCm"], [], ""),
        ([], ["CUDA"], ""),
        (["with CUDA"], [], "it does not say 'with CUDA'"),
        ([], ["Building with"], "it says: -- Building with ROCm"),
    ],
)
def test_what_it_says_decides_too(tmp_path: Path, says: list[str], never: list[str], fault: str) -> None:
    assert told(tmp_path, run="echo '-- Building with ROCm'", says=says, never=never) == [fault]


@pytest.mark.parametrize("run", ["kill -9 $$", "sleep 60"])
def test_what_the_machine_may_have_ended_gives_no_report(tmp_path: Path, run: str) -> None:
    rehearse(tmp_path, {"run": run, "seconds": 1}, status=75)


EDITED = {
    "engine/__init__.py": "",
    "engine/platform.py": """
from typing import Optional
import torch
try:
    from amdsmi import AmdSmiException, amdsmi_init
except ImportError:
    pass

class Platform(torch.nn.Module):
    kind: Optional[torch.dtype] = None

    @torch.inference_mode()
    def name(self):
        amdsmi_init()
        return "a card"
""",
    "engine/broken.py": "from engine.nowhere import thing\n",
}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["engine.platform", "--show", "Platform.name(None)"], "Platform.name(None) = 'a card'"),
        (["engine.platform", "--without", "amdsmi"], "imported, with stand-ins for torch"),
        (["engine.platform", "--without", ""], "imported, with stand-ins for amdsmi, torch"),
        (
            ["engine.platform", "--without", "amdsmi", "--show", "Platform.name(None)"],
            "NameError: name 'amdsmi_init' is not defined",
        ),
        (["engine.platform", "--without", "torch"], "ModuleNotFoundError: No module named 'torch'"),
        (["engine.broken"], "ModuleNotFoundError: No module named 'engine.nowhere'"),
    ],
)
def test_edited_python_is_imported_with_stand_ins_and_without(
    tmp_path: Path, words: list[str], said: str
) -> None:
    write_tree(tmp_path, EDITED)
    program = DATA / "guards/import_edited.py"
    # apart from what is installed for the tests
    done = subprocess.run(
        [sys.executable, "-I", "-S", program, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said in done.stdout + done.stderr
    assert (done.returncode == 0) == ("Error" not in said)


def test_files_of_rocm_move_by_the_longest_beginning() -> None:
    program = runpy.run_path(str(DATA / "guards/move_rocm.py"))
    library = "/usr/lib/x86_64-linux-gnu/"
    moves = {"/usr/": "/opt/rocm/", library: "/opt/rocm/lib/", "/usr/lib/llvm-": ""}
    paths = ("/usr/bin/hipcc", f"{library}libhsa.so", "/usr/lib/llvm-21/bin/clang", "/etc/rocm")
    assert [str(program["moved"](Path(path), moves)) for path in paths] == [
        "/opt/rocm/bin/hipcc",
        "/opt/rocm/lib/libhsa.so",
        "/usr/lib/llvm-21/bin/clang",
        "/etc/rocm",
    ]


def test_cmake_files_go_as_far_up_as_their_new_place_demands() -> None:
    program = runpy.run_path(str(DATA / "guards/move_rocm.py"))
    up = 'get_filename_component(PREFIX "${PREFIX}" PATH)\n'
    text = f'{up * 4}set(LIB "${{DIR}}/../../../../lib/x86_64-linux-gnu")\n'
    assert program["corrected"](text, "lib64") == f'{up * 3}set(LIB "${{DIR}}/../../../lib64")\n'
