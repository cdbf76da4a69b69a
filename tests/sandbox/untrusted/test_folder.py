"""What a step leaves, read and listed: only regular files, bounded, below the folder, and never a wait."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocbase.errors import InputError, SandboxError
from rocbase.files.atomic import CHUNK
from rocbase.folders.listing import FolderEntry, Level, shown
from rocbase.folders.removal import remove_tree
from rocwheel_samples.hostile_files import (
    make_deep,
    make_fifo,
    make_huge,
    make_link_to_zero,
    make_setgid,
    make_setuid,
    make_socket,
    make_zero,
)
from rocwright.sandbox.untrusted import Untrusted

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")


HOSTILE: list[tuple[str, Callable[[Path], None]]] = [
    ("a FIFO", make_fifo),
    ("a socket", make_socket),
    pytest.param("a device", make_zero, marks=root_only),  # type: ignore[list-item]
    ("a symbolic link", make_link_to_zero),
    ("a symbolic link", lambda path: path.symlink_to("missing")),
    ("a folder", Path.mkdir),
    ("setuid or setgid", make_setuid),
    ("setuid or setgid", make_setgid),
    ("4,398,046,511,104 bytes", make_huge),
]


@pytest.mark.parametrize(("told", "make"), HOSTILE)
def test_what_is_no_plain_file_is_refused_by_name_and_step(
    left: Untrusted, told: str, make: Callable[[Path], None]
) -> None:
    make(left.folder / "log")
    with pytest.raises(SandboxError) as refused:
        left.read_bytes("log")
    said = f"{refused.value.message}; {refused.value.cause}"
    assert told in said
    assert "torch left" in said
    assert "log" in said
    assert refused.value.next_step


@pytest.mark.parametrize(("told", "make"), HOSTILE)
def test_what_is_no_plain_file_is_not_taken_out(
    left: Untrusted, told: str, make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(left.folder / "a.whl")
    with pytest.raises(SandboxError):
        left.take("a.whl", tmp_path / "taken", limit=2**40)
    assert not (tmp_path / "taken").exists()


def test_a_plain_file_is_read(left: Untrusted) -> None:
    (left.folder / "a").mkdir()
    (left.folder / "a" / "report").write_bytes(b"all well\xff")
    assert left.read_bytes("a/report") == b"all well\xff"
    assert left.read_text("./a//report") == "all well�"


def test_a_name_that_is_not_there_is_told_as_such(left: Untrusted) -> None:
    for name in ("log", "a/log"):
        with pytest.raises(FileNotFoundError):
            left.read_bytes(name)


def test_a_link_in_the_middle_of_a_path_is_not_followed(left: Untrusted, tmp_path: Path) -> None:
    (left.folder / "up").symlink_to(tmp_path)
    with pytest.raises(SandboxError, match="a symbolic link as up"):
        left.read_bytes("up/secret")
    with pytest.raises(SandboxError):
        left.take("up/secret", tmp_path / "taken")
    assert (tmp_path / "secret").read_text() == "outside"


def test_a_file_in_the_middle_of_a_path_is_refused(left: Untrusted) -> None:
    os.mkfifo(left.folder / "a")
    with pytest.raises(SandboxError, match="a FIFO as a "):
        left.read_bytes("a/b")


@pytest.mark.parametrize(
    "name", ["", ".", "/", "..", "a/..", "../secret", "a/../../secret", "/etc/passwd", "a\0b"]
)
def test_a_path_that_leads_out_is_refused(left: Untrusted, name: str) -> None:
    (left.folder / "a").mkdir()
    with pytest.raises(SandboxError, match="torch left a name"):
        left.read_bytes(name)


@pytest.mark.parametrize("name", ["x" * 300, "y/" * 5000 + "z", "x" * 100_000])
def test_a_very_long_name_is_no_traceback(left: Untrusted, name: str) -> None:
    with pytest.raises((SandboxError, FileNotFoundError)) as told:
        left.read_bytes(name)
    assert len(str(told.value)) < 20_000


PARTS = st.sampled_from(["a", ".", "..", "/", "//", "\0", "\n", "link", "é", "\udc80", "\ud800", "x" * 400])


@given(name=st.lists(PARTS, max_size=8).map("".join))
def test_no_name_leads_out_of_the_folder(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("place")
    (place / "a").write_text("outside")
    (place / "left").mkdir()
    (place / "left" / "link").symlink_to("..")
    (place / "left" / "a").write_text("inside")
    try:
        read = Untrusted(place / "left", "torch").read_text(name)
    except (SandboxError, FileNotFoundError):
        return
    assert read == "inside"


def test_control_characters_of_a_name_do_not_reach_the_message(left: Untrusted) -> None:
    name = "\x1b[2Jlog\n\udcff"
    os.mkfifo(os.fsencode(left.folder) + b"/" + name.encode(errors="surrogateescape"))
    with pytest.raises(SandboxError) as refused:
        left.read_bytes(name)
    assert refused.value.message.isprintable()
    assert "\\x1b[2Jlog\\n\\udcff" in refused.value.message


@given(st.text(alphabet=st.characters(codec=None)))
def test_a_shown_name_is_printable_and_short(name: str) -> None:
    told = shown(name)
    assert told.isprintable()
    assert len(told) <= 203


def test_a_file_that_grows_while_it_is_read_is_bounded(left: Untrusted) -> None:
    path = left.folder / "log"
    path.write_bytes(b"x" * 1000)
    with left.open("log", limit=1000) as file:
        with path.open("ab") as more:
            more.write(b"x" * 2_000_000)
        with pytest.raises(SandboxError, match="a file as log"):
            file.read()


def test_a_file_of_just_the_bound_is_read_whole(left: Untrusted) -> None:
    (left.folder / "log").write_bytes(b"x" * 1000)
    assert len(left.read_bytes("log", limit=1000)) == 1000
    for read in (left.read_bytes, left.read_text):
        with pytest.raises(SandboxError, match="torch left a file as log"):
            read("log", limit=999)


def test_an_open_file_can_be_searched_in(left: Untrusted) -> None:
    (left.folder / "a.whl").write_bytes(bytes(range(256)) * 100)
    with left.open("a.whl") as file:
        assert file.seek(-1, os.SEEK_END) == 25_599
        assert file.read() == b"\xff"
        assert file.seek(3) == 3
        assert file.read(2) == b"\x03\x04"


def test_a_link_put_in_place_of_a_folder_while_it_is_read_leads_nowhere(
    left: Untrusted, tmp_path: Path
) -> None:
    """Somebody exchanges folder and link as fast as he can, and no read ever gives what lies outside."""
    outside, link, inner = tmp_path / "outside", left.folder / "link", left.folder / "a"
    outside.mkdir()
    (outside / "f").write_text("outside")
    inner.mkdir()
    (inner / "f").write_text("inside")
    link.symlink_to(outside)
    done = threading.Event()

    def exchange() -> None:
        while not done.is_set():
            inner.rename(left.folder / "b")
            link.rename(inner)
            inner.rename(link)
            (left.folder / "b").rename(inner)

    thread = threading.Thread(target=exchange)
    thread.start()
    seen = set()
    try:
        for _ in range(3000):
            try:
                seen.add(left.read_text("a/f"))
            except (SandboxError, FileNotFoundError):
                seen.add("refused")
            seen |= {entry.path for entry in left.walk(strict=False) if "outside" in entry.path}
    finally:
        done.set()
        thread.join()
    assert "inside" in seen
    assert seen <= {"inside", "refused"}


def test_a_walk_tells_everything_and_follows_nothing(left: Untrusted, tmp_path: Path) -> None:
    (left.folder / "a" / "b").mkdir(parents=True)
    (left.folder / "a" / "b" / "f").write_text("four")
    (left.folder / "a" / "out").symlink_to(tmp_path)
    os.mkfifo(left.folder / "pipe")
    found = {entry.path: entry for entry in left.walk()}
    assert {path: entry.kind for path, entry in found.items()} == {
        "a": "a folder",
        "a/b": "a folder",
        "a/b/f": "a file",
        "a/out": "a symbolic link",
        "pipe": "a FIFO",
    }
    assert found["a/b/f"].stat.st_size == 4
    assert found["a/b/f"].name == "f"


def test_a_walk_can_begin_in_a_folder_of_it_but_not_through_a_link(left: Untrusted, tmp_path: Path) -> None:
    (left.folder / "a" / "b").mkdir(parents=True)
    (left.folder / "a" / "b" / "f").write_text("four")
    (left.folder / "other").touch()
    (left.folder / "link").symlink_to(tmp_path)
    assert [entry.path for entry in left.walk(start="a")] == ["a/b", "a/b/f"]
    assert [entry.path for entry in left.walk(start="a/b")] == ["a/b/f"]
    with pytest.raises(SandboxError, match="torch left a symbolic link as link"):
        list(left.walk(start="link", strict=False))
    with pytest.raises(SandboxError, match="torch left a file as other"):
        list(left.walk(start="other"))
    with pytest.raises(FileNotFoundError):
        list(left.walk(start="none"))


def test_a_walk_has_an_end_in_depth(left: Untrusted) -> None:
    make_deep(left.folder, 3000)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(SandboxError, match="torch left a folder as d/d/d"):
        list(left.walk())
    assert len(list(left.walk(strict=False))) == 129
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert remove_tree(left.folder)


def test_a_walk_has_an_end_in_number(left: Untrusted) -> None:
    for number in range(11):
        (left.folder / str(number)).touch()
    assert len(list(left.walk(limit=11))) == 11
    with pytest.raises(SandboxError, match="more than 10 files"):
        list(left.walk(limit=10))


def test_a_glob_matches_within_the_folder(left: Untrusted, tmp_path: Path) -> None:
    (left.folder / "dist").mkdir()
    for name in ("dist/a.whl", "dist/b.whl", "c.whl"):
        (left.folder / name).touch()
    (left.folder / "linked").symlink_to("dist")
    (left.folder / "out.whl").symlink_to(tmp_path / "secret")
    assert [one.path for one in left.matches("*.whl")] == ["c.whl", "out.whl"]
    assert [one.kind for one in left.matches("*.whl")] == ["a file", "a symbolic link"]
    assert [one.path for one in left.matches("*/*.whl")] == ["dist/a.whl", "dist/b.whl"]
    assert left.matches("missing/*") == []


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "", "a/../../*", "\0"])
def test_a_glob_that_leads_out_is_refused(left: Untrusted, pattern: str) -> None:
    with pytest.raises(InputError, match="is not a valid pattern"):
        left.matches(pattern)


def test_a_glob_has_an_end(left: Untrusted) -> None:
    for number in range(20):
        (left.folder / str(number)).touch()
    with pytest.raises(SandboxError, match="more than 10 files"):
        left.matches("*", limit=10)
    with pytest.raises(SandboxError, match="more than 10 files"):
        left.matches("*", maximum=10)


def test_what_lies_there_is_told_whatever_it_is(left: Untrusted, tmp_path: Path) -> None:
    (left.folder / "link").symlink_to(tmp_path / "secret")
    (left.folder / "a").mkdir()
    (left.folder / "a" / "f").write_text("four")
    assert stat.S_ISLNK(left.stat("link").st_mode)
    assert left.stat("a/f").st_size == 4
    with pytest.raises(FileNotFoundError):
        left.stat("missing")
    with pytest.raises(SandboxError, match="a symbolic link as link "):
        left.stat("link/secret")


def test_a_refusal_tells_where_and_what_to_do(left: Untrusted) -> None:
    make_fifo(left.folder / "log")
    with pytest.raises(SandboxError) as refused:
        left.open("log")
    assert refused.value.message == "torch left a FIFO as log that rocwright refuses to open"
    assert refused.value.cause == f"only regular files are read; in {left.folder}"
    assert "torch" in refused.value.next_step
    assert refused.value.subject == "torch"


def test_no_descriptor_stays_open_after_a_refusal(left: Untrusted) -> None:
    make_fifo(left.folder / "pipe")
    make_setuid(left.folder / "setuid")
    (left.folder / "a").mkdir()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for name in ("pipe", "setuid", "a/missing", "pipe/below", "a/../..", "a"):
        with pytest.raises((SandboxError, FileNotFoundError)):
            left.open(name)
    with pytest.raises(SandboxError):
        left.matches("*", limit=1)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


PLAIN_USER = """
import os, sys
from pathlib import Path
from rocbase.errors import SandboxError
from rocwright.sandbox.untrusted import Untrusted
if os.geteuid() == 0:
    os.setgid(1000)
    os.setuid(1000)
