"""SBOMs of wheels that somebody else built: what they declare, what lies in them, where that is from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocbase.errors import CheckError, ExplainedError, InputError
from rocwheel_samples.command import Command
from rocwheel_samples.fake_rocm import compile_library
from rocwheel_samples.fatbin import entry_id, fatbin, gpu_elf, host_elf, plain_bundle
from rocwheel_samples.wheel_making import FILES, METADATA, NAME, small_wheel
from rocwright.provenance.sbom_of import read_bytes, read_document
from rocwright.provenance.wheel_sbom import wheel_sbom
from tests.provenance.official import faults
from tests.provenance.test_sbom import as_the_library_has_it

INFO = "small-1.0.dist-info"
LICENCE_TEXT = b"""This binary also bundles:

Name: Number Library
Files: small.libs/libnumber*.so
Availability: https://example.org/number
License: BSD-3-Clause
  Copyright (c) somebody
Name: Deep
Files: small.libs/libnumber*.so
License: MIT
"""
AUDITWHEEL = json.dumps(
    {
        "bomFormat": "CycloneDX",
        "specVersion": "1.4",
        "components": [
            {
                "type": "library",
                "name": "libXau",
                "version": "1-3.el8",
                "purl": "pkg:rpm/almalinux/libXau@1-3.el8",
            }
        ],
    }
).encode()


def metadata(*lines: str) -> bytes:
    return METADATA.replace(b"\n\n", ("\n" + "\n".join(lines) + "\n\n").encode(), 1)


def wheel_with(folder: Path, *lines: str, **files: bytes) -> Path:
    return small_wheel(folder, FILES | {f"{INFO}/METADATA": metadata(*lines)} | files)


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(wheel_sbom(path))
    return found


def told(row: dict[str, Any]) -> dict[str, str]:
    return {one["name"].removeprefix("rocwright:"): one["value"] for one in row.get("properties", ())}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("library")
    return compile_library(folder / "libn.so.3", "int n(void) { return 3; }", soname="libn.so.3").read_bytes()


@pytest.fixture(scope="module")
def noted(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A library with the note that Fedora's builds leave in theirs."""
    folder = tmp_path_factory.mktemp("noted")
    note = {
        "type": "rpm",
        "name": "xz-libs",
        "version": "5.8.1-2.fc43",
        "architecture": "x86_64",
        "osCpe": "cpe:/o:fedoraproject:fedora:43",
    }
    flags = ("-Xlinker", f"--package-metadata={json.dumps(note)}")
    return compile_library(folder / "libl.so.5", "int l(void) { return 5; }", flags=flags).read_bytes()


def test_a_wheels_licences_requirements_and_hash_are_told(tmp_path: Path) -> None:
    lines = ("License-Expression: MIT", "License-File: LICENSE", "Requires-Dist: torch>=2")
    path = wheel_with(
        tmp_path, *lines, "Requires-Dist: pytest; extra == 'test'", **{f"{INFO}/licenses/LICENSE": b"MIT"}
    )
    data = wheel_sbom(path)
    assert as_the_library_has_it(data) == data
    assert faults(json.loads(data)) == []
    top = json.loads(data)["metadata"]
    assert top["component"]["licenses"] == [{"license": {"id": "MIT"}}]
    assert top["component"]["purl"] == "pkg:pypi/small@1.0"
    assert told(top)["licence-files"] == f"{INFO}/licenses/LICENSE"
    wanted = {one["name"]: one["scope"] for one in json.loads(data)["components"]}
    assert wanted == {"torch": "required", "pytest": "optional"}


@pytest.mark.parametrize(
    ("lines", "licences", "where"),
    [
        (("License-Expression: MIT AND Zlib",), [{"expression": "MIT AND Zlib"}], "License-Expression"),
        (("Classifier: License :: OSI Approved :: MIT License",), [{"license": {"id": "MIT"}}], "Classifier"),
        # PEP 639: which BSD licence, this classifier does not say
        (
            ("License: BSD-3-Clause", "Classifier: License :: OSI Approved :: BSD License"),
            [{"license": {"id": "BSD-3-Clause"}}],
            "License",
        ),
        (
            ("Classifier: License :: OSI Approved :: BSD License",),
            [{"license": {"name": "BSD License"}}],
            "Classifier",
        ),
    ],
)
def test_the_most_exact_word_on_licences_counts(
    tmp_path: Path, lines: tuple[str, ...], licences: list[dict[str, Any]], where: str
) -> None:
    top = read(wheel_with(tmp_path, *lines))["metadata"]
    assert top["component"]["licenses"] == licences
    assert told(top)["licence"].endswith(f"({where})")


def test_a_wheel_without_a_licence_says_that_none_is_declared(tmp_path: Path) -> None:
    top = read(wheel_with(tmp_path, "License-File: LICENSE"))["metadata"]
    assert "licenses" not in top["component"]
    assert told(top)["licence"] == "none is declared"
    assert "LICENSE, which the wheel does not have" in told(top)["wrong:1"]


def test_a_vendored_library_is_told_with_its_soname_and_its_project(tmp_path: Path, library: bytes) -> None:
    where = "small.libs/libnumber-0123abcd.so.3.1"
    path = wheel_with(tmp_path, **{where: library, f"{INFO}/LICENSE.txt": LICENCE_TEXT})
    (row,) = read(path)["components"]
    assert (row["name"], told(row)["file"], told(row)["soname"]) == ("Number Library", where, "libn.so.3")
    assert row["licenses"] == [{"license": {"id": "BSD-3-Clause"}}, {"license": {"id": "MIT"}}]
    assert told(row)["origin-told-by"] == "LICENSE.txt"
    assert told(row)["compiler"].startswith("GCC")


