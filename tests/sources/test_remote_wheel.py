"""Wheels of an index that are looked into in parts, at an index served here."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.sources.conftest import Index
from tests.sources.test_index_resolve import wheel

from rocbase.errors import CheckError, NetworkError
from rocwheel_samples.wheel_making import zip_of
from rocwright.sources.python_resolver import Interpreter
from rocwright.sources.remote_wheel import TAIL, Allowance, RemoteIndex

PYTHON = Interpreter("3.12", "x86_64")
LARGE = "large-1.0-py3-none-any.whl"


@pytest.fixture
def remote(index: Index) -> RemoteIndex:
    index.ranges = True
    noise = bytes(range(256)) * 2000
    index.files["large"] = {
        LARGE: zip_of({"large/begin.txt": b"the first", "noise": noise[::-1] + wheel("noise", "1", *"abc")})
    }
    index.files["maker"] = {
        "maker-1.0-py3-none-any.whl": wheel("maker", "1.0", "helper>=2", "torch; extra == 'gpu'"),
        "maker-1.1.tar.gz": b"",
        "maker-1.0.tar.gz": b"",
    }
    return RemoteIndex("", PYTHON, Allowance(10**7, 60))


def test_files_and_requirements_of_a_wheel_are_read(remote: RemoteIndex) -> None:
    package = remote.find(Requirement("maker<1.1"))
    assert package is not None
    assert package.filename == "maker-1.0-py3-none-any.whl"
    opened = remote.open(package)
    assert "maker-1.0.dist-info/METADATA" in opened.members
    assert opened.requires() == ("helper>=2", "torch; extra == 'gpu'")


def test_a_source_distribution_is_taken_only_if_a_version_has_no_wheel(remote: RemoteIndex) -> None:
    package = remote.find(Requirement("maker"))
    assert package is not None
    assert package.filename == "maker-1.1.tar.gz"
    assert remote.find(Requirement("maker>2")) is None


def test_a_file_far_from_the_end_is_read_without_the_rest(index: Index) -> None:
    index.ranges = True
    noise = b"".join(str(number * number).encode() for number in range(300_000))
    index.files["large"] = {LARGE: zip_of({"large/begin.txt": b"the first", "large/noise": noise})}
    allowance = Allowance(10**7, 60)
    remote = RemoteIndex("", PYTHON, allowance)
    package = remote.find(Requirement("large"))
    assert package is not None
    before = allowance.received
    opened = remote.open(package)
    assert opened.members == ("large/begin.txt", "large/noise")
    assert len(index.files["large"][LARGE]) > 4 * TAIL
    assert allowance.received - before <= TAIL


def test_files_are_extracted_under_their_own_names_up_to_a_bound(remote: RemoteIndex, tmp_path: Path) -> None:
    package = remote.find(Requirement("large"))
    assert package is not None
    opened = remote.open(package)
    assert [path.name for path in opened.save(opened.members, tmp_path, 10**6)] == ["begin.txt", "noise"]
    (tmp_path / "other").mkdir()
    assert [path.name for path in opened.save(opened.members, tmp_path / "other", 100)] == ["begin.txt"]


def test_an_index_without_parts_of_files_and_damage_are_refused(remote: RemoteIndex, index: Index) -> None:
    package = remote.find(Requirement("maker==1.0"))
    assert package is not None
    index.ranges = False
    with pytest.raises(NetworkError) as caught:
        remote.open(package)
    assert caught.value.cause == "its server gives no parts of files"
    index.ranges, index.wrong = True, b"PK\5\6 no zip"
    with pytest.raises(CheckError):
        remote.open(package)


def test_a_check_stops_at_its_bytes_and_its_time(index: Index, remote: RemoteIndex) -> None:
    with pytest.raises(NetworkError, match="has fetched"):
        package = RemoteIndex("", PYTHON, Allowance(1000, 60)).find(Requirement("maker==1.0"))
        assert package is not None
        RemoteIndex("", PYTHON, Allowance(1000, 60)).open(package)
    with pytest.raises(NetworkError, match="time"):
        RemoteIndex("", PYTHON, Allowance(10**6, -1)).find(Requirement("maker"))