left = Untrusted(Path("left"), "torch")
Path("left/shut/inner").mkdir(parents=True)
Path("left/shut/f").write_text("x")
Path("left/unreadable").touch(0)
Path("left/listed/f").parent.mkdir()
Path("left/listed/f").touch()
Path("left/listed").chmod(0o444)
Path("left/shut").chmod(0)

def refused(act):
    try:
        act()
    except SandboxError as error:
        return f"{error.message}; {error.cause}"

print(refused(lambda: list(left.walk())))
print(sorted(entry.path for entry in left.walk(strict=False)))
print(refused(lambda: left.open("shut/f")))
print(refused(lambda: left.open("unreadable")))
print(refused(lambda: left.matches("listed/*")))
print(refused(lambda: left.matches("shut/*")))
Path("left/shut").chmod(0o700)
Path("left/own").write_text("own")
inode = Path("left/own").stat().st_ino
print(left.take("own", Path("taken")).stat().st_ino == inode, Path("left/own").exists())
Path("left/fixed").mkdir()
Path("left/fixed/f").write_text("kept")
Path("left/fixed").chmod(0o555)
print(left.take("fixed/f", Path("copied")).read_text(), Path("left/fixed/f").exists())
foreign = left.take("foreign", Path("mine"))
print(foreign.read_text(), foreign.stat().st_uid == os.geteuid())
"""


def test_what_a_plain_user_may_not_open_is_told(tmp_path: Path) -> None:
    """For root everything is open."""
    (tmp_path / "left").mkdir()
    (tmp_path / "left" / "foreign").write_text("of another user")
    if os.geteuid() == 0:
        for path in (tmp_path, tmp_path / "left"):
            os.chown(path, 1000, 1000)
    done = subprocess.run(
        [sys.executable, "-c", PLAIN_USER], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    walked, partly, shut, unreadable, listed, matched, moved, copied, foreign = done.stdout.splitlines()
    assert "torch left something as " in walked
    assert partly == "['foreign', 'listed', 'shut', 'unreadable']"
    assert shut == "torch left a folder as shut that rocwright refuses to open; permission denied; in left"
    assert unreadable.startswith("torch left something as unreadable")
    assert "permission denied" in unreadable
    assert "torch left something as listed " in listed
    assert "torch left something as shut " in matched
    assert moved == "True False"
    assert copied == "kept True"
    assert foreign == "of another user True"


# what only a fault or a race brings about


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_file_that_is_exchanged_between_the_look_and_the_opening_is_refused_and_shut(
    left: Untrusted, monkeypatch: pytest.MonkeyPatch
) -> None:
    (left.folder / "log").write_text("x")
    make_setuid(left.folder / "other")
    before, other = open_files(), (left.folder / "other").stat()
    monkeypatch.setattr(os, "fstat", lambda _: other)
    with pytest.raises(SandboxError, match="torch left a file as log"):
        left.open("log")
    assert open_files() == before


@pytest.mark.parametrize(
    ("whole", "error", "told"),
    [(True, errno.EIO, True), (False, errno.EIO, False), (True, errno.ENOENT, False)],
)
def test_a_folder_that_cannot_be_listed_is_told_or_left_out(
    left: Untrusted, monkeypatch: pytest.MonkeyPatch, whole: bool, error: int, told: bool
) -> None:
    for name in ("a", "b"):
        (left.folder / name).mkdir()
        (left.folder / name / "file").touch()
    real, failed = Level.next, list[str]()

    def fails_once(level: Level) -> FolderEntry | None:
        if level.path and not failed:
            failed.append(level.path)
            raise OSError(error, os.strerror(error))
        return real(level)

    monkeypatch.setattr(Level, "next", fails_once)
    walk = left.walk(strict=whole)
    if told:
        with pytest.raises(SandboxError, match=r"torch left something as [ab]") as refused:
            list(walk)
        assert "input/output error" in refused.value.cause
    else:
        assert sorted(entry.path for entry in walk) == ["a", "a/file", "b", "b/file"]
        assert failed


def test_a_folder_that_goes_while_it_is_walked_is_left_out_and_the_rest_is_told(left: Untrusted) -> None:
    for name in ("a", "b", "c"):
        (left.folder / name).mkdir()
    told = []
    for entry in left.walk():
        told.append(entry.path)
        if len(told) == 1:
            (left.folder / entry.path).rmdir()
    assert sorted(told) == ["a", "b", "c"]


def test_a_file_is_read_in_pieces_of_any_size(left: Untrusted) -> None:
    (left.folder / "log").write_bytes(b"0123456789")
    with left.open("log") as file:
        assert file.read(0) == b""
        assert file.raw.read(0) == b""
        into = bytearray(4)
        assert (file.raw.readinto(memoryview(into)), bytes(into)) == (4, b"0123")
        assert file.raw.read(3) == b"456"
        assert file.raw.read() == b"789"
        assert file.raw.readinto(memoryview(into)) == 0
        assert file.raw.read(3) == b""


def test_a_file_that_grew_is_not_read_far_past_its_bound(left: Untrusted) -> None:
    (left.folder / "log").write_bytes(b"x")
    with left.open("log", limit=10) as file:
        with (left.folder / "log").open("r+b") as grown:
            grown.truncate(50 * CHUNK)
        with pytest.raises(SandboxError, match="torch left a file as log"):
            file.raw.read()
        assert file.raw.tell() <= CHUNK


@pytest.mark.parametrize("name", ["log", "folder"])
def test_why_something_cannot_be_opened_is_told(
    left: Untrusted, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (left.folder / "log").touch()
    (left.folder / "folder").mkdir()
    real = os.open

    def fails(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == name:
            raise OSError(errno.EIO, "Input/output error")
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", fails)
    with pytest.raises(SandboxError, match=f"torch left something as {name}") as refused:
        left.read_bytes("log") if name == "log" else list(left.walk())
    assert refused.value.cause.startswith("input/output error; in ")


def test_folders_are_made_below_and_no_link_leads_out(tmp_path: Path) -> None:
    folder, outside = tmp_path / "kept", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    kept = Untrusted(folder, "a server")
    kept.make_folders("models/vae")
    kept.make_folders("models/vae")
    kept.make_folders("models/loras")
    assert sorted(path.name for path in (folder / "models").iterdir()) == ["loras", "vae"]
    assert stat.S_IMODE((folder / "models").stat().st_mode) == 0o700
    (folder / "linked").symlink_to(outside)
    (folder / "file").write_text("")
    for name in ("linked/vae", "linked", "file", "file/vae", "../outside/vae", "/vae"):
        with pytest.raises(SandboxError):
            kept.make_folders(name)
    assert not list(outside.iterdir())
