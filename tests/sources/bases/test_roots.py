"""Unpacked root file systems: used only as they were unpacked, whatever became of them since."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from rocbase.files.atomic import CHUNK, sha256_bytes
from rocwright.home import Home
from rocwright.sources.bases.contents import CAPABILITY, fault
from rocwright.sources.bases.roots import changed, changed_roots, look, manifest_of, unpacked_root
from rocwright.store.local import LocalStore
from rocwright.store.model import DamagedBlobError, verified

OLD = 1_700_000_000


def filled(folder: Path) -> Path:
    """A small root with what roots have: programs, links of both kinds, modes, odd names."""
    root = folder / "made"
    texts = {"usr/bin/cc": "a compiler", "etc/passwd": "root:x:0:0", "usr/lib/odd\nname": "x"}
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (OLD, OLD))
    (root / "usr/bin/cc").chmod(0o755)
    (root / "bin").symlink_to("usr/bin")
    os.link(root / "usr/bin/cc", root / "usr/bin/c++")
    (root / "var/empty").mkdir(parents=True)
    (root / "var/empty").chmod(0o700)
    return root


@pytest.fixture
def sha256(store: LocalStore, tmp_path: Path) -> str:
    """The digest of the archive of a small root, which is in the store."""
    root, plain, packed = filled(tmp_path), tmp_path / "root.tar", tmp_path / "root.tar.zst"
    words = ["tar", "--create", "--sort=name", "--format=posix", "--numeric-owner", f"--file={plain}", "."]
    subprocess.run(words, cwd=root, check=True)
    packed.write_bytes(zstandard.compress(plain.read_bytes()))
    return store.put_file(packed, move=True)[0]


@pytest.fixture
def said() -> list[str]:
    """Lines of the log."""
    return []


Unpack = Callable[[], Path]


@pytest.fixture
def unpack(store: LocalStore, home: Home, sha256: str, said: list[str]) -> Unpack:
    """Unpack the small root, or find it."""
    return lambda: unpacked_root(store, sha256, home.roots, said.append)


def in_place(path: Path, data: str) -> None:
    """Write other bytes of the same number, and put the time back."""
    before = path.stat()
    path.write_text(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], object]] = {
    "other bytes, the same size and time": lambda root: in_place(root / "usr/bin/cc", "a Compiler"),
    "more bytes": lambda root: (root / "etc/passwd").write_text("root:x:0:0\nme:x:0:0"),
    "a file that is gone": lambda root: (root / "etc/passwd").unlink(),
    "a file more": lambda root: (root / "etc/ld.so.preload").write_text("/evil.so"),
    "a folder more": lambda root: (root / "usr/local").mkdir(),
    "a link that leads elsewhere": lambda root: relink(root / "bin"),
    "another mode": lambda root: (root / "usr/bin/cc").chmod(0o4755),
    "a link in the place of a file": lambda root: exchange(root / "etc/passwd"),
    "a FIFO in the place of a file": lambda root: fifo(root / "etc/passwd"),
    "another time": lambda root: os.utime(root / "etc/passwd", (1, 1)),
}


def relink(path: Path) -> None:
    path.unlink()
    path.symlink_to("/tmp")


def exchange(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def test_a_root_that_is_as_it_was_is_used_as_it_is(unpack: Unpack, said: list[str]) -> None:
    inode = unpack().stat().st_ino
    assert unpack().stat().st_ino == inode
    assert said == ["base: unpacking the root file system"]


@pytest.mark.parametrize("change", CHANGES)
def test_a_root_that_was_changed_is_unpacked_again_which_is_said(
    unpack: Unpack, said: list[str], store: LocalStore, sha256: str, change: str
) -> None:
    root = unpack()
    CHANGES[change](root)
    said.clear()
    assert unpack() == root
    assert fault(store, sha256, root) == ""
    assert said[0].startswith("base: the unpacked root file system was changed (")
    assert said[0].endswith("): unpacked again")
    said.clear()
    unpack()
    assert said == []


@pytest.mark.parametrize("change", CHANGES)
def test_what_differs_from_the_archive_is_found_without_a_manifest(
    unpack: Unpack, said: list[str], change: str
) -> None:
    root = unpack()
    CHANGES[change](root)
    manifest_of(root).unlink()
    unpack()
    assert any("was changed (" in line for line in said)


def test_a_link_in_the_place_of_a_root_is_not_used(unpack: Unpack, tmp_path: Path) -> None:
    root = unpack()
    root.rename(tmp_path / "elsewhere")
    root.symlink_to(tmp_path / "elsewhere")
    assert not unpack().is_symlink()


@pytest.mark.parametrize("damage", ["gone", "cut short", "flipped", "empty", "swapped numbers"])
def test_a_manifest_that_is_damaged_is_made_anew_from_the_archive(
    unpack: Unpack, said: list[str], damage: str
) -> None:
    root = unpack()
    path = manifest_of(root)
    whole = path.read_bytes()
    middle = len(whole) // 2
    match damage:
        case "gone":
            path.unlink()
        case "cut short":
            path.write_bytes(whole[:-9])
        case "flipped":
            path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
        case "empty":
            path.write_bytes(b"")
        case "swapped numbers":
            path.write_bytes(whole[:-16] + whole[-8:] + whole[-16:-8])
    assert unpack() == root
    assert path.read_bytes() == whole
    assert said == ["base: unpacking the root file system"]


def test_a_root_of_before_there_were_manifests_is_compared_once_and_kept(
    unpack: Unpack, said: list[str]
) -> None:
    root = unpack()
    inode = root.stat().st_ino
    manifest_of(root).unlink()
    assert unpack().stat().st_ino == inode
    assert manifest_of(root).exists()


def test_a_home_that_was_copied_is_compared_once_and_its_manifest_renewed(
    unpack: Unpack, store: LocalStore, sha256: str, home: Home, tmp_path: Path, said: list[str]
) -> None:
    unpack()
    copied = tmp_path / "copied"
    subprocess.run(["cp", "--archive", home.roots, copied], check=True)
    before = manifest_of(copied / sha256).read_bytes()
    inode = (copied / sha256).stat().st_ino
    said.clear()
    root = unpacked_root(store, sha256, copied, said.append)
    assert (root.stat().st_ino, said) == (inode, [])
    assert manifest_of(root).read_bytes() != before
    in_place(root / "etc/passwd", "Root:x:0:0")
    assert changed(store, sha256, root) == "etc/passwd: its bytes are others"


def test_an_archive_that_is_damaged_is_not_taken_for_a_changed_root(
    store: LocalStore, home: Home, tmp_path: Path, said: list[str]
) -> None:
    # longer than what is read at once: it fails to unpack before its end, where its digest is known
    text = "".join(sha256_bytes(b"%d" % number) for number in range(150_000))
    (tmp_path / "root").mkdir()
    (tmp_path / "root/large").write_text(text)
    words = ["tar", "--create", "--zstd", f"--file={tmp_path / 'root.tar.zst'}", "."]
    subprocess.run(words, cwd=tmp_path / "root", check=True)
    sha256, size = store.put_file(tmp_path / "root.tar.zst")
    assert size > 2 * CHUNK
    root = unpacked_root(store, sha256, home.roots, said.append)
    manifest_of(root).unlink()
    blob = verified(store, sha256)
    data = bytearray(blob.read_bytes())
    data[100_000:400_000] = b"\xff" * 300_000
    blob.chmod(0o600)
    blob.write_bytes(data)
    with pytest.raises(DamagedBlobError):
        unpacked_root(store, sha256, home.roots, said.append)
    assert not blob.exists(), "it is moved aside"


def test_a_copy_whose_hard_links_are_files_of_their_own_is_whole(
    unpack: Unpack, store: LocalStore, sha256: str, home: Home, tmp_path: Path, said: list[str]
) -> None:
    root = unpack()
    other = root / "usr/bin/c++"
    shutil.copy2(other, tmp_path / "copy")
    folder = (root / "usr/bin").stat()
    (tmp_path / "copy").replace(other)
    os.utime(root / "usr/bin", ns=(folder.st_atime_ns, folder.st_mtime_ns))
    said.clear()
    unpack()
    assert (said, other.stat().st_nlink) == ([], 1)
    in_place(other, "a COMPILER")
    assert changed(store, sha256, root).startswith("usr/bin/c++")


def test_verify_reads_the_bytes_of_a_root_that_the_disk_changed(
    unpack: Unpack, store: LocalStore, sha256: str, home: Home
) -> None:
    """A disk that forgets changes bytes and no time: here the manifest is made to have seen them."""
    root = unpack()
    assert changed_roots(store, home.roots) == {}
    in_place(root / "etc/passwd", "Root:x:0:0")
    look(root).write(manifest_of(root))
    assert changed(store, sha256, root) == ""
    assert changed_roots(store, home.roots) == {root: "etc/passwd: its bytes are others"}
    assert not root.exists()
    assert fault(store, sha256, unpack()) == ""


def test_a_root_without_its_archive_is_compared_with_its_manifest(
    unpack: Unpack, store: LocalStore, sha256: str, home: Home
) -> None:
    root = unpack()
    store.local.remove("file", sha256)
    assert changed_roots(store, home.roots) == {}
    (root / "etc/passwd").write_text("x")
    assert list(changed_roots(store, home.roots)) == [root]


def test_what_runs_in_a_root_that_is_set_aside_goes_on(unpack: Unpack, home: Home) -> None:
    root = unpack()
    held = os.open(root / "usr/bin/cc", os.O_RDONLY)
    (root / "etc/passwd").unlink()
    unpack()
    assert os.read(held, 100) == b"a compiler"
    os.close(held)
    (aside,) = [path for path in home.roots.iterdir() if path.name.startswith(".unpacking-")]
    assert (aside / "usr/bin/cc").read_text() == "a compiler"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_users_own_root_is_checked_too(store: LocalStore, sha256: str, tmp_path: Path) -> None:
    for path in (tmp_path, *tmp_path.parents, store.path.parent):
        if path.is_relative_to("/tmp") and path != Path("/tmp"):
            path.chmod(0o755)
    (tmp_path / "roots").mkdir()
    os.chown(tmp_path / "roots", 65534, 65534)
    script = """
