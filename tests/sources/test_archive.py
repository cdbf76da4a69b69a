"""Archives from strangers never leave their folder; trees are packed the same everywhere."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import random
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.making import EPOCH

from rocbase.errors import FetchError
from rocbase.files.bounds import MIB, SOURCES, Bound
from rocwheel_samples.trees import write_tree
from rocwright.sources import archive
from rocwright.sources.archive import pack, unpack
from rocwright.store import packed
from rocwright.store.packed import content_of


def member(name: str, data: bytes = b"", **more: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    info.mode = 0o644
    for field, value in more.items():
        setattr(info, field, value)
    return info, data


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as file:  # type: ignore[call-overload]
        for info, data in members:
            file.addfile(info, io.BytesIO(data))
    return path


def link(name: str, to: str) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=tarfile.SYMTYPE, linkname=to)


def hard(name: str, to: str) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=tarfile.LNKTYPE, linkname=to)


FOLDER = member("x-1/", type=tarfile.DIRTYPE, mode=0o755)
FILE = member("x-1/file", b"text")


def contents(folder: Path) -> dict[str, object]:
    """Every path below: text of a file (with x where it may be run), target of a link, None for a folder."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_dir():
            found[name] = None
        else:
            found[name] = path.read_bytes() + (b" (x)" if path.stat().st_mode & 0o100 else b"")
    return found


# what is unpacked


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_is_unpacked_without_the_folder_around_it(tmp_path: Path, mode: str) -> None:
    path = tar(tmp_path / "x.tar", FOLDER, FILE, member("x-1/run", b"#!", mode=0o755), mode=mode)
    unpack(path, tmp_path / "out")
    assert contents(tmp_path / "out") == {"file": b"text", "run": b"#! (x)"}


def test_a_zstd_tar_is_known_by_its_bytes_not_its_name(tmp_path: Path) -> None:
    path = tar(tmp_path / "x.tar", FOLDER, FILE, mode="w")
    path.write_bytes(zstandard.ZstdCompressor().compress(path.read_bytes()))
    unpack(path, tmp_path / "out")
    assert contents(tmp_path / "out") == {"file": b"text"}


def test_a_tar_without_a_folder_around_it_is_kept_whole_when_said_so(tmp_path: Path) -> None:
    path = tar(tmp_path / "x.tar.gz", member("a", b"1"), member("b/c", b"2"))
    unpack(path, tmp_path / "out", wrapped=False)
    assert contents(tmp_path / "out") == {"a": b"1", "b": None, "b/c": b"2"}


def test_no_file_is_lost_where_nothing_is_wrapped_around_it(tmp_path: Path) -> None:
    path = tar(tmp_path / "x.tar.gz", member("setup.py", b"1"), member("src/c", b"2"))
    unpack(path, tmp_path / "out")
    assert contents(tmp_path / "out") == {"setup.py": b"1", "src": None, "src/c": b"2"}


def test_only_what_lies_under_the_subdir_is_kept(tmp_path: Path) -> None:
    path = tar(
        tmp_path / "x.tar.gz", FOLDER, FILE, member("x-1/vendor/a", b"1"), member("x-1/vendorish/b", b"2")
    )
    unpack(path, tmp_path / "out", subdir="vendor")
    assert contents(tmp_path / "out") == {"a": b"1"}


def test_a_subdir_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    path = tar(tmp_path / "x.tar.gz", FOLDER, FILE)
    with pytest.raises(FetchError, match="has nothing under vendor"):
        unpack(path, tmp_path / "out", subdir="vendor")


def test_links_within_the_tree_are_kept(tmp_path: Path) -> None:
    path = tar(tmp_path / "x.tar.gz", FOLDER, FILE, link("x-1/soft", "file"), hard("x-1/hard", "x-1/file"))
    unpack(path, tmp_path / "out")
    assert contents(tmp_path / "out") == {"file": b"text", "hard": b"text", "soft": "-> file"}


