"""The index of files of a suite: what is found in it, and how much of it is read."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocbase.errors import InputError, NetworkError
from rocbase.processes.run import Finished
from rocwright.catalog.load import builtin_catalog
from rocwright.home import Home
from rocwright.model.architecture import Architecture
from rocwright.sources import file_index
from rocwright.sources.bases.tools import Tools
from rocwright.sources.debian import DebianArchive
from rocwright.sources.file_index import FRESH, FileIndex, found_in, index_of, likeliest

INDEX = b"""\
usr/include/numa.h                                      libdevel/libnuma-dev
usr/include/linux-headers/include/numa.h                devel/other-dev
usr/include/hip/numa.h.in                               libdevel/wrong-dev
usr/share/doc/numa.h                                    doc/numa-doc
usr/include/both.h                                      devel/a-dev,libdevel/b-bin
usr/include/odd name.h                                  devel/odd-dev
usr/include/x86_64-linux-gnu/deep/numa.h                libdevel/deep-dev
"""


def archive(home: Path) -> DebianArchive:
    return DebianArchive(Tools(Home(home)), "sid", "amd64")


def laid(home: Path, data: bytes = INDEX) -> FileIndex:
    """An index as apt leaves it."""
    lists = archive(home).folder / "contents"
    lists.mkdir(parents=True)
    (lists / "host_debian_dists_sid_main_Contents-amd64.gz").write_bytes(data)
    return FileIndex(archive(home))


def test_the_package_nearest_to_the_usual_folder_is_named(tmp_path: Path) -> None:
    index = laid(tmp_path, gzip.compress(INDEX))
    assert index.here
    assert index.packages_with("numa.h") == ("libnuma-dev",)
    assert index.packages_with("deep/numa.h") == ("deep-dev",)
    assert index.packages_with("both.h") == ("a-dev", "b-bin")
    assert index.packages_with("absent.h") == ()


@pytest.mark.parametrize(
    "name", ["", "../numa.h", "a/../numa.h", "/numa.h", "numa.h\n", "nu ma.h", "a" * 999]
)
def test_what_is_no_name_of_a_header_is_not_looked_up(tmp_path: Path, name: str) -> None:
    index = laid(tmp_path, b"not even read")
    assert index.packages_with(name) == ()


def test_a_damaged_index_is_told(tmp_path: Path) -> None:
    index = laid(tmp_path, gzip.compress(INDEX * 999)[:-20])
    with pytest.raises(NetworkError, match="cannot be read"):
        index.packages_with("numa.h")


def test_an_index_without_end_is_not_read_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_index, "LARGEST_INDEX", 1024)
    index = laid(tmp_path, gzip.compress(b"usr/include/x.h a/b\n" * 999))
    with pytest.raises(NetworkError, match="cannot be read") as caught:
        index.packages_with("numa.h")
    assert "too large" in caught.value.cause


@given(sizes=st.lists(st.integers(1, 90), max_size=20))
def test_where_an_index_is_cut_into_pieces_makes_no_difference(sizes: list[int]) -> None:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(INDEX[at : at + size])
        at += size
    cut = list(found_in([*pieces, INDEX[at:]], "numa.h"))
    assert cut == list(found_in([INDEX], "numa.h"))
    assert ("usr/include/numa.h", "libnuma-dev") in cut


@given(data=st.binary(max_size=400), header=st.from_regex(r"[a-z/.]{1,9}", fullmatch=True))
def test_no_index_is_too_odd_to_be_read(data: bytes, header: str) -> None:
    likeliest(found_in([data, b"/" + header.encode() + b" " + data], header), header)


def test_a_line_without_end_takes_no_more_than_its_share_of_memory() -> None:
    long = [b"x" * file_index.CHUNK] * 3
    assert next(found_in([*long, b"/numa.h a/b\n", INDEX], "numa.h"))[1] == "libnuma-dev"


class Network(Tools):
    """An archive that does not answer: what apt was called with, leaves all the same, and says."""

    asked: list[list[str]]
    leaves: tuple[str, ...] = ()
    says = ""

    def run(self, command: Sequence[str], *, archive: Path | None = None, **given: object) -> Finished:
        assert archive is not None
        self.asked = [*getattr(self, "asked", []), [*command]]
        for name in self.leaves:
            (archive / "contents" / name).write_bytes(gzip.compress(b""))
        return Finished(argv=(*command,), returncode=100, stdout="", stderr=self.says, seconds=0)


def asking(network: Network) -> FileIndex:
    archive = DebianArchive(network, "sid", "amd64")
    settings = archive.folder / "etc/apt/tools.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text("")
    return FileIndex(archive)


def test_an_index_is_fetched_once_a_week_into_the_suites_folder(tmp_path: Path) -> None:
    network = Network(Home(tmp_path))
    network.leaves = ("x_Contents-amd64.gz",)
    index = asking(network)
    assert not index.here
    index.refresh()
    index.refresh()
    (words,) = network.asked
    assert "Dir::State::lists=/archive/contents" in words
    assert any(word.endswith("Packages::DefaultEnabled=false") for word in words)
    stamp = next((tmp_path / "apt").rglob("fetched")).stat().st_mtime
    index.refresh(clock=lambda: stamp + FRESH + 1)
    assert len(network.asked) == 2


def test_an_archive_that_gives_no_index_is_told_with_apts_words(tmp_path: Path) -> None:
    network = Network(Home(tmp_path))
    network.says = "E: Failed to fetch x\n"
    with pytest.raises(NetworkError, match="index of files of Debian sid could not be fetched") as caught:
        asking(network).refresh()
    assert caught.value.cause == "E: Failed to fetch x"


def test_a_base_made_of_an_image_is_refused_with_what_to_ask_instead(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no index of files") as caught:
        index_of("fedora:43", builtin_catalog(), Tools(Home(tmp_path)), Architecture.X86_64)
    assert "dnf provides" in caught.value.next_step