def test_the_package_is_taken_from_an_sbom_that_another_tool_put_in(tmp_path: Path, library: bytes) -> None:
    files = {"small.libs/libXau-154567c4.so.6.0.0": library, f"{INFO}/sboms/auditwheel.cdx.json": AUDITWHEEL}
    found = read(wheel_with(tmp_path, **files))
    (row,) = found["components"]
    assert (row["version"], row["purl"]) == ("1-3.el8", "pkg:rpm/almalinux/libXau@1-3.el8")
    assert told(found["metadata"])["sboms-inside"] == f"{INFO}/sboms/auditwheel.cdx.json"


def test_the_note_in_a_library_says_its_package(tmp_path: Path, noted: bytes) -> None:
    (row,) = read(wheel_with(tmp_path, **{"small.libs/liblzma-de26b416.so.5": noted}))["components"]
    assert row["purl"] == "pkg:rpm/fedora/xz-libs@5.8.1-2.fc43?arch=x86_64"
    assert told(row)["origin-told-by"] == "note in the library"


def test_of_a_library_that_nobody_tells_of_this_is_said(tmp_path: Path, library: bytes) -> None:
    (row,) = read(wheel_with(tmp_path, **{"small.libs/libown-154567c4.so": library}))["components"]
    assert (row["type"], told(row)["origin"]) == ("file", "not told")


def test_gpu_code_is_told_by_target(tmp_path: Path) -> None:
    code = fatbin([plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A)), (entry_id("gfx90a"), gpu_elf(0x3F))])])
    found = read(wheel_with(tmp_path, **{"small/libgpu.so": host_elf(code)}))
    (row,) = found["components"]
    assert told(row)["gpu-code"] == "gfx90a, gfx1151"
    assert told(found["metadata"])["gpu-code:gfx1151"].startswith("1 code object, ")


def test_code_that_cannot_be_read_is_not_passed_over(tmp_path: Path) -> None:
    code = fatbin([plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A))])[:60]])
    found = read(wheel_with(tmp_path, **{"small/libgpu.so": host_elf(code)}))
    assert "GPU code cannot be read" in told(found["metadata"])["wrong:1"]
    assert [one["name"] for one in found["components"]] == ["small/libgpu.so"]


def test_an_sbom_of_ours_goes_before_one_that_is_made(tmp_path: Path) -> None:
    path = wheel_with(tmp_path, **{f"{INFO}/sboms/rocwright.cdx.json": AUDITWHEEL})
    assert read_bytes(path)[1] == AUDITWHEEL
    assert read_bytes(wheel_with(tmp_path, **{f"{INFO}/sboms/other.cdx.json": AUDITWHEEL}))[1] != AUDITWHEEL


@pytest.mark.parametrize(
    ("name", "files"),
    [
        (NAME, {"small/__init__.py": b""}),
        ("small.whl", FILES),
        (NAME, {f"{INFO}/WHEEL": b""}),
        (NAME, {f"{INFO}/METADATA": b"Name: small\n" * 900_000, f"{INFO}/WHEEL": b""}),
    ],
    ids=["no dist-info", "no wheel's name", "no METADATA", "huge METADATA"],
)
def test_what_is_no_wheel_is_refused(tmp_path: Path, name: str, files: dict[str, bytes]) -> None:
    with pytest.raises((InputError, CheckError)) as error:
        wheel_sbom(small_wheel(tmp_path, files, name))
    assert error.value.next_step


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(head=st.binary(max_size=300), tail=st.binary(max_size=300))
def test_whatever_a_wheel_says_the_document_is_valid_or_it_is_refused(
    tmp_path: Path, head: bytes, tail: bytes
) -> None:
    files = {
        f"{INFO}/METADATA": METADATA.replace(b"\n\n", b"\nSummary: x\nRequires-Dist: " + head + b"\n\n", 1),
        f"{INFO}/licenses/LICENSE": b"Name: a\nFiles: " + tail + b"\nLicense: " + head,
        f"{INFO}/sboms/x.json": tail,
        "small.libs/libx.so": b"\x7fELF\x02\x01" + tail,
    }
    try:
        data = wheel_sbom(small_wheel(tmp_path, FILES | files))
    except ExplainedError as error:
        assert error.next_step
    else:
        assert faults(json.loads(data)) == []


def test_the_command_shows_a_wheel_of_others_and_what_differs(tmp_path: Path, rocwright: Command) -> None:
    one = wheel_with(tmp_path / "1", "License-Expression: MIT", "Requires-Dist: torch")
    two = wheel_with(tmp_path / "2", "License-Expression: Zlib", "Requires-Dist: \x1b[31mnumpy")
    shown = rocwright("sbom", str(one))
    assert shown.returncode == 0, shown.stderr
    assert "MIT (License-Expression)" in shown.stdout
    assert "\x1b" not in rocwright("sbom", str(two)).stdout
    assert rocwright("sbom", str(one), "--format", "cyclonedx").stdout.encode() == wheel_sbom(one)
    assert rocwright("sbom", str(one), "--json").stdout.encode() == wheel_sbom(one)
    differ = rocwright("sbom", "diff", str(one), str(two))
    assert differ.returncode == 1
    assert "removed  torch" in differ.stdout


def test_the_same_wheel_gives_the_same_bytes(tmp_path: Path) -> None:
    assert wheel_sbom(wheel_with(tmp_path / "a")) == wheel_sbom(wheel_with(tmp_path / "b"))
    assert read_document(wheel_with(tmp_path / "c")).subject == "small"
