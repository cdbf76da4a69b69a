"""What a hostile package tries while a root is made of it: its scripts are root, of a namespace alone."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.making import deb
from tests.tools_root import HostTools

from rocbase.errors import CheckError
from rocwright.home import Home
from rocwright.model.steps import ArchiveOrigin, DebianOrigin, FilePin
from rocwright.sources.bases.debian import ENVIRONMENT
from rocwright.sources.bases.namespace import PLACE, TOOLS, give, programs, sandboxed
from rocwright.sources.debian import DebianArchive
from rocwright.sources.signed_packages import KEPT, remember, require_signed

ESCAPES = {
    "reads a file of the builder": "cat {secret}",
    "writes beside its folder": "echo x > {secret}",
    "writes to the host's programs": "mount -o remount,rw,bind /usr && : >> /usr/lib/os-release",
    "sets a program that the kernel runs": "cd /proc/sys/kernel && cat core_pattern > core_pattern",
    "makes a disk of the host": "mknod /work/disk b 254 0 && head -c 1 /work/disk",
    "sees the builder's command": "grep -r py[t]est /proc/[0-9]*/cmdline",
    "makes a namespace of its own": "unshare --user true",
    "talks to the network": "grep -q : /proc/net/dev && grep -v lo: /proc/net/dev | grep :",
    "loads code into the kernel": "insmod /usr/x.ko || exit 1",
}


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    give(folder)
    return folder


def attempt(scratch: Path, command: str) -> subprocess.CompletedProcess[str]:
    (scratch / "work").mkdir()
    give(scratch / "work")
    mounts = [*programs(), "--bind", str(PLACE / "work"), "/work", "--tmpfs", "/tmp"]
    binds = {TOOLS: HostTools(Home(scratch)).root}
    words = sandboxed(scratch, ["sh", "-c", command], mounts, ENVIRONMENT, binds=binds, mounting=True)
    return subprocess.run(words, capture_output=True, text=True, timeout=20)


def test_the_sandbox_of_a_root_lets_its_packages_be_installed(scratch: Path) -> None:
    command = "cd /work && mkdir m && mount -t proc proc m && chown 1000:1000 m/../. && chroot / id -u"
    made = attempt(scratch, command)
    assert (made.returncode, made.stdout, made.stderr) == (0, "0\n", "")


@pytest.mark.parametrize("name", ESCAPES)
def test_a_package_reaches_nothing_of_the_host(name: str, scratch: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the builder")
    secret.chmod(0o666)
    command = ESCAPES[name].format(secret=secret)
    assert attempt(scratch, command).returncode != 0
    assert secret.read_text() == "of the builder"


def test_no_user_of_the_host_is_one_of_the_sandbox(scratch: Path) -> None:
    """What is not mapped cannot be written, whatever capability a script has."""
    mapped = attempt(scratch, "cat /proc/self/uid_map").stdout.split()
    assert int(mapped[1]) == (os.geteuid() or 0x7000_0000)


class Signed(DebianArchive):
    """An archive whose lists have one package of each suite, and one more after they were fetched."""

    def refresh(self) -> None:
        self.folder.parent.mkdir(exist_ok=True)
        self.folder.with_name("fetched").touch()

    def signed(self, packages: Iterable[DebianOrigin]) -> set[str]:
        origins = [*packages]
        listed = {LISTED, ABROAD, *([NEW] if self.folder.with_name("fetched").exists() else [])}
        return {one.sha256 for one in listed if one.origin in origins}


def package(name: str, origin: object = None) -> FilePin:
    update = {"sha256": hashlib.sha256(name.encode()).hexdigest(), "filename": f"{name}.deb"}
    return deb("some").model_copy(update=update | ({"origin": origin} if origin else {}))


LISTED, OTHER, NEW = package("listed"), package("other"), package("new")
ABROAD = package("abroad", DebianOrigin(suite="trixie", package="a", version="1", architecture="amd64"))
NAMED = package("hello\x1b[2J")
FOREIGN = package("foreign", ArchiveOrigin(url="https://host.example/foreign.deb"))


@pytest.mark.parametrize("pin", [OTHER, FOREIGN, NAMED], ids=["other", "foreign", "named"])
def test_a_package_that_no_archive_signed_is_refused(
    pin: FilePin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocwright.sources.signed_packages.DebianArchive", Signed)
    files = {one.sha256: one.filename for one in (LISTED, pin)}
    with pytest.raises(CheckError, match="the archive did not sign") as caught:
        require_signed(files, [LISTED, pin], HostTools(Home(tmp_path)))
    assert "listed" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_file_of_which_the_lock_says_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocwright.sources.signed_packages.DebianArchive", Signed)
    with pytest.raises(CheckError):
        require_signed({OTHER.sha256: "other.deb"}, [], HostTools(Home(tmp_path)))


@pytest.mark.parametrize(("pins", "fetched"), [([LISTED, ABROAD], False), ([LISTED, ABROAD, NEW], True)])
def test_lists_of_all_suites_sign_packages_and_are_fetched_only_if_need_be(
    pins: list[FilePin], fetched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocwright.sources.signed_packages.DebianArchive", Signed)
    require_signed({one.sha256: one.filename for one in pins}, pins, HostTools(Home(tmp_path)))
    assert (Home(tmp_path).apt / "fetched").exists() is fetched


def test_what_apt_downloaded_stays_signed_when_the_archive_has_moved_on(tmp_path: Path) -> None:
    assert isinstance(OTHER.origin, DebianOrigin)
    remember([OTHER, FOREIGN, NEW], Home(tmp_path).apt)
    require_signed({OTHER.sha256: "other.deb"}, [], HostTools(Home(tmp_path)))
    assert set((Home(tmp_path).apt / KEPT).read_text().split()) == {OTHER.sha256, NEW.sha256}