def test_a_link_in_a_circle_leads_nowhere_and_is_kept(tmp_path: Path) -> None:
    unpack(tar(tmp_path / "x.tar.gz", FOLDER, link("x-1/l", "l")), tmp_path / "out")
    assert contents(tmp_path / "out") == {"l": "-> l"}


def test_a_hard_link_within_the_subdir_is_kept(tmp_path: Path) -> None:
    path = tar(tmp_path / "x.tar.gz", member("x/v/a", b"1"), hard("x/v/b", "x/v/a"))
    unpack(path, tmp_path / "out", subdir="v")
    assert contents(tmp_path / "out") == {"a": b"1", "b": b"1"}


def test_a_zip_is_unpacked_with_its_modes(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("a/b", "1")
        info = zipfile.ZipInfo("run")
        info.external_attr = (stat.S_IFREG | 0o755) << 16
        bundle.writestr(info, "2")
    unpack(path, tmp_path / "out")
    assert contents(tmp_path / "out") == {"a": None, "a/b": b"1", "run": b"2 (x)"}


@pytest.mark.parametrize(
    ("said", "mode"),
    [
        (0o644, 0o644),
        (0o600, 0o644),
        (0o666, 0o644),
        (0o755, 0o755),
        (0o4777, 0o755),
        (0o001, 0o755),
        (0, 0o644),
    ],
)
def test_of_the_modes_of_a_zip_only_that_a_file_can_run_is_kept(tmp_path: Path, said: int, mode: int) -> None:
    """A tree is the same whoever packed it, and holds nothing that others may write to."""
    info = zipfile.ZipInfo("file")
    info.external_attr = (stat.S_IFREG | said) << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as bundle:
        bundle.writestr(info, "1")
    unpack(tmp_path / "x.zip", tmp_path / "out")
    assert stat.S_IMODE((tmp_path / "out/file").stat().st_mode) == mode


# what is refused

DEEP = [FOLDER, *(member(f"x-1/{name}/", type=tarfile.DIRTYPE, mode=0o755) for name in ("a", "a/b", "a/b/c"))]
UP = link("x-1/a/b/c/up", "../../..")
"""Leads to the tree's own top, which is not outside; what goes on from there with .. is."""


@pytest.mark.parametrize(
    "members",
    [
        pytest.param([member("../evil", b"x")], id="leads out"),
        pytest.param([FOLDER, member("x-1/../../evil", b"x")], id="leads out of the folder"),
        pytest.param([member("/evil", b"x")], id="absolute"),
        pytest.param([FOLDER, member("x-1/a\\..\\..\\evil", b"x")], id="backslash"),
        pytest.param([FOLDER, link("x-1/l", "/etc")], id="link to an absolute path"),
        pytest.param([FOLDER, link("x-1/l", "../../evil")], id="link out"),
        pytest.param([FOLDER, link("x-1/l", ".."), member("x-1/l/evil", b"x")], id="through a link"),
        pytest.param([*DEEP, UP, link("x-1/l", "a/b/c/up/..")], id="link out by another link"),
        pytest.param([*DEEP, link("x-1/l", "a/b/c/up/.."), UP], id="link out by a later link"),
        pytest.param([*DEEP, UP, member("x-1/a/b/c/up/../evil", b"x")], id="dots after a link"),
        pytest.param(
            [*DEEP, link("x-1/l", "a/b/c/up/.."), UP, member("x-1/l/evil", b"x")], id="by two links"
        ),
        pytest.param([FOLDER, hard("x-1/h", "/etc/passwd")], id="hard link to an absolute path"),
        pytest.param([FOLDER, hard("x-1/h", "../../etc/passwd")], id="hard link out"),
        pytest.param([FOLDER, hard("x-1/h", "x-1")], id="hard link to what is not kept"),
        pytest.param([FOLDER, member("x-1/d", type=tarfile.CHRTYPE, devmajor=1, devminor=3)], id="char"),
        pytest.param([FOLDER, member("x-1/d", type=tarfile.BLKTYPE, devmajor=8, devminor=0)], id="block"),
        pytest.param([FOLDER, member("x-1/f", type=tarfile.FIFOTYPE)], id="pipe"),
    ],
)
def test_a_member_that_is_not_safe_is_refused_by_name_and_nothing_lies_outside(
    tmp_path: Path, members: Iterable[tuple[tarfile.TarInfo, bytes]]
) -> None:
    target = tmp_path / "deep" / "er" / "out"
    path = tar(tmp_path / "bad.tar.gz", *members)
    with pytest.raises(FetchError, match=r"bad\.tar\.gz is refused: its member '.+' is not safe"):
        unpack(path, target)
    assert {path.name for path in tmp_path.rglob("*")} <= {
        *("bad.tar.gz", "deep", "er", "out"),
        *("a", "b", "c", "up", "l"),
    }
    assert not Path("/evil").exists()


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil", "..\\evil"])
def test_a_zip_member_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "bad.zip"
    with zipfile.ZipFile(path, "w") as bundle:
        info = zipfile.ZipInfo("placeholder")
        info.filename = name
        bundle.writestr(info, "x")
    with pytest.raises(FetchError, match="not safe to unpack"):
        unpack(path, tmp_path / "out")
    assert not (tmp_path / "evil").exists()


def test_a_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.zip"
    with zipfile.ZipFile(path, "w") as bundle:
        info = zipfile.ZipInfo("link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        bundle.writestr(info, "/etc/passwd")
    with pytest.raises(FetchError, match="not safe to unpack") as caught:
        unpack(path, tmp_path / "out")
    assert caught.value.cause == "it is a link"


@pytest.mark.parametrize(("at", "value"), [(6, 1), (8, 99)], ids=["encrypted", "an unknown method"])
def test_a_zip_that_cannot_be_read_here_is_told_as_broken(tmp_path: Path, at: int, value: int) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as bundle:
        bundle.writestr("a", "1")
    data = bytearray(path.read_bytes())
    data[at] = data[data.index(b"PK\1\2") + at + 2] = value
    path.write_bytes(data)
    with pytest.raises(FetchError, match="is not a complete archive"):
        unpack(path, tmp_path / "out")


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_an_archive_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(archive, "SOURCES", Bound(size=1000, members=9))
    path = tmp_path / f"bomb.{kind}"
    if kind == "tar":
        tar(path, FOLDER, *(member(f"x-1/{count}", b"0" * 400) for count in range(3)))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
            for count in range(3):
                bundle.writestr(str(count), "0" * 400)
    with pytest.raises(FetchError, match="not safe") as caught:
        unpack(path, tmp_path / "out")
    assert "more bytes" in caught.value.cause
    assert sum(path.stat().st_size for path in (tmp_path / "out").iterdir()) <= 1000


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_an_archive_of_too_many_members_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(archive, "SOURCES", Bound(size=MIB, members=5))
    path = tmp_path / f"bomb.{kind}"
    if kind == "tar":
        tar(path, *(member(f"x-1/{count}") for count in range(7)))
    else:
        with zipfile.ZipFile(path, "w") as bundle:
            for count in range(7):
                bundle.writestr(str(count), "")
    with pytest.raises(FetchError, match="not safe"):
        unpack(path, tmp_path / "out")


@pytest.mark.parametrize("kind", ["tar", "zip"])
@pytest.mark.parametrize(("members", "size"), [(3, 12), (2, 12), (3, 11)])
def test_an_archive_exactly_at_the_bounds_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, members: int, size: int
) -> None:
    path = tmp_path / f"x.{kind}"
    if kind == "tar":
        tar(path, *(member(f"x-1/{count}", b"four") for count in range(3)))
    else:
        with zipfile.ZipFile(path, "w") as bundle:
            for count in range(3):
                bundle.writestr(f"x-1/{count}", "four")
    stream = len(gzip.decompress(path.read_bytes())) - 12 if kind == "tar" else 0
    monkeypatch.setattr(archive, "SOURCES", Bound(size=size + stream, members=members))
    if (members, size) == (3, 12):
        (tmp_path / "out").mkdir()
        unpack(path, tmp_path / "out")
        # the folder around a tar is left out, also where no member is that folder
        folder = tmp_path / "out" / ("x-1" if kind == "zip" else "")
        assert sorted(one.name for one in folder.iterdir()) == ["0", "1", "2"]
    else:
        with pytest.raises(FetchError, match="not safe"):
            unpack(path, tmp_path / "out")


@pytest.mark.parametrize("suffix", ["zip", "whl"])
def test_a_zip_is_known_by_its_name(tmp_path: Path, suffix: str) -> None:
    with zipfile.ZipFile(tmp_path / "stored", "w") as bundle:
        bundle.writestr("a", "text")
    unpack(tmp_path / "stored", tmp_path / "out", filename=f"x.{suffix}")
    assert (tmp_path / "out/a").read_text() == "text"


@pytest.mark.parametrize("short", [0, 1])
def test_a_header_is_read_up_to_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: int
) -> None:
    path = tar(tmp_path / "x.tar", member("x-1/" + "n" * 100 + "/" + "m" * 200, b"x"), mode="w:")
    with path.open("rb") as file:
        long_name = int(file.read(136)[124:135], 8)
    assert long_name > 300
    monkeypatch.setattr(archive, "SOURCES", replace(SOURCES, header=long_name - short))
    if short:
        with pytest.raises(FetchError, match=r"x\.tar"):
            unpack(path, tmp_path / "out")
    else:
        unpack(path, tmp_path / "out")


