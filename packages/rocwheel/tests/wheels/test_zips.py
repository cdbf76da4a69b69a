from __future__ import annotations

import io
import struct
import warnings
import zipfile
from collections.abc import Callable

import pytest

from rocbase.errors import CheckError
from rocbase.files.bounds import Bound
from rocwheel.wheels import source, zips
from rocwheel.wheels.source import BLOCK, Budget, MemorySource
from rocwheel.wheels.zips import zip_members
from rocwheel_samples.tables import each

FILES = {"a.txt": b"text" * 999, "b/c.bin": bytes(range(256)) * 4, "empty": b""}


class Unseekable(io.BytesIO):
    """Written to as to a pipe: sizes come behind the data."""

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        raise OSError


def written(files: dict[str, bytes] = FILES, *, out: io.BytesIO | None = None, zip64: bool = False) -> bytes:
    out = out or io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w", force_zip64=zip64) as member:
                member.write(content)
    return out.getvalue()


def read(content: bytes) -> dict[str, bytes]:
    archive = MemorySource(content, subject="x.whl")
    found = {}
    for member in zip_members(archive):
        opened = member.open(archive)
        found[member.path] = opened.read_at(0, opened.size)
        assert found[member.path].startswith(member.head(archive, 64))
    return found


def patched(content: bytes, magic: bytes, offset: int, layout: str, value: int, *, nth: int = 0) -> bytes:
    """With one field of the nth record that begins with `magic` set."""
    at = -1
    for _ in range(nth + 1):
        at = content.index(magic, at + 1)
    edited = bytearray(content)
    struct.pack_into(layout, edited, at + offset, value)
    return bytes(edited)


def both(content: bytes, offset: int, value: int) -> bytes:
    """With a field that the member and the directory have, in both."""
    return patched(patched(content, LOCAL, offset, "<I", value), CENTRAL, offset + 2, "<I", value)


LOCAL, CENTRAL, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"


MAX16, MAX32 = 0xFFFF, 0xFFFFFFFF


def widened(
    content: bytes,
    *,
    disks: int = 1,
    record: int = 44,
    more: tuple[int, int, int] = (0, 0, 0),
    full: bool = True,
) -> bytes:
    """With a zip64 end before its end, as zips of more than 65,535 members have it. `more` is the number of
    the disk, that of the directory's first disk, and what is added to the members of this disk."""
    count, size, begin = struct.unpack_from("<HLL", content, len(content) - 12)
    disk, first, here = more
    end64 = struct.pack(
        "<4sQ2H2L4Q", b"PK\6\6", record, 45, 45, disk, first, count + here, count, size, begin
    )
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, len(content) - 22, disks)
    narrow = (MAX16, MAX16, MAX32, MAX32) if full else (count, count, size, begin)
    return content[:-22] + end64 + locator + struct.pack("<4s4H2LH", END, 0, 0, *narrow, 0)


def with_wide_sizes(content: bytes) -> bytes:
    """Of one member, whose sizes and place stand in a zip64 field behind a field of another kind."""
    at = content.index(CENTRAL)
    fields = list(struct.unpack_from("<4s6H3L5H2L", content, at))
    name = content[at + 46 : at + 46 + fields[10]]
    packed, size, local = fields[8], fields[9], fields[16]
    extra = struct.pack("<HH3s", 0x9999, 3, b"odd") + struct.pack("<HHQQQ", 1, 24, size, packed, local)
    fields[8] = fields[9] = fields[16] = MAX32
    fields[11] = len(extra)
    directory = struct.pack("<4s6H3L5H2L", *fields) + name + extra
    return content[:at] + directory + struct.pack("<4s4H2LH", END, 0, 0, 1, 1, len(directory), at, 0)


@pytest.mark.parametrize("full", [True, False], ids=["as large as it gets", "both ends say it"])
@pytest.mark.parametrize("disks", [0, 1])
def test_a_zip64_end_is_read_as_zipfile_reads_it(full: bool, disks: int) -> None:
    content = widened(written(), full=full, disks=disks)
    assert zipfile.ZipFile(io.BytesIO(content)).namelist() == list(FILES)
    assert read(content) == FILES