import sys
from pathlib import Path
from rocwright.sources.bases.roots import unpacked_root
from rocwright.store.local import LocalStore
from rocwright.store.model import DamagedBlobError
store, said = LocalStore(Path(sys.argv[1])), []
root = unpacked_root(store, sys.argv[2], Path(sys.argv[3]), said.append)
unpacked_root(store, sys.argv[2], Path(sys.argv[3]), said.append)
(root.parent / f"{root.name}.manifest").unlink()
unpacked_root(store, sys.argv[2], Path(sys.argv[3]), said.append)
(root / "etc/passwd").write_text("x")
unpacked_root(store, sys.argv[2], Path(sys.argv[3]), said.append)
print(*said, sep=chr(10))
"""
    done = subprocess.run(
        [
            *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
            *(sys.executable, "-c", script, str(store.path), sha256, str(tmp_path / "roots")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    unpacking = "base: unpacking the root file system"
    changed = "base: the unpacked root file system was changed (etc/passwd): unpacked again"
    assert done.stdout.splitlines() == [unpacking, changed, unpacking]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give capabilities")
def test_a_program_that_was_given_a_capability_is_found(unpack: Unpack, said: list[str]) -> None:
    root = unpack()
    all_ = bytes.fromhex("01000002 ffffffff 00000000 ff010000 00000000")
    os.setxattr(root / "usr/bin/cc", CAPABILITY, all_)
    unpack()
    assert "it has other capabilities" in said[1]