@pytest.mark.parametrize(("mode", "packed"), [(0o611, 0o644), (0o711, 0o755), (0o100, 0o755), (0o066, 0o644)])
def test_a_file_is_packed_as_one_that_runs_where_its_owner_may_run_it(
    tmp_path: Path, mode: int, packed: int
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "file").chmod(mode)
    with tarfile.open(tmp_path / "x.tar", "w") as made:
        archive.tar_add(made, tmp_path / "file", "file", EPOCH)
    with tarfile.open(tmp_path / "x.tar") as made:
        assert made.getmember("file").mode == packed


@pytest.mark.parametrize(
    "members",
    [
        pytest.param([FOLDER, FILE, member("x-1/file/below", b"x")], id="a file that is a folder"),
        pytest.param([FOLDER, member("x-1/a/b", b"x"), member("x-1/a", b"y")], id="a folder that is a file"),
        pytest.param([FOLDER, hard("x-1/h", "x-1/absent")], id="a hard link to nothing"),
        pytest.param([FOLDER, member("x-1/f", b"x", mtime=2**80)], id="a time that never comes"),
        pytest.param([FOLDER, member("x-1/" + "n" * 300, b"x")], id="a name too long for the disk"),
    ],
)
def test_an_archive_that_contradicts_itself_is_told_as_broken(
    tmp_path: Path, members: Iterable[tuple[tarfile.TarInfo, bytes]]
) -> None:
    with pytest.raises(FetchError, match=r"x\.tar\.gz"):
        unpack(tar(tmp_path / "x.tar.gz", *members), tmp_path / "out")


