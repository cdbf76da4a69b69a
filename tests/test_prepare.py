"""tools/prepare installs on Debian, and names the packages of other distributions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rocwright.diagnosis.facts import Installer, host_facts
from rocwright.sources.programs import install_command
from tests.catalog.walks import walks

TOOL = Path(__file__).parent.parent / "tools/prepare"
PROGRAMS = {"id": "echo 0", "dpkg-query": "exit 1", "dpkg": "", "apt-get": 'echo "$@" >> "$LOG"'}
"""What would change this machine: nothing is installed, and apt-get notes what it is told."""


@pytest.mark.parametrize("expired", ["", "1"])
def test_the_date_of_a_package_list_is_checked_unless_the_user_says_otherwise(
    tmp_path: Path, expired: str
) -> None:
    for name, code in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{code}\n")
        (tmp_path / name).chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(tmp_path / "log")}
    env |= {"ROCWRIGHT_EXPIRED_LISTS": expired} if expired else {}
    done = subprocess.run([TOOL], env=env, capture_output=True, text=True, check=True)
    update, install = (tmp_path / "log").read_text().splitlines()
    assert update.endswith("update -q") and "install" in install
    assert ("Valid-Until" in update + install) is bool(expired)
    assert ("taking package lists past their date" in done.stdout) is bool(expired)


@pytest.mark.parametrize(
    ("release", "what", "message"),
    [
        ("ID=fedora", "build", "sudo dnf install mmdebstrap bubblewrap util-linux tar git"),
        ("ID=cachyos\nID_LIKE=arch", "build", "sudo pacman -S --needed podman util-linux tar git bubblewrap"),
        ("ID=void", "build", "install the packages of your distribution that have mmdebstrap"),
        ("ID=fedora", "test", "the tests need Debian or Ubuntu: distrobox create"),
    ],
)
def test_another_distribution_is_told_its_own_packages(
    tmp_path: Path, release: str, what: str, message: str
) -> None:
    (tmp_path / "os-release").write_text(f"{release}\n")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/prepare").symlink_to(TOOL)
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    for name in ("dirname", "python3"):
        (tmp_path / name).symlink_to(shutil.which(name) or "")
    env = {"PATH": str(tmp_path), "OS_RELEASE": str(tmp_path / "os-release")}
    done = subprocess.run(
        ["/bin/sh", tmp_path / "tools/prepare", what], env=env, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (1, "") and message in done.stderr
    assert "distrobox" in done.stderr and "podman" in done.stderr


@walks("host.toml", "installer.ids", "installer.command", "installer.packages")
@pytest.mark.parametrize("installer", host_facts().installer, ids=lambda row: row.ids[0])
def test_each_distribution_installs_by_its_own_command(installer: Installer) -> None:
    packages = {package for package in installer.packages.values() if package}
    for name in installer.ids:
        words = install_command(installer.packages, ["derivative", name]).partition("  #")[0]
        assert words.startswith(f"{installer.command} ")
        assert {*words.removeprefix(installer.command).split()} == packages
