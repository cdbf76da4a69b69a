"""Whether programs of an archive start, and that each way not to is told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rocwright

SCRIPT = Path(rocwright.__file__).parent / "catalog" / "data" / "checks" / "programs" / "starts.py"


def lines(folder: Path, *commands: str) -> tuple[int, list[dict[str, Any]]]:
    done = subprocess.run(
        [sys.executable, "-I", str(SCRIPT), str(folder), *commands],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, [
        json.loads(one.removeprefix("ROCWRIGHT-CHECK ")) for one in done.stdout.splitlines()
    ]


def program(folder: Path, name: str, text: str) -> None:
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_programs_that_start_are_told_each_by_name(tmp_path: Path) -> None:
    program(tmp_path, "one", 'echo "usage: $1"; echo more')
    program(tmp_path, "two", "echo usage")
    code, found = lines(tmp_path, "one --help", "two --help")
    assert code == 0
    assert [(one["name"], one["ok"], one["device"]) for one in found] == [
        ("starts/one", True, ""),
        ("starts/two", True, ""),
    ]
    assert found[0]["detail"] == "one --help: 2 lines"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo libhipblas.so.2: not found >&2; exit 127", "ended with 127: libhipblas.so.2: not found"),
        ("exit 0", "ended with 0: it said nothing"),
        ("kill -SEGV $$", "ended with -11: it said nothing"),
    ],
)
def test_one_that_does_not_is_told_with_its_last_words_and_the_others_too(
    tmp_path: Path, text: str, why: str
) -> None:
    program(tmp_path, "bad", text)
    program(tmp_path, "good", "echo usage")
    code, found = lines(tmp_path, "bad --help", "good --help")
    assert code == 1
    assert [one["ok"] for one in found] == [False, True]
    assert found[0]["detail"] == f"bad --help {why}"


def test_one_that_is_missing_is_told(tmp_path: Path) -> None:
    code, found = lines(tmp_path, "gone --help")
    assert (code, found[0]["ok"]) == (1, False)
    assert found[0]["detail"] == "gone --help: No such file or directory"