def test_a_zip_that_contradicts_itself_is_told_as_broken(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as bundle:
        bundle.writestr("a", "1")
        bundle.writestr("a/b", "2")
    with pytest.raises(FetchError, match=r"x\.zip"):
        unpack(path, tmp_path / "out")


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz", "zst", "zip"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_a_truncated_archive_is_told_as_broken(tmp_path: Path, mode: str, share: float) -> None:
    noise = random.Random(1).randbytes(200_000)
    if mode == "zip":
        path = tmp_path / "x.zip"
        with zipfile.ZipFile(path, "w") as bundle:
            bundle.writestr("a", noise)
    else:
        path = tar(tmp_path / "x.tar", FOLDER, member("x-1/a", noise), mode="w" if mode == "zst" else mode)
        if mode == "zst":
            path.write_bytes(zstandard.ZstdCompressor().compress(path.read_bytes()))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(FetchError, match="is not a complete archive"):
        unpack(path, tmp_path / "out")


@pytest.mark.parametrize("name", ["x.tar.gz", "x.tar.zst", "x.zip", "x.whl"])
@pytest.mark.parametrize(
    "data", [b"", b"<html>Not found</html>" * 100, b"\x28\xb5\x2f\xfd garbage", b"PK\3\4"]
)
def test_what_is_no_archive_is_told_as_broken(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(FetchError, match="is not a complete archive"):
        unpack(path, tmp_path / "out")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), kind=st.sampled_from(["w", "w:gz", "w:xz", "zst", "zip"]))
