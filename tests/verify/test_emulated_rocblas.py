"""Routines of rocBLAS on an emulated GPU: each runs alone, and each way to prove nothing is a failure."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rocwright.catalog.folders import DATA
from rocwright.catalog.load import builtin_catalog

CHECKS = DATA / "checks" / "emulator"
SCRIPT, SAMPLE = CHECKS / "rocblas.py", CHECKS / "samples" / "rocblas.hip"

# the emulator emulates nothing; the compiler notes what it was asked, and makes a program that does as told
EMULATOR = '#!/bin/sh\n[ "$1" = --config ] && [ "$3" = -- ] || exit 1\nshift 3\nexec "$@"\n'
COMPILER = """#!/bin/sh
echo "$@" > {folder}/asked
while [ "$1" != -o ]; do shift; done
cp {folder}/program "$2"
chmod +x "$2"
"""
RIGHT = "echo Warning; echo gfx1151 1073 0"


def run(
    folder: Path, program: str, routines: str = "sgemm-nn saxpy", compiler: str = COMPILER
) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit status, and the lines by name, where a routine's program is that shell script."""
    (folder / "bin").mkdir()
    (folder / "program").write_text(f'#!/bin/sh\necho "$@" >> {folder}/calls\n{program}\n')
    for name, text in {"hipcc": compiler.format(folder=folder), "rocjitsu": EMULATOR}.items():
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    words = ["--routines", routines, "--target", "gfx1151", "--races", str(folder / "race.log")]
    words += ["--lds-race", "RACE type=LDS", "--race", "RACE type=", "--"]
    words += [str(folder / "bin/rocjitsu"), "--config", "configuration", "--"]
    done = subprocess.run(
        [sys.executable, "-I", SCRIPT, *words],
        env={"PATH": f"{folder / 'bin'}:/usr/bin:/bin"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [json.loads(one.removeprefix("ROCWRIGHT-CHECK ")) for one in done.stdout.splitlines()]
    assert lines, done.stderr
    return done.returncode, {one["name"]: one for one in lines}


def test_each_routine_runs_alone_and_has_a_line(tmp_path: Path) -> None:
    status, said = run(tmp_path, RIGHT)
    assert status == 0
    assert list(said) == ["rocblas/sgemm-nn", "rocblas/saxpy", "races"]
    assert said["rocblas/saxpy"]["detail"] == "1073 values as on the CPU"
    assert (tmp_path / "calls").read_text().splitlines() == ["sgemm-nn", "saxpy"]
    asked = (tmp_path / "asked").read_text().split()
    assert {"--offload-arch=gfx1151", "-lrocblas", str(SAMPLE)} <= set(asked)


@pytest.mark.parametrize(
    ("program", "detail"),
    [
        (
            "echo gfx1151 1073 9 at 0: -1, the CPU has 2, 0.1 allowed; exit 1",
            "ended with 1: gfx1151 1073 9 at 0",
        ),
        ("echo gfx1151 1073 9 at 0", "ended with 0: gfx1151 1073 9"),
        ("echo gfx1150 1073 0", "ended with 0: gfx1150 1073 0"),
        ("exit 0", "ended with 0: no output"),
        # as the library says it where it has no code for the GPU
        (
            "echo 'rocBLAS error: Cannot read TensileLibrary.dat: None' >&2; echo a.dat >&2; kill -ABRT $$",
            "ended with -6: rocBLAS error: Cannot read TensileLibrary.dat",
        ),
    ],
)
def test_a_routine_that_is_wrong_or_aborts_or_runs_elsewhere_fails(
    tmp_path: Path, program: str, detail: str
) -> None:
    status, said = run(tmp_path, program)
    assert status == 1
    assert not said["rocblas/sgemm-nn"]["ok"]
    assert said["rocblas/sgemm-nn"]["detail"].startswith(detail)


def test_one_wrong_routine_does_not_keep_the_others_from_running(tmp_path: Path) -> None:
    status, said = run(tmp_path, f"[ $1 = saxpy ] || exit 134; {RIGHT}")
    assert status == 1
    assert (said["rocblas/sgemm-nn"]["ok"], said["rocblas/saxpy"]["ok"]) == (False, True)


def test_a_race_in_lds_fails(tmp_path: Path) -> None:
    status, said = run(tmp_path, f"echo RACE type=LDS reg=1 > {tmp_path}/race.log; {RIGHT}")
    assert (status, said["races"]["ok"]) == (1, False)


def test_where_it_does_not_compile_nothing_runs(tmp_path: Path) -> None:
    status, said = run(tmp_path, RIGHT, compiler="#!/bin/sh\necho no rocblas.h >&2; exit 1\n")
    assert status == 1
    assert said["rocblas"]["detail"] == "does not compile: no rocblas.h"
    assert not (tmp_path / "calls").exists()


def test_the_recipes_ask_for_routines_that_the_program_has_and_count_them() -> None:
    known = re.findall(r'name == "([^"]+)"', SAMPLE.read_text())
    assert len(known) == len(set(known)) >= 14
    for name in ("pytorch", "llama.cpp-hip"):
        [check] = [one for one in builtin_catalog().component(name).emulated if one.name == "rocblas"]
        asked = shlex.split(check.arguments[check.arguments.index("--routines") + 1])
        assert set(asked) <= set(known)
        assert check.least == len(set(asked)) + 1
