from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocbase.errors import CheckError, InputError
from rocwheel.wheels.metadata import (
    Headers,
    RecordRow,
    dist_info_folder,
    moved,
    name_problems,
    parse_name,
    read_record,
    record_bytes,
    record_contradictions,
    record_gaps,
    with_local,
)
from rocwheel_samples.tables import each
from rocwheel_samples.wheel_making import METADATA, NAME, WHEEL

SHA = "ab" * 32
rows = st.builds(
    RecordRow,
    path=st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1),
    sha256=st.binary(min_size=32, max_size=32).map(bytes.hex),
    size=st.integers(min_value=0, max_value=2**63),
)


def test_a_file_name_is_taken_apart_and_put_together_again() -> None:
    written = "torch_scatter-2.1.2+pt28-1a-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
    name = parse_name(written)
    assert (name.name, name.version, name.build) == ("torch_scatter", "2.1.2+pt28", "1a")
    assert (name.python, name.abi) == ("cp311", "cp311")
    assert {tag.platform for tag in name.tags} == {"manylinux_2_17_x86_64", "manylinux2014_x86_64"}
    assert name.file_name == written


TAGS = "-".join(".".join(f"{part}{number}" for number in range(300)) for part in "abc")
"""27 million combinations of tags, in 4 KB."""


@each(
    "wrong",
    [
        "x.zip",
        "x-1.0.whl",
        "x-one-py3-none-any.whl",
        "a b-1.0-py3-none-any.whl",
        "x-1.0-1/../../y-py3-none-any.whl",
        "x-1.0-1\x1b[2J-py3-none-any.whl",
        f"x-{'1' * 5000}-py3-none-any.whl",
        f"x-1.0-{TAGS}.whl",
    ],
)
def test_other_names_are_refused(wrong: str) -> None:
    with pytest.raises(InputError, match="not a valid wheel filename"):
        parse_name(wrong)


def test_the_folder_of_metadata_is_the_one_at_the_top() -> None:
    assert dist_info_folder(["a/b.dist-info/RECORD", "x-1.dist-info/WHEEL"]) == "x-1.dist-info"
    for wrong in ([], ["x.dist-info"], ["x-1.dist-info/WHEEL", "y-1.dist-info/WHEEL"]):
        with pytest.raises(InputError, match="dist-info"):
            dist_info_folder(wrong)


def test_headers_keep_every_byte_but_what_is_changed() -> None:
    data = b"Metadata-Version: 2.1\nName:x\nVERSION: 1.0\nSummary: two\n  lines\n\nVersion: 9 in the text\n"
    headers = Headers(data)
    assert headers.as_bytes() == data
    assert headers.get("version") == "1.0"
    assert headers.get("Summary") == "two\nlines"
    changed = headers.replaced("Version", ["1.0+slim"])
    assert changed.as_bytes() == data.replace(b"VERSION: 1.0", b"Version: 1.0+slim")
    assert headers.replaced("Summary", []).as_bytes() == data.replace(b"Summary: two\n  lines\n", b"")
    assert headers.replaced("Tag", ["a", "b"]).all("tag") == ["a", "b"]


def test_a_header_is_added_behind_a_last_line_without_an_end() -> None:
    assert Headers(b"A: 1").replaced("B", ["2"]).as_bytes() == b"A: 1\nB: 2\n"
    assert Headers(b"A: 1\r\n").replaced("B", ["2"]).as_bytes() == b"A: 1\r\nB: 2\r\n"


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_line_of_blanks_does_not_end_the_headers(end: bytes) -> None:
    """numpy 2.2.6 has the text of its licence in License:, whose paragraphs are such lines apart."""
    lines = (b"License: one", b"     ", b"  two", b"Classifier: x", b"", b"Classifier: in the text")
    headers = Headers(end.join(lines))
    assert headers.get("License") == "one\n\ntwo"
    assert headers.all("Classifier") == ["x"]
    assert headers.text == b"Classifier: in the text"


@given(st.binary())
def test_headers_of_anything_are_read_and_written_back(data: bytes) -> None:
    headers = Headers(data)
    assert headers.as_bytes() == data
    assert headers.replaced("X-New", ["1"]).get("x-new") == "1"