def test_an_archive_with_flipped_bytes_is_refused_or_unpacked_but_never_a_surprise(
    tmp_path: Path, seed: int, kind: str
) -> None:
    path = tmp_path / ("x.zip" if kind == "zip" else "x.tar")
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
            bundle.writestr("a/b", "text" * 50)
            bundle.writestr("c", "more")
    else:
        tar(
            path,
            FOLDER,
            FILE,
            link("x-1/l", "file"),
            hard("x-1/h", "x-1/file"),
            mode="w" if kind == "zst" else kind,
        )
        if kind == "zst":
            path.write_bytes(zstandard.ZstdCompressor().compress(path.read_bytes()))
    data, chance = bytearray(path.read_bytes()), random.Random(seed)
    for _ in range(chance.randint(1, 4)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    path.write_bytes(data)
    out = tmp_path / "outer" / "out"
    try:
        unpack(path, out)
    except FetchError:
        pass
    finally:
        assert list((tmp_path / "outer").iterdir()) == [out]
        shutil.rmtree(tmp_path / "outer")


# packing

names = st.text("abcdefgh._-é", min_size=1, max_size=6).filter(lambda name: name not in (".", ".."))
entries = st.one_of(
    st.tuples(st.just("file"), st.binary(max_size=300), st.booleans()),
    st.tuples(st.just("link"), names, st.just(False)),
    st.tuples(st.just("folder"), st.just(b""), st.just(False)),
)
trees = st.dictionaries(st.lists(names, min_size=1, max_size=3).map("/".join), entries, max_size=8)


def lay(folder: Path, tree: dict[str, tuple[str, object, bool]], order: random.Random) -> None:
    """Make a tree in any order, with any times; names that need another to be a folder give way."""
    folder.mkdir()
    files = [name for name in tree if not any(other.startswith(f"{name}/") for other in tree)]
    order.shuffle(files)
    for name in files:
        kind, data, runs = tree[name]
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "file":
            assert isinstance(data, bytes)
            path.write_bytes(data)
            path.chmod(0o755 if runs else 0o644)
            os.utime(path, (order.randrange(2**31), order.randrange(2**31)))
        elif kind == "link":
            path.symlink_to(str(data))
        else:
            path.mkdir(exist_ok=True)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees, seed=st.integers(0, 1000))
def test_a_tree_is_packed_to_the_same_bytes_whatever_its_times_and_order(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, tuple[str, object, bool]], seed: int
) -> None:
    folder = tmp_path_factory.mktemp("pack")
    lay(folder / "one", tree, random.Random(seed))
    lay(folder / "other", tree, random.Random(seed + 1))
    if os.geteuid() == 0:
        for path in (folder / "other").rglob("*"):
            os.chown(path, 1234, 4321, follow_symlinks=False)
    pack(folder / "one", folder / "one.tar.zst", epoch=EPOCH)
    pack(folder / "other", folder / "other.tar.zst", epoch=EPOCH)
    assert (folder / "one.tar.zst").read_bytes() == (folder / "other.tar.zst").read_bytes()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees)
