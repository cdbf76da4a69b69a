"""The torch suite on an emulated GPU: its lines go on, and each way to prove nothing is a failure."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rocwright

SCRIPT = Path(rocwright.__file__).parent / "catalog" / "data" / "checks" / "emulator" / "torch_operations.py"
GOOD = 'echo \'ROCWRIGHT-CHECK {"name": "torch: \'$GROUP\'add fp32", "ok": true}\''

# what stands for the emulator: it is given the suite's command, and tells what a suite in it would
EMULATOR = """#!/bin/sh
FOLDER={folder}
for GROUP in "$@"; do :; done
echo "$@" >> $FOLDER/calls
{body}
"""


def run(folder: Path, body: str, only: str = "copies/ functions/") -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit status, and the lines by name."""
    program = folder / "emulator"
    program.write_text(EMULATOR.format(folder=folder, body=body))
    program.chmod(0o755)
    command = [sys.executable, "-I", str(SCRIPT), "--suites", "torch", "--only", only]
    command += ["--target", "gfx1103", "--races", str(folder / "races"), "--lds-race", "lds", "--race", "r"]
    done = subprocess.run([*command, "--", str(program)], capture_output=True, text=True, timeout=60)
    lines = [json.loads(one.removeprefix("ROCWRIGHT-CHECK ")) for one in done.stdout.splitlines()]
    return done.returncode, {one["name"]: one for one in lines}


def test_each_group_is_asked_alone_at_the_smallest_size_and_its_lines_go_on(tmp_path: Path) -> None:
    status, found = run(tmp_path, GOOD)
    assert status == 0
    assert list(found) == ["torch: copies/add fp32", "torch: functions/add fp32", "races"]
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [one.rpartition(" ")[2] for one in calls] == ["copies/", "functions/"]
    assert all("suite.py torch --device cuda --size small --marks" in one for one in calls)


@pytest.mark.parametrize(
    ("body", "name", "detail"),
    [
        ("echo nothing; exit 0", "copies/", "ended with 0: nothing"),
        ("echo gone >&2; exit 139", "copies/", "ended with 139: gone"),
        (f"{GOOD}; echo lds > $FOLDER/races", "races", "1 in LDS, as the emulator reports"),
    ],
)
def test_a_group_that_says_nothing_and_a_race_are_failures(
    tmp_path: Path, body: str, name: str, detail: str
) -> None:
    status, found = run(tmp_path, body, only="copies/")
    assert status == 1
    assert (found[name]["ok"], found[name]["detail"]) == (False, detail)


def test_an_operation_that_is_wrong_is_a_failure_with_its_line(tmp_path: Path) -> None:
    status, found = run(tmp_path, f"{GOOD.replace('true', 'false')}; exit 1", only="copies/")
    assert status == 1
    assert not found["torch: copies/add fp32"]["ok"]