@each(
    ("content", "says"),
    [
        (widened(written(), disks=2), "its zip64 end record is damaged"),
        (widened(written(), more=(1, 0, 0)), "its zip64 end record is damaged"),
        (widened(written(), more=(0, 1, 0)), "its zip64 end record is damaged"),
        (widened(written(), more=(0, 0, 1)), "its zip64 end record is damaged"),
        (patched(widened(written(), full=False), END, 10, "<H", 2), "two end records contradict each other"),
        (widened(written(), record=45), "zip64 end record is in the wrong place"),
        (patched(written(), END, 4, "<H", 1), "it is a split zip"),
        (patched(written(), END, 6, "<H", 1), "it is a split zip"),
    ],
)
def test_an_end_that_lies_is_refused(content: bytes, says: str) -> None:
    with pytest.raises(CheckError, match=says):
        read(content)


def test_sizes_in_a_zip64_field_are_read_as_zipfile_reads_them() -> None:
    content = with_wide_sizes(written({"a.txt": FILES["a.txt"]}))
    assert zipfile.ZipFile(io.BytesIO(content)).read("a.txt") == FILES["a.txt"]
    assert read(content) == {"a.txt": FILES["a.txt"]}


def test_an_extra_field_that_ends_behind_its_entry_is_refused() -> None:
    content = with_wide_sizes(written({"a.txt": FILES["a.txt"]}))
    with pytest.raises(CheckError, match="an extra field is truncated"):
        read(patched(content, b"\x99\x99", 2, "<H", 32))


def test_a_zip64_locator_with_nothing_before_it_is_refused() -> None:
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, 0, 1)
    with pytest.raises(CheckError):
        read(locator + struct.pack("<4s4H2LH", END, 0, 0, 0, 0, 0, len(locator), 0))


def test_a_file_that_holds_the_mark_of_an_end_is_no_end() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a", END * 3)
    assert read(out.getvalue()) == {"a": END * 3}