def test_what_was_packed_is_unpacked_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, tuple[str, object, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("pack")
    lay(folder / "in", tree, random.Random(0))
    pack(folder / "in", folder / "x.tar.zst", epoch=EPOCH)
    unpack(folder / "x.tar.zst", folder / "out", wrapped=False)
    assert contents(folder / "out") == contents(folder / "in")
    again = folder / "again.tar.zst"
    pack(folder / "out", again, epoch=EPOCH)
    assert again.read_bytes() == (folder / "x.tar.zst").read_bytes()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees, others=trees, levels=st.tuples(st.integers(1, 12), st.integers(1, 12)))
def test_what_packing_tells_depends_on_the_tree_alone_and_not_on_the_compression(
    tmp_path_factory: pytest.TempPathFactory,
    tree: dict[str, tuple[str, object, bool]],
    others: dict[str, tuple[str, object, bool]],
    levels: tuple[int, int],
) -> None:
    folder = tmp_path_factory.mktemp("pack")
    told = []
    for number, (each, level) in enumerate(zip((tree, tree, others), (*levels, levels[0]), strict=True)):
        lay(folder / f"{number}", each, random.Random(number))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(packed, "LEVEL", level)
            told.append(pack(folder / f"{number}", folder / f"{number}.tar.zst", epoch=EPOCH))
        assert told[-1] == content_of(folder / f"{number}.tar.zst")
    assert told[0] == told[1]
    assert (told[0] == told[2]) == (contents(folder / "0") == contents(folder / "2"))


@pytest.mark.parametrize("change", ["text", "name", "mode", "link"])
def test_another_tree_is_packed_to_other_bytes(tmp_path: Path, change: str) -> None:
    folder = write_tree(tmp_path / "tree", {"a": "1", "b": "2"})
    (folder / "l").symlink_to("a")
    before = pack(folder, tmp_path / "before", epoch=EPOCH)
    match change:
        case "text":
            (folder / "a").write_text("3")
        case "name":
            (folder / "a").rename(folder / "c")
        case "mode":
            (folder / "a").chmod(0o755)
        case _:
            (folder / "l").unlink()
            (folder / "l").symlink_to("b")
    assert pack(folder, tmp_path / "after", epoch=EPOCH) != before
    assert (tmp_path / "before").read_bytes() != (tmp_path / "after").read_bytes()


def test_a_hard_linked_file_is_packed_as_any_other(tmp_path: Path) -> None:
    linked = write_tree(tmp_path / "linked", {"a": "1"})
    os.link(linked / "a", linked / "b")
    plain = write_tree(tmp_path / "plain", {"a": "1", "b": "1"})
    pack(linked, tmp_path / "linked.tar.zst", epoch=EPOCH)
    pack(plain, tmp_path / "plain.tar.zst", epoch=EPOCH)
    assert (tmp_path / "linked.tar.zst").read_bytes() == (tmp_path / "plain.tar.zst").read_bytes()


def sparse_tar(path: Path, size: int) -> Path:
    """A tar of one sparse file (GNU's old form) that holds one byte and stands for `size`."""
    header = tarfile.TarInfo("x-1/hole")
    header.type, header.size, header.mode = tarfile.GNUTYPE_SPARSE, 512, 0o644
    raw = bytearray(header.tobuf(tarfile.GNU_FORMAT))

    def number(value: int) -> bytes:
        return b"\x80" + value.to_bytes(11, "big")

    raw[386:410] = number(size - 512) + number(512)
    raw[483:495] = number(size)
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    path.write_bytes(bytes(raw) + b"x" * 512 + bytes(10240 - 1024))
    return path


