"""SBOMs, ours and those of strangers: read, compared, and told from the shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocbase.errors import InputError
from rocwheel.wheels.canonicalize import normalise
from rocwheel_samples.hostile_files import soon
from rocwheel_samples.tables import each
from rocwheel_samples.wheel_making import NAME, small_wheel
from rocwright.home import Home
from rocwright.provenance.compare import SbomComparison, compare
from rocwright.provenance.documents import parse_document
from rocwright.provenance.embed import sboms_in, with_sbom
from rocwright.provenance.sbom_of import read_document
from tests.conftest import Command
from tests.provenance.test_check import json_values
from tests.provenance.workplace import BETA, make_workplace


def document(*components: dict[str, Any], **more: Any) -> bytes:
    said = {"bomFormat": "CycloneDX", "specVersion": "1.5", "components": list(components)}
    return json.dumps(said | more).encode()


def part(
    name: str, version: str = "1", *, licence: str = "", digest: str = "", **more: Any
) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "library", "name": name, "version": version}
    found["purl"] = f"pkg:pypi/{name}@{version}"
    if licence:
        found["licenses"] = [{"license": {"id": licence}}]
    if digest:
        found["hashes"] = [{"alg": "SHA-256", "content": digest}]
    return found | more


def between(before: bytes, after: bytes) -> SbomComparison:
    return compare(parse_document(before, "before"), parse_document(after, "after"))


def test_a_name_that_comes_twice_among_many_is_found_at_once() -> None:
    names = "".join(f'"{number}": 0, ' for number in range(100_000))
    with soon(10), pytest.raises(InputError) as caught:
        parse_document(f'{{{names}"last": 0, "last": 0}}'.encode(), "document")
    assert "'last' twice" in caught.value.cause


def test_added_removed_and_changed_components_are_told() -> None:
    found = between(
        document(part("a"), part("b", licence="MIT"), part("c", digest="1" * 64)),
        document(part("b", "2", licence="GPL-3.0-only"), part("c", digest="2" * 64), part("d")),
    )
    assert [one.name for one in found.added] == ["d"]
    assert [one.name for one in found.removed] == ["a"]
    assert {one.name: one.changes for one in found.changed} == {
        "b": (("version", "1", "2"), ("licence", "MIT", "GPL-3.0-only")),
        "c": (("content", "sha-256 111111111111", "sha-256 222222222222"),),
    }


def test_a_hash_that_one_alone_tells_is_no_difference() -> None:
    assert between(document(part("a", digest="1" * 64)), document(part("a"))).same


def test_of_two_versions_of_one_component_the_one_that_changed_is_told() -> None:
    found = between(document(part("a", "1"), part("a", "2")), document(part("a", "2"), part("a", "3")))
    assert [one.changes for one in found.changed] == [(("version", "1", "3"),)]
    assert not found.added
    assert not found.removed


def test_components_inside_components_count() -> None:
    inner = document(part("a", components=[part("b")]))
    assert [one.name for one in between(document(part("a")), inner).added] == ["b"]


names = st.sampled_from("abcd")
parts = st.lists(
    st.builds(part, names, st.sampled_from("123"), licence=st.sampled_from(["", "MIT"])), max_size=8
)


@given(before=parts, after=parts)
def test_a_difference_is_the_same_from_the_other_side(
    before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> None:
    forth = between(document(*before), document(*after))
    back = between(document(*after), document(*before))
    assert forth.added == back.removed
    assert forth.removed == back.added
    assert len(forth.changed) == len(back.changed)
    assert between(document(*before), document(*reversed(before))).same
    assert len(before) - len(forth.removed) == len(after) - len(forth.added)


@given(data=json_values, metadata=json_values, components=json_values)
def test_whatever_a_stranger_writes_is_read_or_refused_in_words(
    data: Any, metadata: Any, components: Any
) -> None:
    for text in (
        json.dumps(data).encode(),
        document(metadata=metadata, components=components),
        document(metadata={"component": metadata, "properties": components}, components=[metadata, data]),
    ):
        try:
            found = parse_document(text, "a stranger's")
        except InputError as error:
            assert error.next_step
        else:
            assert compare(found, found).same


@each(
    "data",
    [b"", b"<bom/>", b'{"spdxVersion": "SPDX-2.3"}', b"[" * 90_000],
    ids=["empty", "xml", "spdx", "deep"],
)
def test_what_is_no_cyclonedx_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(InputError, match=r"not an? (valid )?SBOM in CycloneDX JSON"):
        parse_document(data, "this")


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.cdx.json"
    with path.open("wb") as file:
        file.truncate(1024**3)
    with pytest.raises(InputError, match="too much for a valid SBOM"):
        read_document(path)


def test_many_components_of_one_name_are_compared_one_with_another() -> None:
    rows = [part("a", str(number)) for number in range(20_000)]
    one, two = document(*rows), document(*(row | {"version": row["version"] + ".1"} for row in rows))
    assert len(between(one, two).changed) == 20_000


def test_the_command_shows_and_compares(home: Home, tmp_path: Path, rocwright: Command) -> None:
    one = make_workplace(home, tmp_path).lay_out()[BETA]
    shown = rocwright("sbom", str(one.path))
    assert "g++-15" in shown.stdout
    assert "and 1 that were only needed to build it" in shown.stdout
    whole = rocwright("sbom", "of", str(one.path), "--format", "cyclonedx")
    assert whole.stdout.encode() == one.beside[0].read_bytes()
    assert rocwright("sbom", "diff", str(one.path), str(one.beside[0])).returncode == 0

    changed = json.loads(whole.stdout)
    changed["components"] = [row for row in changed["components"] if row["name"] != "libc6"]
    other = tmp_path / "other.cdx.json"
    other.write_text(json.dumps(changed))
    told = rocwright("sbom", "diff", str(one.path), str(other))
    assert told.returncode == 1
    assert "removed  libc6 [packages to build] 1.0-1" in told.stdout
    data = json.loads(rocwright("sbom", "diff", str(one.path), str(other), "--json").stdout)
    assert [row["name"] for row in data["removed"]] == ["libc6"]


def test_the_command_tells_a_locks_parts_before_anything_is_built(rocwright: Command) -> None:
    told = rocwright("sbom", "llama-vulkan", "--gpu", "gfx1151", "--base", "debian:sid")
    assert told.returncode == 0, told.stderr
    assert "llama.cpp" in told.stdout
    assert "missing, because the lock leaves it open" in told.stderr
    again = ("sbom", "llama-vulkan", "--gpu", "gfx1151", "--base", "debian:sid", "--format", "cyclonedx")
    assert json.loads(rocwright(*again).stdout)["bomFormat"] == "CycloneDX"


def test_words_of_strangers_do_not_reach_the_terminal_as_they_are(tmp_path: Path, rocwright: Command) -> None:
    path = tmp_path / "x.cdx.json"
    path.write_bytes(document(part("\x1b[31mred\x07")))
    assert "\x1b" not in rocwright("sbom", str(path)).stdout


def test_inspect_and_diff_of_wheels_tell_of_their_sboms(tmp_path: Path, rocwright: Command) -> None:
    wheels = []
    for version in "12":
        target = tmp_path / version / NAME
        target.parent.mkdir()
        with_sbom(small_wheel(tmp_path), document(part("numpy", version)), target)
        wheels.append(str(target))
    told = rocwright("wheel", "inspect", wheels[0])
    assert "SBOM  small-1.0.dist-info/sboms/rocwright.cdx.json: 1 components" in told.stdout
    (row,) = json.loads(rocwright("wheel", "inspect", wheels[0], "--json").stdout)["sboms"]
    assert row["components"] == 1
    differ = rocwright("wheel", "diff", *wheels)
    assert differ.returncode == 1
    assert "SBOM: changed  numpy: version 1 -> 2" in differ.stdout
    whole = json.loads(rocwright("wheel", "diff", *wheels, "--json").stdout)
    assert [one["name"] for one in whole["sbom"]["changed"]] == ["numpy"]


def test_the_one_form_of_a_wheel_keeps_its_sbom(tmp_path: Path) -> None:
    with_sbom(small_wheel(tmp_path), document(part("numpy")), tmp_path / "other.whl")
    (tmp_path / "in").mkdir()
    (tmp_path / "other.whl").rename(tmp_path / "in" / NAME)
    (tmp_path / "out").mkdir()
    made = normalise(tmp_path / "in" / NAME, tmp_path / "out", epoch=0)
    assert sboms_in(made.path) == sboms_in(tmp_path / "in" / NAME)
