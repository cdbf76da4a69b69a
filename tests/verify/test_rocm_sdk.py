"""The check that runs ROCm's own test of its packages: real wheels, and a command of ours in AMD's place."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import rocwright

SCRIPT = Path(rocwright.__file__).parent / "catalog/data/checks/rocm/sdk.py"


def packages(folder: Path, command: str) -> Path:
    """A wheel that brings the command `rocm-sdk`."""
    folder.mkdir(exist_ok=True)
    about = "rocm_sdk_core-7.14.0.dist-info"
    files = {
        "rocm_sdk.py": f"import sys\n\ndef main():\n    {command}\n",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: rocm-sdk-core\nVersion: 7.14.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "[console_scripts]\nrocm-sdk = rocm_sdk:main\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{one},,\n" for one in (*files, f"{about}/RECORD"))
    with zipfile.ZipFile(folder / "rocm_sdk_core-7.14.0-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return folder


def told(outputs: Path, folder: Path, driver: Path) -> tuple[int, dict[str, Any]]:
    """The status of the check, with a driver's device of ours, and the one line that it prints."""
    code = "import sys; from pathlib import Path; import sdk; sys.exit(sdk.main(*map(Path, sys.argv[1:])))"
    done = subprocess.run(
        [sys.executable, "-c", code, outputs, folder, driver],
        cwd=SCRIPT.parent,
        env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(SCRIPT.parent)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    [line] = [one for one in done.stdout.splitlines() if one.startswith("ROCWRIGHT-CHECK ")]
    found: dict[str, Any] = json.loads(line.removeprefix("ROCWRIGHT-CHECK "))
    return done.returncode, found


def test_without_a_gpu_nothing_is_tried_and_that_is_said(tmp_path: Path) -> None:
    status, found = told(packages(tmp_path / "out", "sys.exit(1)"), tmp_path / "sdk", tmp_path / "kfd")
    assert (status, found["ok"], found["state"]) == (0, True, "absent")
    assert "wants a GPU" in found["detail"]
    assert not (tmp_path / "sdk").exists()


@pytest.mark.parametrize(
    ("command", "ok", "detail"),
    [
        ("print('47 tests', sys.argv[1:])", True, "47 tests ['test']"),
        ("sys.exit('librocblas.so.5 is missing')", False, "librocblas.so.5 is missing"),
    ],
)
def test_with_a_gpu_the_packages_are_installed_and_their_own_test_decides(
    tmp_path: Path, command: str, ok: bool, detail: str
) -> None:
    (tmp_path / "kfd").touch()
    status, found = told(packages(tmp_path / "out", command), tmp_path / "sdk", tmp_path / "kfd")
    assert (status == 0, found["ok"], found["detail"]) == (ok, ok, detail)
    # whether anything ran on the card, the test does not tell
    assert "device" not in found


def test_packages_that_are_not_there_or_do_not_install_fail(tmp_path: Path) -> None:
    (tmp_path / "kfd").touch()
    (tmp_path / "out").mkdir()
    status, found = told(tmp_path / "out", tmp_path / "sdk", tmp_path / "kfd")
    assert (status, found["ok"]) == (1, False)
    (tmp_path / "out/rocm_sdk_core-7.14.0-py3-none-any.whl").write_bytes(b"no wheel")
    status, found = told(tmp_path / "out", tmp_path / "sdk", tmp_path / "kfd")
    assert (status, found["ok"]) == (1, False)
    assert "pip could not install" in found["detail"]