def test_a_small_sparse_tar_that_stands_for_thirty_gigabytes_is_refused(tmp_path: Path) -> None:
    path = sparse_tar(tmp_path / "x.tar", 30 * 1024**3)
    assert path.stat().st_size < 20_000
    with pytest.raises(FetchError, match="hole") as caught:
        unpack(path, tmp_path / "out")
    assert "more bytes in files than any" in caught.value.cause
    assert not any((tmp_path / "out").rglob("hole"))


def test_a_small_sparse_file_is_unpacked_as_what_it_stands_for(tmp_path: Path) -> None:
    unpack(sparse_tar(tmp_path / "x.tar", 1024**2), tmp_path / "out")
    (hole,) = (tmp_path / "out").rglob("hole")
    assert hole.read_bytes() == bytes(1024**2 - 512) + b"x" * 512


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_that_would_fill_the_memory_is_refused(tmp_path: Path, kind: bytes) -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, 8 * 1024**3
    (tmp_path / "x.tar").write_bytes(header.tobuf(tarfile.GNU_FORMAT) + bytes(10240))
    with pytest.raises(FetchError, match="not a complete archive") as caught:
        unpack(tmp_path / "x.tar", tmp_path / "out")
    assert "a header of 8589934592 bytes" in caught.value.cause


GIT = [
    member("x-1/.git/config", b"[core]"),
    member("x-1/.git/hooks/post-checkout", b"#!/bin/sh"),
    member("x-1/inner/.git", b"gitdir: /elsewhere"),
    member("x-1/inner/.GIT/config", b"[core]"),
    member("x-1/inner/.git./config", b"[core]"),
    link("x-1/deep/.Git", "../file"),
]
LIKE_GIT = [member(f"x-1/{name}", b"kept") for name in (".gitignore", "a/.gitmodules", "git", ".github/x")]


def test_git_folders_in_an_archive_are_left_out_and_named(tmp_path: Path) -> None:
    source = tar(tmp_path / "a.tar.gz", FOLDER, FILE, *GIT, *LIKE_GIT)
    told = unpack(source, tmp_path / "tree")
    names = (".git", "deep/.Git", "inner/.GIT", "inner/.git", "inner/.git.")
    assert told == tuple(f"x-1/{name}" for name in names)
    found = contents(tmp_path / "tree")
    kept = ["file", ".gitignore", "a/.gitmodules", "git", ".github/x"]
    assert sorted(name for name, text in found.items() if text is not None) == sorted(kept)


def test_a_tree_without_its_git_folders_is_the_tree_that_never_had_any(tmp_path: Path) -> None:
    unpack(tar(tmp_path / "a.tar.gz", FOLDER, FILE, *GIT), tmp_path / "with")
    assert unpack(tar(tmp_path / "b.tar.gz", FOLDER, FILE), tmp_path / "without") == ()
    for name in ("with", "without"):
        pack(tmp_path / name, tmp_path / f"{name}.tar.zst", epoch=EPOCH)
    assert (tmp_path / "with.tar.zst").read_bytes() == (tmp_path / "without.tar.zst").read_bytes()


def test_a_git_folder_that_comes_first_is_not_taken_for_the_folder_around_it_all(tmp_path: Path) -> None:
    members = [
        member(".git/config", b"[core]"),
        member(".git/.git/config", b"[core]"),
        member("file", b"text"),
    ]
    unpack(tar(tmp_path / "a.tar.gz", *members), tmp_path / "tree")
    assert contents(tmp_path / "tree") == {"file": b"text"}


def test_a_hard_link_to_what_is_left_out_is_an_error(tmp_path: Path) -> None:
    source = tar(tmp_path / "a.tar.gz", FOLDER, *GIT, hard("x-1/config", "x-1/.git/config"))
    with pytest.raises(FetchError, match="not a complete archive"):
        unpack(source, tmp_path / "tree")