@each(
    "content",
    [written(), written(out=Unseekable()), written(zip64=True), written({})],
    ids=["plain", "streamed", "zip64", "empty"],
)
def test_a_sound_zip_is_read_as_zipfile_reads_it(content: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert read(content) == {name: archive.read(name) for name in archive.namelist()}


def test_a_folder_is_no_member_and_modes_are_kept() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.mkdir("a")
        info = zipfile.ZipInfo("a/run")
        info.external_attr = 0o100755 << 16
        archive.writestr(info, "x")
    (member,) = zip_members(MemorySource(out.getvalue()))
    assert (member.path, member.mode) == ("a/run", 0o755)


@each("name", ["/etc/x", "../x", "a/../../x", "a//b", "./a", "a\\b", "C:x", "a\nb", "a/./b"])
def test_names_that_are_no_plain_paths_are_refused(name: str) -> None:
    with pytest.raises(CheckError, match="not a plain relative path"):
        read(written({name: b"x"}))


def with_folder(content: bytes) -> bytes:
    """A zip of one member, a folder, with bytes in it that are not packed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a/"), content)
    return out.getvalue()


@pytest.mark.parametrize(
    "content",
    [with_folder(b"x"), both(with_folder(b"xyz"), 22, 0)],
    ids=["a byte", "bytes that come to none"],
)
def test_a_folder_with_content_is_refused(content: bytes) -> None:
    with pytest.raises(CheckError, match="the folder a/ has content"):
        read(content)


def test_a_link_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo("x")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(CheckError, match="link"):
        read(out.getvalue())


def test_a_name_that_comes_twice_is_refused() -> None:
    twice = written({"a": b"1", "b": b"2"}).replace(b"b", b"a")
    with pytest.raises(CheckError, match="twice"):
        read(twice)


def second_at_first(content: bytes) -> bytes:
    """Both rows of the directory name one member's place, under two names."""
    return patched(content, CENTRAL, 42, "<I", 0, nth=1)


@each(
    ("edit", "says"),
    [
        (lambda one: patched(one, LOCAL, 18, "<I", 7), "contradict"),
        (lambda one: patched(one, LOCAL, 14, "<I", 7), "contradict"),
        (lambda one: patched(one, LOCAL, 8, "<H", 0), "contradict"),
        (lambda one: one.replace(b"a.txt", b"z.txt", 1), "contradict"),
        (second_at_first, "contradict"),
        (lambda one: patched(one, CENTRAL, 8, "<H", 1), "encrypted"),
        (lambda one: patched(one, CENTRAL, 20, "<I", 1 << 30), "contradict"),
        (lambda one: patched(one, CENTRAL, 42, "<I", 1 << 30), "outside"),
        (lambda one: patched(one, CENTRAL, 42, "<I", one.index(CENTRAL) - 10), "outside"),
        (lambda one: patched(one, CENTRAL, 42, "<I", 0xFFFFFFFF), "zip64 field is missing"),
        (lambda one: patched(one, END, 8, "<H", 9), "split zip"),
        (
            lambda one: patched(patched(one, END, 8, "<H", 2), END, 10, "<H", 2),
            "more entries than it declares",
        ),
        (lambda one: patched(patched(one, END, 8, "<H", 9), END, 10, "<H", 9), "truncated"),
        (lambda one: patched(one, END, 16, "<I", 1), "directory is in the wrong place"),
        (lambda one: b"before" + one, "directory is in the wrong place"),
        (lambda one: one + b"behind", "data after its end"),
        (lambda one: one[:-1], "no directory"),
    ],
    ids=range(17),
)
def test_a_directory_that_lies_is_refused(edit: Callable[[bytes], bytes], says: str) -> None:
    with pytest.raises(CheckError, match=says):
        read(edit(written()))


def test_members_that_overlap_are_refused() -> None:
    inner = written({"x": b"1"})
    local = inner[: inner.index(CENTRAL)]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("outer", local)
    content = out.getvalue()
    # a second row of the directory for the zip that is stored within the first member
    begin = content.index(CENTRAL)
    row = bytearray(inner[inner.index(CENTRAL) : inner.index(END)])
    struct.pack_into("<I", row, 42, content.index(LOCAL, 1))
    rows = content[begin : content.index(END)] + bytes(row)
    end = struct.pack("<4sHHHHIIH", END, 0, 0, 2, 2, len(rows), begin, 0)
    with pytest.raises(CheckError, match="overlap"):
        read(content[:begin] + rows + end)


def test_more_members_than_any_wheel_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zips, "WHEELS", Bound(size=0, members=2))
    with pytest.raises(CheckError, match="claims 3 members"):
        read(written())


@each(
    ("offset", "value", "says"),
    [(14, 1, "checksum"), (22, 5000, "less than|end early"), (22, 3, "more than"), (18, 9, "end early")],
    ids=["crc", "less", "more", "packed"],
)
def test_content_that_is_not_what_the_directory_says_is_refused(offset: int, value: int, says: str) -> None:
    with pytest.raises(CheckError, match=says):
        read(both(written({"a": b"text" * 999}), offset, value))


def test_a_member_packed_in_another_way_is_refused_when_it_is_read() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a", b"text" * 99)
    with pytest.raises(CheckError, match="method 14"):
        read(out.getvalue())


def test_inflated_data_are_read_at_any_place_and_what_begins_a_page_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source, "BLOCKS_KEPT", 2)
    content = bytearray(8 * BLOCK)
    for page in range(0, len(content), 5 * 4096):
        content[page : page + 70] = b"\x7fELF" + page.to_bytes(8, "little") + bytes(range(58))
    for at in range(1, 9):
        content[-at] = at
    archive = MemorySource(written({"a": bytes(content)}))
    (member,) = zip_members(archive)
    opened = member.open(archive)
    assert opened.read_at(len(content) - 8, 8) == bytes(range(8, 0, -1))
    spent = Budget(1 << 40, "x")
    opened.budget = spent
    before = spent.left
    for page in reversed(range(0, len(content), 5 * 4096)):
        assert opened.read_at(page, 64) == content[page : page + 64]
    assert before - spent.left < BLOCK * 4
    for begin, size in ((0, 70), (BLOCK - 9, 3 * BLOCK), (100, 5), (0, len(content))):
        assert opened.read_at(begin, size) == content[begin : begin + size]
    with pytest.raises(CheckError, match="truncated"):
        opened.read_at(len(content) - 3, 4)
