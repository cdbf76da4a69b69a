"""`make` refuses a Python that is too old, and replaces a `.venv` that another Python made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[1] / "Makefile"
REQUIRED = (
    "requirements/dev.txt",
    *(f"{folder}pyproject.toml" for folder in ("", "packages/rocbase/", "packages/rocwheel/")),
)
OURS = f"{sys.version_info[0]}.{sys.version_info[1]}"


def _make(root: Path, *words: str, prepare: str = "") -> subprocess.CompletedProcess[str]:
    """Make `.venv` of a checkout in which pip installs nothing."""
    for name in (*REQUIRED, "tools/prepare"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("#!/bin/sh\n")
    (root / "tools/prepare").write_text(f"#!/bin/sh\n{prepare}")
    (root / "tools/prepare").chmod(0o755)
    command = ["make", "-s", "-f", str(MAKEFILE), ".venv/ready", *words]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def _python(path: Path, version: str = OURS) -> Path:
    """Write a Python of that version: it makes an environment of itself, and runs pip without effect."""
    major, minor = version.split(".")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"""#!/bin/sh
case "$*" in
    "-m venv .venv")
        mkdir -p .venv/bin .venv/lib/python{version}/site-packages/pip
        cp "$0" .venv/bin/python
        ;;
    "-m pip"*) echo "pip of {version}" ;;
    *)
        faked="import sys; sys.version_info = ({major}, {minor}); sys.executable = '$0'"
        exec {sys.executable} -c "$faked; $2"
        ;;
esac
""")
    path.chmod(0o755)
    return path


def test_a_python_that_is_too_old_is_named_at_once(tmp_path: Path) -> None:
    old = _python(tmp_path / "old/python3", "3.10")
    done = _make(tmp_path, f"PYTHON={old}")
    first, *_ = done.stderr.splitlines()
    assert first == (
        f"{old} is Python 3.10, and rocwright needs 3.11 or newer: make PYTHON=python3.11 .venv/ready"
    )
    assert done.returncode and not done.stdout and not (tmp_path / ".venv").exists()


def test_what_needs_no_root_is_there_before_the_packages(tmp_path: Path) -> None:
    done = _make(tmp_path, f"PYTHON={_python(tmp_path / 'python')}", prepare="test -e .venv/ready && exit 7")
    assert done.returncode and "Error 7" in done.stderr


@pytest.mark.parametrize("change", ["none", "gone", "newer", "named"])
def test_an_environment_of_another_python_is_made_again(change: str, tmp_path: Path) -> None:
    assert "pip of 3.12" in _make(tmp_path, f"PYTHON={_python(tmp_path / 'python', '3.12')}").stdout
    (tmp_path / ".venv/left").touch()
    (tmp_path / ".venv/ready").touch()
    if change == "gone":
        (tmp_path / ".venv/bin/python").unlink()
    if change == "newer":
        _python(tmp_path / ".venv/bin/python", "3.13")
    named = _python(tmp_path / "named", "3.11" if change == "named" else "3.12")
    done = _make(tmp_path, *([] if change == "none" else [f"PYTHON={named}"]))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ".venv/left").exists() is (change == "none")