def test_git_folders_in_a_zip_are_left_out_too(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as bundle:
        for name in (".git/config", "sub/.GIT", "file"):
            bundle.writestr(name, "text")
    assert unpack(tmp_path / "a.zip", tmp_path / "tree") == (".git", "sub/.GIT")
    assert contents(tmp_path / "tree") == {"file": b"text"}


def test_the_names_of_what_is_left_out_are_few_and_plain(tmp_path: Path) -> None:
    members = [member(f"{number}\x1b[31m/.git", b"x") for number in range(1000)]
    told = unpack(tar(tmp_path / "a.tar.gz", member("file", b"x"), *members), tmp_path / "tree")
    assert len(told) == archive.MOST_TOLD
    assert all(name.isprintable() for name in told)


def test_an_artifact_is_looked_at_with_its_git_folders(tmp_path: Path) -> None:
    source = tar(tmp_path / "a.tar.gz", FOLDER, FILE, *GIT)
    assert unpack(source, tmp_path / "tree", git=True) == ()
    assert (tmp_path / "tree/.git/config").is_file()


def beyond_path_max() -> list[tuple[tarfile.TarInfo, bytes]]:
    """Folders and short links to them: resolved, their path is longer than PATH_MAX, where realpath gives up.

    Behind it, `escape` leads outside (CVE-2025-4517 of Python's own filter).
    """
    members, at, letters = [FOLDER], "x-1", "abcdefghijklmnop"
    for letter in letters:
        members += [member(f"{at}/{'d' * 247}", type=tarfile.DIRTYPE, mode=0o755)]
        members += [link(f"{at}/{letter}", "d" * 247)]
        at += f"/{'d' * 247}"
    deep = f"{'/'.join(letters)}/{'l' * 254}"
    members += [link(f"x-1/{deep}", "../" * len(letters)), link("x-1/escape", f"{deep}/..")]
    return members


@pytest.mark.parametrize("kind", ["file", "hard link"])
def test_nothing_is_written_outside_behind_a_path_that_is_too_long_to_resolve(
    tmp_path: Path, kind: str
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/victim").write_text("whole")
    last = (
        [member("x-1/escape/evil", b"x"), member("x-1/escape/victim", b"x")]
        if kind == "file"
        else [hard("x-1/stolen", "x-1/escape/victim"), member("x-1/stolen", b"x")]
    )
    path = tar(tmp_path / "bad.tar", *beyond_path_max(), *last)
    with pytest.raises(FetchError, match=r"bad\.tar is (refused|not a complete archive)"):
        unpack(path, tmp_path / "deep/out")
    assert (tmp_path / "deep/victim").read_text() == "whole"
    assert [found.name for found in (tmp_path / "deep").iterdir() if found.name != "out"] == ["victim"]


KINDS: dict[str, Callable[[str, str], tuple[tarfile.TarInfo, bytes]]] = {
    "file": lambda name, _: member(name, b"x"),
    "folder": lambda name, _: member(name, type=tarfile.DIRTYPE, mode=0o755),
    "link": link,
    "hard link": lambda name, to: hard(name, f"x-1/{to}"),
}
NAMES = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join)


@given(st.lists(st.tuples(st.sampled_from(sorted(KINDS)), NAMES, st.text("ab./", max_size=8)), max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_order_of_members_leaves_the_folder(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]]
) -> None:
    """Every link that is there afterwards leads inside, as the kernel follows it."""
    top = tmp_path_factory.mktemp("any")
    path = tar(top / "any.tar", *(KINDS[kind](f"x-1/{name}", aim) for kind, name, aim in rows))
    with contextlib.suppress(FetchError):
        unpack(path, top / "out")
        for found in (top / "out").rglob("*"):
            if found.exists():
                descriptor = os.open(found, os.O_PATH)
                real = Path(f"/proc/self/fd/{descriptor}").readlink()
                os.close(descriptor)
                assert real.is_relative_to(os.path.realpath(top / "out"))
