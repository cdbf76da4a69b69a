"""Hosts without any program of Debian: made here by hiding them, with another distribution's os-release."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tools_root import debian_image

from rocwright.home import Home
from rocwright.sources.bases.roots import remove_tree

DEBIAN = "apt apt-cache apt-config apt-get debootstrap dpkg dpkg-deb dpkg-query mmdebstrap"
HIDE = """set -e
mount --make-rprivate /
mount --bind "$1" "$(realpath /etc/os-release)"
for name in $2; do
    for place in /usr/local/bin /usr/bin /usr/sbin; do
        test ! -e "$place/$name" || mount --bind /dev/null "$place/$name"
    done
done
for folder in /etc/apt /usr/share/keyrings /var/lib/apt /var/lib/dpkg; do mount -t tmpfs none "$folder"; done
shift 2
exec "$@"
"""

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="root alone hides the programs of a host"),
]


@pytest.fixture
def untouched(tmp_path: Path) -> Iterator[Home]:
    """A home into which nobody put a tools root."""
    home = Home(tmp_path / "home")
    yield home
    remove_tree(home.path)


@pytest.fixture
def image(tmp_path: Path) -> Iterator[None]:
    """Debian's image in podman's storage."""
    with debian_image(tmp_path):
        yield


def on_host(
    system: str, hidden: str, home: Home, folder: Path, *words: str
) -> subprocess.CompletedProcess[str]:
    """Run rocwright on a host of that distribution, without Debian's programs and those hidden as well."""
    (folder / "os-release").write_text(f"ID={system}\n")
    hide = ["unshare", "--mount", "sh", "-c", HIDE, "sh", str(folder / "os-release"), f"{DEBIAN} {hidden}"]
    rocwright = [sys.executable, "-m", "rocwright", *words]
    env = os.environ | {"ROCWRIGHT_HOME": str(home.path)}
    return subprocess.run([*hide, *rocwright], env=env, cwd=folder, capture_output=True, text=True)


ROW = ("gfx-smoke", "--gpu", "gfx1103", "--base", "debian:sid")


@pytest.mark.nightly
@pytest.mark.usefixtures("image")
def test_fedora_with_podman_alone_locks_and_builds(untouched: Home, tmp_path: Path) -> None:
    hidden = "bwrap buildah docker skopeo systemd-nspawn"
    locked = on_host("fedora", hidden, untouched, tmp_path, "lock", *ROW)
    assert "own Debian trixie by podman" in locked.stdout + locked.stderr
    built = on_host("fedora", hidden, untouched, tmp_path, "build", *ROW)
    assert built.returncode == 0, built.stderr
    assert "root/build        built" in built.stdout


def test_arch_with_bubblewrap_takes_the_tools_root_that_is_there(home: Home, tmp_path: Path) -> None:
    """The home has it from elsewhere, as from a trusted store."""
    hidden = "buildah docker podman skopeo systemd-nspawn"
    locked = on_host("arch", hidden, home, tmp_path, "lock", *ROW)
    assert locked.returncode == 0, locked.stderr
    assert (home.apt / "sid-amd64" / "etc/apt/tools.conf").exists()


def test_arch_with_bubblewrap_alone_is_told_how_to_get_one(untouched: Home, tmp_path: Path) -> None:
    hidden = "buildah docker podman skopeo systemd-nspawn"
    refused = on_host("arch", hidden, untouched, tmp_path, "lock", *ROW)
    assert "error[input] podman is not installed" in refused.stderr
    assert "sudo pacman -S --needed podman" in refused.stderr
    assert "rocwright trust add" in refused.stderr
