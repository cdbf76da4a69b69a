"""The Debian archive: its texts, and (marked real) the archive itself."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.making import deb
from tests.tools_root import give_tools, shared_tools

from rocbase.errors import FetchError, InputError
from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.config import config_file, store_of
from rocwright.execution.fetch import fetch
from rocwright.home import Home
from rocwright.model.architecture import host_architecture
from rocwright.model.steps import DebianOrigin, FilePin
from rocwright.sources.bases.tools import Tools
from rocwright.sources.debian import DebianArchive
from rocwright.sources.debian_control import parse_stanzas, upstream_version
from rocwright.sources.mirrors import debian_snapshot
from rocwright.sources.pins import check_pin

STANZAS = """\
Package: hello
Version: 2.10-5
Description: a greeting
 with two lines
 .
 and a third
Depends: libc6 (>= 2.38), foo:any

Package: other
Checksums-Sha256:
 aaaa 12 other_1.dsc
 bbbb 34 other_1.orig.tar.gz


"""


def test_stanzas_are_read_with_colons_in_values_and_continued_lines() -> None:
    hello, other = parse_stanzas(STANZAS)
    assert hello == {
        "Package": "hello",
        "Version": "2.10-5",
        "Description": "a greeting\nwith two lines\n.\nand a third",
        "Depends": "libc6 (>= 2.38), foo:any",
    }
    assert other["Checksums-Sha256"].split() == [
        "aaaa",
        "12",
        "other_1.dsc",
        "bbbb",
        "34",
        "other_1.orig.tar.gz",
    ]


@each("text", ["", "\n\n\n", "\n \n"])
def test_a_text_without_stanzas_has_none(text: str) -> None:
    assert [one for one in parse_stanzas(text) if any(one.values())] == []


@given(text=st.text(max_size=200))
def test_no_text_is_too_odd_to_be_read(text: str) -> None:
    list(parse_stanzas(text))


@each(
    ("debian", "upstream"),
    [
        ("2.10-5", "2.10"),
        ("1:2.6.0+dfsg-7", "2.6.0"),
        ("2.6.0+dfsg-7+b1", "2.6.0"),
        ("0.21.0-3", "0.21.0"),
        ("2.0~rc1-1", "2.0"),
        ("20240101", "20240101"),
        ("6.4.1-1-2", "6.4.1-1"),
    ],
)
def test_upstreams_version_is_read_from_debians(debian: str, upstream: str) -> None:
    assert upstream_version(debian) == upstream


def pin(data: bytes) -> FilePin:
    return deb("hello").model_copy(update={"sha256": sha256(data).hexdigest(), "size": len(data)})


def test_a_file_that_is_what_the_lock_says_passes(tmp_path: Path) -> None:
    path = tmp_path / "hello.deb"
    path.write_bytes(b"data")
    check_pin(path, pin(b"data"))


@pytest.mark.parametrize("data", [b"", b"dat", b"datA", b"data "])
def test_a_file_that_is_not_is_refused_with_what_was_found(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "hello.deb"
    path.write_bytes(data)
    with pytest.raises(FetchError, match=r"hello_1\.0-1_amd64\.deb does not match the lock") as caught:
        check_pin(path, pin(b"data"))
    assert f"size {len(data)}" in caught.value.cause


def test_a_file_that_did_not_come_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"hello_1\.0-1_amd64\.deb did not arrive"):
        check_pin(tmp_path / "absent", pin(b"data"))


@pytest.mark.parametrize("suite", ["", "../sid", "-t", "Sid", "sid trixie"])
def test_what_is_no_name_of_a_suite_is_refused(tmp_path: Path, suite: str) -> None:
    with pytest.raises(InputError, match="is not the name of a Debian suite"):
        DebianArchive(Tools(Home(tmp_path)), suite, "amd64")


def test_a_snapshot_needs_a_mirror_that_the_settings_name(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(home.path))
    with pytest.raises(InputError, match="name no mirror of Debian's snapshots, and 20261101 is needed"):
        debian_snapshot("20261101")
    config_file().write_text('debian_snapshots = "http://host.example/debian/{snapshot}/"\n')
    assert debian_snapshot("20261101") == "http://host.example/debian/20261101/"
    assert DebianArchive(Tools(home), "sid@20261101", "amd64").snapshot == "20261101"


@pytest.mark.parametrize("suite", ["sid@", "sid@today", "sid@2026-11-01", "sid@20261101/x", "sid@@20261101"])
def test_what_is_no_day_of_the_archive_is_refused(home: Home, suite: str) -> None:
    with pytest.raises(InputError, match="is not the name of a Debian suite"):
        DebianArchive(Tools(home), suite, "amd64")


# the archive itself


@pytest.fixture(scope="session")
def tools_home() -> Home:
    return shared_tools()


@pytest.fixture
def tools(tools_home: Home, home: Home) -> Tools:
    """The tools root in a home without package lists."""
    give_tools(home, tools_home)
    return Tools(home)


@pytest.fixture(scope="module")
def trixie(tools_home: Home) -> DebianArchive:
    archive = DebianArchive(Tools(tools_home), "trixie", "amd64")
    archive.refresh()
    return archive


@pytest.mark.real
def test_a_set_of_packages_is_resolved_to_exact_files(trixie: DebianArchive) -> None:
    pins = trixie.resolve(["hello"])
    [hello] = [one for one in pins if one.filename.startswith("hello_")]
    assert isinstance(hello.origin, DebianOrigin)
    assert (hello.origin.package, hello.origin.suite) == ("hello", "trixie")
    assert hello.filename == f"hello_{hello.origin.version}_amd64.deb"
    assert len(hello.sha256) == 64
    assert hello.size > 10_000
    assert (trixie.folder / "var/cache/apt/pkgcache.bin").exists()
    names = {one.filename.split("_")[0] for one in pins}
    assert {"libc6", "dash", "apt", "base-files"} <= names
    assert list(pins) == sorted(pins, key=lambda one: one.filename)
    assert trixie.resolve(["hello"]) == pins


@pytest.mark.nightly
@pytest.mark.real
def test_packages_that_are_kept_stay_and_those_that_are_gone_do_not_hinder(trixie: DebianArchive) -> None:
    before = trixie.resolve(["dash"])
    after = trixie.resolve(["dash", "zlib1g-dev"], before)
    assert set(before) < set(after)
    (dash,) = (pin for pin in before if pin.filename.startswith("dash_"))
    gone = dash.model_copy(update={"origin": dash.origin.model_copy(update={"version": "0.1-1"})})
    assert trixie.resolve(["dash", "zlib1g-dev"], [gone if pin == dash else pin for pin in before]) == after


@pytest.mark.real
def test_what_is_downloaded_is_what_was_resolved(trixie: DebianArchive, tmp_path: Path) -> None:
    wanted = [
        one for one in trixie.resolve(["hello"]) if one.filename.startswith(("hello_", "dash_", "dpkg_"))
    ]
    trixie.download(wanted, tmp_path)
    assert len(wanted) == 3
    for one in wanted:
        check_pin(tmp_path / one.filename, one)


@pytest.mark.nightly
@pytest.mark.real
def test_a_lock_of_another_machine_is_fetched_where_no_apt_folder_was_made_yet(
    trixie: DebianArchive, tools: Tools, tmp_path: Path
) -> None:
    [hello] = [one for one in trixie.resolve(["hello"]) if one.filename.startswith("hello_")]
    DebianArchive(tools, "trixie", "amd64").download([hello], tmp_path / "got")
    check_pin(tmp_path / "got" / hello.filename, hello)


@pytest.fixture
def mirror(trixie: DebianArchive) -> Iterator[str]:
    """A mirror of snapshots whose days all are today: it leads to the archive that this machine has."""
    archive = (trixie.folder / "etc/apt/sources.list").read_text().split()[1].rstrip("/")

    class Mirror(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", f"{archive}/{self.path.split('/', 2)[2]}")
            self.send_header("Content-Length", "0")
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/{{snapshot}}/"
    server.shutdown()


@pytest.mark.real
def test_the_packages_of_a_day_are_pinned_with_it_and_fetched_from_there(
    tools: Tools, mirror: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(tools.home.path))
    config_file().write_text(f'debian_snapshots = "{mirror}"\n')
    archive = DebianArchive(tools, "trixie@20261101T000000Z", "amd64")
    archive.refresh()
    [hello] = [pin for pin in archive.resolve(["hello"]) if pin.filename.startswith("hello_")]
    assert isinstance(hello.origin, DebianOrigin)
    assert hello.origin.suite == "trixie@20261101T000000Z"
    fetch([hello], store_of(tools.home), tools.home, tmp_path / "scratch", print)
    assert store_of(tools.home).has(hello.sha256, hello.size)


@pytest.mark.real
def test_a_package_that_is_not_there_is_told_with_the_nearest_names(trixie: DebianArchive) -> None:
    with pytest.raises(InputError, match="Debian trixie has no package helllo, zzyzx-absent") as caught:
        trixie.resolve(["dash", "helllo", "zzyzx-absent"])
    assert "near helllo: hello" in caught.value.cause


@pytest.mark.real
def test_a_version_that_the_archive_does_not_carry_is_told(trixie: DebianArchive, tmp_path: Path) -> None:
    origin = DebianOrigin(suite="trixie", package="hello", version="0.0-1", architecture="amd64")
    gone = deb("hello").model_copy(update={"origin": origin})
    with pytest.raises(FetchError, match="no longer has all files of the lock") as caught:
        trixie.download([gone], tmp_path)
    assert "rocwright lock" in caught.value.next_step


@pytest.mark.real
def test_a_source_package_is_found_with_the_hashes_of_its_files(
    trixie: DebianArchive, tmp_path: Path
) -> None:
    found = trixie.source("pytorch-audio")
    assert {one.filename.rpartition(".")[2] for one in found.files} >= {"dsc", "xz"}
    # an archive may lack what nobody asks for
    wanted = [one for one in found.files if ".orig.tar." in one.filename]
    trixie.download(wanted, tmp_path)
    for one in wanted:
        check_pin(tmp_path / one.filename, one)
    with pytest.raises(FetchError, match="has no source package pytorch-audio 0"):
        trixie.source("pytorch-audio", "0")


@pytest.mark.real
def test_the_version_that_a_base_provides_is_upstreams(trixie: DebianArchive) -> None:
    assert trixie.package_version("python3-torch") == "2.6.0"


@pytest.mark.nightly
@pytest.mark.real
def test_the_archive_is_read_for_another_architecture_than_this_machines(tools: Tools) -> None:
    other = DebianArchive(tools, "trixie", "arm64" if host_architecture() == "x86_64" else "amd64")
    other.refresh()
    [hello] = [one for one in other.resolve(["hello"]) if one.filename.startswith("hello_")]
    assert hello.filename.endswith(f"_{other.architecture}.deb")


@pytest.mark.nightly
@pytest.mark.real
def test_an_incomplete_suite_stands_on_another_and_gives_what_is_asked_of_it(
    tools: Tools, tmp_path: Path
) -> None:
    _, release = builtin_catalog().base("debian:experimental")
    archive = DebianArchive(tools, release.name, "amd64", over=release.over, takes=release.takes)
    archive.refresh()
    pins = archive.resolve(["librocm-core-dev", "dash"])
    origins = [one.origin for one in pins if isinstance(one.origin, DebianOrigin)]
    assert {one.package for one in origins if one.suite == "experimental"} == {
        "librocm-core-dev",
        "librocm-core1",
    }
    assert {one.suite for one in origins} == {"experimental", "sid"}
    # each is downloaded from the suite that the lock names, which may be that of another machine
    wanted = [one for one in pins if one.filename.startswith("librocm-core1_")]
    DebianArchive(tools, "experimental", "amd64").download(wanted, tmp_path / "got")
    check_pin(tmp_path / "got" / wanted[0].filename, wanted[0])
