"""`rocwright verify --suite`: findings of any Python environment, kept as evidence."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.conftest import Command

from rocwheel_samples.tables import each

GOOD = {"name": "torch: products/mm fp32", "ok": True, "detail": "8 shapes", "device": "RX 580 (gfx803)"}
BAD = {"name": "torch: products/bmm fp32", "ok": False, "detail": "wrong", "device": "RX 580 (gfx803)"}


def environment(folder: Path, *lines: dict[str, object], status: int = 0) -> Path:
    """A Python that prints these findings whatever it is asked to run."""
    path = folder / "python"
    printed = "".join(f"echo 'ROCWRIGHT-CHECK {json.dumps(line)}'\n" for line in lines)
    path.write_text(f'#!/bin/sh\n{printed}echo said: "$@" >&2\nexit {status}\n')
    path.chmod(0o755)
    return path


def test_what_is_found_is_told_and_kept(rocwright: Command, tmp_path: Path) -> None:
    python = environment(tmp_path, GOOD, {**GOOD, "name": "torch: attention/flash", "state": "absent"})
    done = rocwright("verify", "--suite", "torch", "--python", str(python))
    assert done.returncode == 0, done.stderr
    assert "RX 580 (gfx803)" in done.stdout
    assert "absent" in done.stdout
    run_id = done.stdout.split()[-1]
    first = json.loads(rocwright("history", run_id, "--json").stdout)["findings"][0]
    assert (first["component"], first["name"], first["device"]) == (
        "torch",
        "products/mm fp32",
        GOOD["device"],
    )
    assert "verified" in rocwright("history").stdout
    assert "RX 580" in rocwright("logs", "verify").stdout


def test_a_finding_that_failed_ends_with_the_status_of_checks(rocwright: Command, tmp_path: Path) -> None:
    python = environment(tmp_path, GOOD, BAD, status=1)
    done = rocwright("verify", "--suite", "torch", "--python", str(python), "--json")
    assert done.returncode == 12
    assert [one["ok"] for one in json.loads(done.stdout[: done.stdout.rindex("]") + 1])] == [True, False]
    assert "torch: products/bmm fp32" in done.stderr


@pytest.mark.parametrize("status", [0, 1])
def test_silence_is_no_success(rocwright: Command, tmp_path: Path, status: int) -> None:
    done = rocwright("verify", "--suite", "torch", "--python", str(environment(tmp_path, status=status)))
    assert done.returncode == 12
    assert f"ended with {status}: said:" in done.stdout


def test_a_python_that_is_not_there_is_named(rocwright: Command, tmp_path: Path) -> None:
    done = rocwright("verify", "--suite", "torch", "--python", str(tmp_path))
    assert done.returncode == 2
    assert "is not a Python that can be run" in done.stderr


def test_a_python_without_torch_is_told_what_to_do(rocwright: Command) -> None:
    done = rocwright("verify", "--suite", "torch", "--python", sys.executable)
    assert done.returncode == 12
    assert "--python VENV/bin/python" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("torch-extensions", "--suite", "torch"),
        ("--suite", "nope"),
        ("--suite", "torch", "--base", "debian:sid"),
    ],
)
def test_a_suite_takes_no_stack_and_must_be_known(rocwright: Command, words: tuple[str, ...]) -> None:
    done = rocwright("verify", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("error[input] ")


def test_what_a_target_lacks_is_left_out_with_the_words_of_the_catalog(
    rocwright: Command, tmp_path: Path
) -> None:
    python = str(environment(tmp_path))
    rocwright("verify", "--suite", "triton", "--gpu", "gfx803", "--python", python)
    said = rocwright("logs", "verify").stdout
    assert "--target gfx803:64" in said
    assert "--lacks triton=gfx803: not upstream" in said
    assert "--lacks bf16=gfx803: no" in said
    rocwright("verify", "--suite", "triton", "--gpu", "gfx803,gfx1151", "--python", python)
    said = rocwright("logs", "verify").stdout
    assert "--target gfx803:64 --target gfx1151:32" in said
    assert "--lacks" not in said


def test_an_environment_that_runs_in_an_emulator_tried_no_gpu(rocwright: Command, tmp_path: Path) -> None:
    library = tmp_path / "librocjitsu.so"
    library.write_bytes(bytes(4096))
    maps = tmp_path / "maps.py"
    maps.write_text(
        "import mmap, sys, time\n"
        f"file = open({str(library)!r}, 'rb')\n"
        "held = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\n"
        f"print('ROCWRIGHT-CHECK ' + {json.dumps(GOOD)!r}, flush=True)\n"
        f"print('ROCWRIGHT-CHECK ' + {json.dumps({**GOOD, 'device': 'cpu'})!r}, flush=True)\n"
        "time.sleep(3)\n"
    )
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} {maps}\n")
    python.chmod(0o755)
    done = rocwright("verify", "--suite", "torch", "--python", str(python), "--json")
    assert [one["device"] for one in json.loads(done.stdout)] == ["emulated RX 580 (gfx803)", "cpu"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--device", "cpu"), "--device cpu is for --suite; a stack takes --device emulated"),
        (("--suite", "torch", "--device", "emulated"), "start rocwright itself in the emulator"),
    ],
)
def test_a_device_that_has_no_effect_is_refused(
    rocwright: Command, words: tuple[str, ...], says: str
) -> None:
    done = rocwright("verify", *words)
    assert done.returncode == 2
    assert says in done.stderr


@each(
    "words, told",
    [
        (("--carry", "out", "--import", "FILE"), "--carry packs and --import takes back"),
        (("--carry", "out", "--suite", "torch"), "--suite has no effect on --carry"),
        (("--import", "FILE", "--device", "emulated"), "--device has no effect on --import"),
    ],
)
def test_a_carried_verification_takes_no_option_in_vain(
    rocwright: Command, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    (tmp_path / "result.json").write_text("{}")
    named = [word.replace("FILE", str(tmp_path / "result.json")) for word in words]
    done = rocwright("verify", "gfx-smoke", "--gpu", "gfx1151", "--base", "debian:sid", *named)
    assert done.returncode == 2
    assert told in done.stderr
