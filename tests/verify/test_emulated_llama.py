"""llama.cpp on an emulated GPU: what it says is read, and each way to prove nothing is a failure."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rocwright

SCRIPT = Path(rocwright.__file__).parent / "catalog" / "data" / "checks" / "emulator" / "llama_cpp.py"

# as llama.cpp b11312 prints it
GOOD = """\
Testing 2 devices

Backend 1/2: ROCm0
  Device description: AMD Radeon Graphics
  ADD(type=f32,ne=[1,1,8,1],nr=[1,1,1,1],nf=1): \x1b[1;32mOK\x1b[0m
  ADD(type=f16,ne=[1,1,1,1],nr=[32,1,1,1],nf=1): \x1b[1;32mOK\x1b[0m
  ADD(type=bf16,ne=[1,1,1,1],nr=[32,1,1,1],nf=1): not supported [ROCm0]
  2/2 tests passed
"""
BAD = GOOD.replace("  ADD(", "[ADD] ERR = 0.5 > 0.0000001   ADD(", 1).replace(
    "\x1b[1;32mOK", "\x1b[1;31mFAIL", 1
)

OPS = '#!/bin/sh\necho "$@" >> {calls}\ncat {told}\nexit {status}\n'
SERVER = "#!/bin/sh\nprintf 'Available devices:\\n  (none)\\n'\n"


def run(folder: Path, told: str, status: int = 0) -> tuple[int, dict[str, dict[str, Any]], list[str]]:
    """The exit status, the lines by name, and what the program was asked."""
    calls, text = folder / "calls", folder / "told"
    text.write_text(told)
    (folder / "bin").mkdir()
    for name, body in {
        "test-backend-ops": OPS.format(calls=calls, told=text, status=status),
        "llama-server": SERVER,
    }.items():
        (folder / "bin" / name).write_text(body)
        (folder / "bin" / name).chmod(0o755)
    command = [sys.executable, "-I", str(SCRIPT), "--artifact", str(folder), "--model", "none.gguf"]
    command += [
        "--operations",
        "ADD MUL_MAT:n=1,k=256",
        "--target",
        "gfx1151",
        "--races",
        str(folder / "races"),
    ]
    command += ["--lds-race", "lds", "--race", "race", "--", "env"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    lines = [json.loads(one.removeprefix("ROCWRIGHT-CHECK ")) for one in done.stdout.splitlines()]
    return done.returncode, {one["name"]: one for one in lines}, calls.read_text().splitlines()


def test_each_operation_is_asked_alone_and_its_cases_are_counted(tmp_path: Path) -> None:
    _, found, calls = run(tmp_path, GOOD)
    assert calls == ["test -b ROCm0 -o ADD", "test -b ROCm0 -o MUL_MAT -p n=1,k=256"]
    line = found["operation/ADD"]
    assert (line["ok"], line["device"]) == (True, "gfx1151")
    assert line["detail"] == "2 cases as on the CPU, 1 that the backend does not have"


def test_an_answer_that_was_not_on_the_device_is_no_evidence(tmp_path: Path) -> None:
    code, found, _ = run(tmp_path, GOOD)
    assert code == 1
    assert not found["answer"]["ok"]
    assert "no ROCm device" in found["answer"]["detail"]
    assert "server-chat" not in found


@pytest.mark.parametrize(
    ("told", "status", "why"),
    [
        (BAD, 1, "1 of 3 cases differ from the CPU: ADD(type=f32,ne=[1,1,8,1],nr=[1,1,1,1],nf=1)"),
        (BAD, 0, "1 of 3 cases differ from the CPU: ADD(type=f32,ne=[1,1,8,1],nr=[1,1,1,1],nf=1)"),
        (GOOD, 139, "ended with 139 after 2 cases"),
        ("Backend 1/1: CPU\n  Skipping\n", 0, "ended with 0 after 0 cases:   Skipping"),
        ("", 0, "ended with 0 after 0 cases: no output"),
    ],
)
def test_what_differs_or_ends_early_or_never_ran_is_a_failure(
    tmp_path: Path, told: str, status: int, why: str
) -> None:
    code, found, _ = run(tmp_path, told, status)
    assert code == 1
    assert not found["operation/ADD"]["ok"]
    assert found["operation/ADD"]["detail"].startswith(why)
