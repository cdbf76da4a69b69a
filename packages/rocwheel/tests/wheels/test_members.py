from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
import tarfile
from pathlib import Path

import pytest
import zstandard

from rocbase.errors import CheckError, InputError
from rocbase.files.bounds import MIB, Bound
from rocwheel.wheels import archives
from rocwheel.wheels.members import HEAD, members
from rocwheel_samples.archives import tar, write_files, write_image
from rocwheel_samples.fatbin import write_wheel

FILES = {"a/lib.so": b"\x7fELF" + b"library" * 20_000, "a/b/text": b"text", "empty": b""}
CONTROL = b"Package: x\nVersion: 1\nArchitecture: all\nMaintainer: nobody <a@b.example>\nDescription: x\n"


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def contents(path: Path) -> dict[str, bytes]:
    found = {}
    for member in members(path):
        source = member.open()
        assert (source.size, member.head) == (member.size, source.read_at(0, min(HEAD, member.size)))
        found[member.path] = source.read_at(0, source.size)
    return found


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        ("tar", bytes),
        ("tar.gz", gzip.compress),
        ("tar.xz", lzma.compress),
        ("tar.zst", zstandard.compress),
        ("tar.bz2", bz2.compress),
        ("bin", lzma.compress),
    ],
)
def test_a_tar_is_read_however_it_is_packed_and_named(tmp_path: Path, suffix: str, pack: object) -> None:
    assert callable(pack)
    path = write(tmp_path, f"x.{suffix}", pack(tar(FILES)))
    assert contents(path) == FILES
    assert {member.mode for member in members(path)} == {0o755}
    assert len(list(tmp_path.iterdir())) == 1


def test_several_xz_streams_are_one_tar(tmp_path: Path) -> None:
    content = tar(FILES)
    packed = lzma.compress(content[:700]) + lzma.compress(content[700:]) + bytes(8)
    assert contents(write(tmp_path, "x.tar.xz", packed)) == FILES


def test_a_wheel_and_a_folder_hold_the_same(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "folder", FILES)
    wheel = write_wheel(tmp_path / "x-1-py3-none-any.whl", FILES)
    assert contents(wheel) == contents(folder) == FILES


def test_the_members_of_a_wheel_can_be_opened_in_any_order(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "x-1-py3-none-any.whl", FILES)
    opened = [member.open() for member in members(wheel)]
    assert [source.read_at(0, source.size) for source in reversed(opened)] == list(reversed(FILES.values()))


@pytest.mark.parametrize("packing", ["gzip", "xz", "zstd"])
def test_a_debian_package_is_read_through_both_of_its_archives(tmp_path: Path, packing: str) -> None:
    files = {f"usr/{name}": content for name, content in FILES.items()}
    root = write_files(tmp_path / "root", {"DEBIAN/control": CONTROL, **files})
    package = tmp_path / "x.deb"
    done = subprocess.run(["dpkg-deb", f"-Z{packing}", "-b", root, package], capture_output=True)
    if done.returncode:
        pytest.skip(f"dpkg-deb does not pack so: {done.stderr!r}")
    assert contents(package) == files


def test_the_objects_of_a_static_library_have_their_long_names(tmp_path: Path) -> None:
    names = [f"{'long' * number}.o" for number in (1, 5, 9)]
    write_files(tmp_path, {name: name.encode() for name in names})
    subprocess.run(["ar", "rc", "libx.a", *names], cwd=tmp_path, check=True)
    assert contents(tmp_path / "libx.a") == {name: name.encode() for name in names}


def test_an_image_shows_what_a_container_would_see(tmp_path: Path) -> None:
    base = tar(
        {"lib/a.so": b"old", "lib/b.so": b"gone", "opt/x/c.so": b"gone", "opt/x/d.so": b"gone", "e": b"e"}
    )
    above = tar({"lib/a.so": b"new", "lib/.wh.b.so": b"", "opt/x/.wh..wh..opq": b"", "opt/x/f.so": b"f"})
    image = write_image(tmp_path / "image", gzip.compress(base), zstandard.compress(above))
    assert contents(image) == {"lib/a.so": b"new", "opt/x/f.so": b"f", "e": b"e"}


@pytest.mark.parametrize("place", ["index.json", "blobs", "blobs/sha256"])
def test_an_image_is_read_through_no_link(tmp_path: Path, place: str) -> None:
    image = write_image(tmp_path / "image", tar(FILES))
    (image / place).rename(tmp_path / "elsewhere")
    (image / place).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckError, match="is a link"):
        contents(image)


def test_an_image_without_its_blobs_is_a_check_error(tmp_path: Path) -> None:
    image = write_image(tmp_path / "image", tar(FILES))
    for blob in (image / "blobs" / "sha256").iterdir():
        blob.unlink()
    with pytest.raises(CheckError, match="is missing"):
        contents(image)


def test_a_digest_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    image = write_image(tmp_path / "image")
    (image / "index.json").write_text('{"manifests": [{"digest": "sha256:../../../etc/passwd"}]}')
    with pytest.raises(CheckError, match="no digest"):
        contents(image)


def test_a_tar_header_without_end_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1 << 28
    path = write(tmp_path, "x.tar.gz", gzip.compress(info.tobuf() + bytes(32 << 20)))
    with pytest.raises(CheckError, match="a header of 268435456 bytes"):
        contents(path)


def test_too_many_members_are_not_read_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "PACKAGES", Bound(size=MIB, members=2))
    with pytest.raises(CheckError, match="more files than any"):
        contents(write(tmp_path, "x.tar", tar(FILES)))


def test_what_is_neither_file_nor_folder_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        list(members(tmp_path / "missing"))
    with pytest.raises(InputError):
        list(members(Path("/dev/null")))