@each(
    ("version", "label", "becomes"),
    [
        ("1.0", "slim.gfx1151", "1.0+slim.gfx1151"),
        ("2.8.0+rocm6.4", "slim", "2.8.0+rocm6.4.slim"),
        ("1!2.0rc1.post2.dev3", "a", "1!2.0rc1.post2.dev3+a"),
    ],
)
def test_a_local_version_is_added_to_the_one_that_is_there(version: str, label: str, becomes: str) -> None:
    assert with_local(version, label) == becomes


def test_a_local_version_that_is_none_is_refused() -> None:
    for wrong in ("gfx90a:xnack-", "a b", "+"):
        with pytest.raises(InputError, match="is not a valid version"):
            with_local("1.0", wrong)


@given(st.lists(rows, max_size=5))
def test_record_is_read_as_it_is_written(made: list[RecordRow]) -> None:
    made = [*made, RecordRow(path="x.dist-info/RECORD")]
    assert read_record(record_bytes(made)) == made


@each(
    "damaged", [b"a,b\n", b"a,md5=xx,1\n", b"a,sha256=!!!,1\n", b"a,sha256=,one\n", b"\xff,,\n", b'"a,,\n\0']
)
def test_a_damaged_record_is_told(damaged: bytes) -> None:
    with pytest.raises(CheckError, match="RECORD cannot be read"):
        read_record(damaged)


def test_a_hash_of_another_allowed_kind_is_not_held_against_a_file() -> None:
    assert read_record(b"a,sha512=AAAA,3\n") == [RecordRow(path="a", size=3)]


def test_record_is_compared_with_what_is_there() -> None:
    content = {
        path: RecordRow(path=path, sha256=SHA, size=1) for path in ("a", "b", "c", "x.dist-info/RECORD")
    }
    told = [
        RecordRow(path="a", sha256=SHA, size=1),
        RecordRow(path="b", sha256="cd" * 32, size=1),
        RecordRow(path="gone", sha256=SHA, size=1),
        RecordRow(path="a", sha256=SHA, size=1),
        RecordRow(path="x.dist-info/RECORD"),
    ]
    assert record_contradictions(told, content) == [
        "the sha256 or size of b is not what RECORD says",
        "RECORD names gone, which is missing",
        "RECORD names a twice",
    ]
    assert record_gaps([*told, RecordRow(path="b")], content, "x.dist-info") == [
        "c is not in RECORD",
        "RECORD has no sha256 of b",
    ]


@pytest.mark.parametrize("told", [RecordRow(path="a", sha256=SHA, size=2), RecordRow(path="a", size=2)])
def test_a_wrong_size_contradicts_a_file_whatever_its_hash(told: RecordRow) -> None:
    content = {"a": RecordRow(path="a", sha256=SHA, size=1)}
    assert record_contradictions([told], content) == ["the sha256 or size of a is not what RECORD says"]
    assert record_contradictions([RecordRow(path="a", sha256=SHA)], content) == []


def test_a_sound_wheel_has_no_contradictions() -> None:
    assert name_problems(parse_name(NAME), "small-1.0.dist-info", Headers(WHEEL), Headers(METADATA)) == []


def test_contradictions_between_name_and_metadata_are_told() -> None:
    wheel = Headers(WHEEL).replaced("Tag", ["cp311-cp311-linux_x86_64"]).replaced("Root-Is-Purelib", [])
    metadata = Headers(METADATA).replaced("Version", ["2"]).replaced("Name", ["other"])
    assert name_problems(parse_name(NAME), "small-1.1.dist-info", wheel, metadata) == [
        "METADATA names other, the file name small",
        "small-1.1.dist-info has version 1.1, the file name 1.0",
        "METADATA has version 2, the file name 1.0",
        "WHEEL and the file name differ in the tags cp311-cp311-linux_x86_64, py3-none-any",
        "WHEEL does not say whether Root-Is-Purelib",
    ]


def test_files_of_another_version_lie_in_other_folders() -> None:
    folder = "a_b-1.0.dist-info"
    assert moved("a_b-1.0.dist-info/WHEEL", folder, "1.0+slim") == "a_b-1.0+slim.dist-info/WHEEL"
    assert moved("a_b-1.0.data/scripts/x", folder, "1.0+slim") == "a_b-1.0+slim.data/scripts/x"
    assert moved("a_b/x", folder, "1.0+slim") == "a_b/x"
