"""What lies in and beside artifacts once they are laid out."""

from __future__ import annotations

import base64
import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rocbase.errors import InputError
from rocbase.files.atomic import sha256_bytes, sha256_file
from rocwheel.wheels.lint.judge import judge
from rocwheel_samples import fatbin as written
from rocwheel_samples.wheel import make_wheel
from rocwheel_samples.wheel_making import FILES as SMALL
from rocwheel_samples.wheel_making import small_wheel
from rocwright.home import Home
from rocwright.provenance.bundled import contents
from rocwright.provenance.embed import NAME, sboms_in, with_sbom
from rocwright.provenance.layout import as_built, write_index
from rocwright.provenance.sidecars import attest
from rocwright.store.model import verified
from rocwright.store.signing.keys import KEY, make_key
from tests.provenance.official import faults
from tests.provenance.workplace import BETA, COMMIT, FILES, WHEEL_BYTES, Workplace, make_workplace

INSIDE = f"beta-1.0.dist-info/sboms/{NAME}"


@pytest.fixture
def work(home: Home, tmp_path: Path) -> Workplace:
    return make_workplace(home, tmp_path)


def bill(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.with_name(path.name + ".cdx.json").read_bytes())
    return found


def said(path: Path) -> dict[str, Any]:
    line = json.loads(path.with_name(path.name + ".intoto.jsonl").read_bytes())
    found: dict[str, Any] = json.loads(base64.b64decode(line["payload"]))
    return found


def by_role(data: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for one in data["components"]:
        (role,) = [row["value"] for row in one["properties"] if row["name"] == "rocwright:role"]
        found.setdefault(role, []).append(one)
    return found


def test_a_wheel_is_laid_out_with_its_sbom_inside_and_beside(work: Workplace) -> None:
    one = work.lay_out()[BETA]
    with zipfile.ZipFile(one.path) as archive:
        assert archive.testzip() is None
        assert archive.read(INSIDE) == one.path.with_name(f"{BETA}.cdx.json").read_bytes()
        assert {name: archive.read(name) for name in FILES} == FILES
    assert one.sha256 == sha256_file(one.path) != one.output.sha256
    assert "RECORD" not in {found.kind for found in judge(one.path)}


def test_the_store_keeps_what_the_step_made(work: Workplace) -> None:
    one = work.lay_out()[BETA]
    assert verified(work.project.store, one.output.sha256).read_bytes() == WHEEL_BYTES
    told = said(one.path)["predicate"]["runDetails"]["byproducts"]
    assert f"{BETA} as built, without its SBOM" in [row["name"] for row in told]


def test_the_sbom_of_a_wheel_tells_source_packages_toolchain_libraries_and_requirements(
    work: Workplace,
) -> None:
    data = bill(work.lay_out()[BETA].path)
    found = by_role(data)
    assert {role: [one["name"] for one in rows] for role, rows in found.items()} == {
        "source": ["beta"],
        "packages to build": ["libc6"],
        "toolchain": ["g++-15"],
        "bundled": ["beta/libbeta.so"],
        "requirement": ["alpha", "numpy"],
    }
    assert found["source"][0]["purl"] == "pkg:deb/debian/beta@1.0-2?arch=source&distro=debian-trixie"
    assert found["toolchain"][0]["purl"] == "pkg:deb/debian/g%2B%2B-15@15.2.0-3?arch=amd64&distro=debian-sid"
    assert found["toolchain"][0]["scope"] == "excluded"
    assert found["bundled"][0]["hashes"][0]["content"] == sha256_bytes(FILES["beta/libbeta.so"])
    assert [one.get("version") for one in found["requirement"]] == ["1.0", None]
    assert data["metadata"]["component"]["purl"] == "pkg:pypi/beta@1.0"


def test_a_library_is_told_with_the_gpus_that_it_has_code_for(tmp_path: Path) -> None:
    bundle = written.plain_bundle([(written.entry_id("gfx1151"), written.gpu_elf(0x4A))], align=8)
    wheel = small_wheel(tmp_path, {**SMALL, "small/libx.so": written.linked_elf([bundle], form="rela")})
    (found,) = contents(wheel).bundled
    assert (found.path, found.gpus) == ("small/libx.so", ("gfx1151",))


def test_the_sbom_of_an_archive_tells_commit_and_edits(work: Workplace) -> None:
    pedigree = bill(work.lay_out()["alpha-1.0.tar.gz"].path)["metadata"]["component"]["pedigree"]
    assert pedigree["commits"] == [{"uid": COMMIT, "url": "https://github.com/Example/alpha.git"}]
    assert [one["purl"] for one in pedigree["ancestors"]] == [f"pkg:github/example/alpha@{COMMIT}"]
    (patch,) = pedigree["patches"]
    assert patch["resolves"][0]["description"] == "a sentence begins so"
    assert json.loads(patch["diff"]["text"]["content"])["regex"] == r"\Athe"


def test_the_sbom_of_an_image_tells_the_packages_that_are_in_it_and_the_programs(work: Workplace) -> None:
    found = by_role(bill(work.lay_out()["alpha-tiny.oci.tar"].path))
    assert [(one["name"], one["scope"]) for one in found["packages to run"]] == [("libc6", "required")]
    assert [one["name"] for one in found["bundled"]] == ["alpha-1.0/bin/program"]


def test_the_same_lock_gives_the_same_bytes(work: Workplace, tmp_path: Path) -> None:
    one = {name: found.sha256 for name, found in work.lay_out().items()}
    (tmp_path / "other").mkdir()
    other = make_workplace(Home(tmp_path / "other-home"), tmp_path / "other")
    later = other.lock.model_copy(update={"created": "2031-01-01T00:00:00Z"})
    other = Workplace(project=other.project, lock=later, plan=other.plan)
    assert {name: found.sha256 for name, found in other.lay_out().items()} == one
    for name in one:
        files = [place.project.output / "tiny" / f"{name}.cdx.json" for place in (work, other)]
        assert files[0].read_bytes() == files[1].read_bytes()


def test_the_statement_tells_request_dependencies_and_steps(work: Workplace) -> None:
    one = work.lay_out()["alpha-1.0.tar.gz"]
    data = said(one.path)
    assert data["subject"] == [{"name": one.path.name, "digest": {"sha256": sha256_file(one.path)}}]
    definition = data["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["request"]["stack"] == "tiny"
    assert definition["internalParameters"]["keys"]["alpha"] == work.step("alpha").key
    depends = {row["name"]: row for row in definition["resolvedDependencies"]}
    assert depends["alpha.tar.gz"]["digest"]["gitCommit"] == COMMIT
    assert set(depends) == {"alpha.tar.gz", "libc6_1.0-1_amd64.deb", "g++-15_15.2.0-3_amd64.deb"}


def test_every_sbom_fits_the_official_schema(work: Workplace) -> None:
    for one in work.lay_out().values():
        assert faults(bill(one.path)) == []


def test_the_schema_finds_faults(work: Workplace) -> None:
    data = bill(work.lay_out()[BETA].path)
    for wrong in (
        data | {"serialNumber": "urn:uuid:1"},
        data | {"components": [{"type": "thing", "name": "x"}]},
        data | {"components": [{"type": "library"}]},
        data | {"unheard": "of"},
        {key: value for key, value in data.items() if key != "specVersion"},
    ):
        assert faults(wrong)


# Required fields: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md ("Fields") and
# https://slsa.dev/spec/v1.0/provenance ("Schema", "Fields"), each with the type that is said there.
REQUIRED: dict[tuple[str, ...], type] = {
    ("_type",): str,
    ("subject",): list,
    ("predicateType",): str,
    ("predicate", "buildDefinition", "buildType"): str,
    ("predicate", "buildDefinition", "externalParameters"): dict,
    ("predicate", "runDetails", "builder", "id"): str,
}
OPTIONAL: dict[tuple[str, ...], type] = {
    ("predicate", "buildDefinition", "internalParameters"): dict,
    ("predicate", "buildDefinition", "resolvedDependencies"): list,
    ("predicate", "runDetails", "builder", "version"): dict,
    ("predicate", "runDetails", "metadata", "startedOn"): str,
    ("predicate", "runDetails", "metadata", "finishedOn"): str,
    ("predicate", "runDetails", "byproducts"): list,
}
DESCRIPTOR = {"name", "uri", "digest", "content", "downloadLocation", "mediaType", "annotations"}


def test_the_statement_has_the_fields_that_in_toto_and_slsa_require(work: Workplace) -> None:
    for one in work.lay_out().values():
        data = said(one.path)
        for path, kind in (REQUIRED | OPTIONAL).items():
            value: Any = data
            for name in path:
                value = value[name]
            assert isinstance(value, kind), path
        assert data["_type"] == "https://in-toto.io/Statement/v1"
        assert data["predicateType"] == "https://slsa.dev/provenance/v1"
        predicate = data["predicate"]
        assert ":" in predicate["buildDefinition"]["buildType"], "a URI"
        described = [*data["subject"], *predicate["runDetails"]["byproducts"]]
        for row in [*described, *predicate["buildDefinition"]["resolvedDependencies"]]:
            assert row.keys() <= DESCRIPTOR
            assert row["digest"]["sha256"] == row["digest"]["sha256"].lower()


def test_what_is_there_is_left_alone(work: Workplace) -> None:
    first = work.lay_out()
    before = {path: path.stat().st_mtime_ns for path in (work.project.output / "tiny").iterdir()}
    assert len(before) == 9
    assert work.lay_out() == first
    assert {path: path.stat().st_mtime_ns for path in (work.project.output / "tiny").iterdir()} == before


@pytest.mark.parametrize("suffix", ["", ".cdx.json", ".intoto.jsonl"])
def test_what_was_changed_or_removed_is_laid_out_anew(work: Workplace, suffix: str) -> None:
    path = work.lay_out()[BETA].path
    file = path.with_name(path.name + suffix)
    before = file.read_bytes()
    file.unlink()
    assert work.lay_out()[BETA].path.exists()
    assert file.read_bytes() == before
    file.write_bytes(before[:-1] + b"x")
    work.lay_out()
    assert file.read_bytes() == before


def test_what_this_machine_knows_of_a_file_is_kept_with_it(work: Workplace) -> None:
    one = work.lay_out()[BETA]
    kept = work.project.home.statement(one.sha256)
    kept.unlink()
    work.lay_out()
    assert json.loads(kept.read_bytes()) == said(one.path)


def test_what_a_laid_out_file_was_made_of_is_known(work: Workplace) -> None:
    home = work.project.home
    for one in work.lay_out().values():
        assert as_built(home, one.sha256) == one.output.sha256
    assert as_built(home, "0" * 64) == "0" * 64


def test_a_file_that_was_touched_only_is_left_as_it_is(work: Workplace) -> None:
    path = work.lay_out()[BETA].path
    os.utime(path, (1, 1))
    work.lay_out()
    assert path.stat().st_mtime == 1


def test_a_key_that_is_made_later_signs_at_the_next_build(work: Workplace) -> None:
    assert {one.keyid for one in work.lay_out().values()} == {""}
    made = make_key()
    assert {one.keyid for one in work.lay_out().values()} == {made.keyid}


def test_what_was_signed_with_another_key_since_stays_signed(work: Workplace, tmp_path: Path) -> None:
    one = work.lay_out()[BETA]
    made = make_key(tmp_path / "another.key")
    statements, _ = attest(one.path, work.project.home, made.private)
    before = statements.read_bytes()
    assert work.lay_out()[BETA].keyid == made.keyid
    assert statements.read_bytes() == before


def test_a_key_that_is_named_and_is_not_there_is_an_error(
    work: Workplace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(KEY, str(tmp_path / "none.key"))
    with pytest.raises(InputError, match="there is no key"):
        work.lay_out()


def test_what_is_no_wheel_is_laid_out_as_it_was_made_and_that_is_said(home: Home, tmp_path: Path) -> None:
    work = make_workplace(home, tmp_path, b"text that is no zip")
    heard: list[str] = []
    one = work.lay_out(heard)[BETA]
    assert one.path.read_bytes() == b"text that is no zip"
    assert one.sha256 == one.output.sha256
    assert [text for text in heard if text.startswith(f"{BETA}: no SBOM was embedded")]


def test_an_sbom_of_ours_is_replaced_and_those_of_others_stay(tmp_path: Path) -> None:
    other = b'{"bomFormat": "CycloneDX"}'
    folder = "small-1.0.dist-info"
    wheel = small_wheel(tmp_path, {**SMALL, f"{folder}/sboms/auditwheel.cdx.json": other})
    with_sbom(wheel, b"{}", tmp_path / "one.whl")
    with_sbom(tmp_path / "one.whl", b'{"a": 1}', tmp_path / "two.whl")
    assert sboms_in(tmp_path / "two.whl") == {
        f"{folder}/sboms/{NAME}": b'{"a": 1}',
        f"{folder}/sboms/auditwheel.cdx.json": other,
    }


def test_each_build_adds_its_wheels_to_the_index_of_all(tmp_path: Path) -> None:
    first, second = (make_wheel(tmp_path / name, "Some_Name", name) for name in ("1.0", "2.0"))
    (tmp_path / "bad-1.0-py3-none-any.whl").write_bytes(b"no wheel")
    said: list[str] = []
    write_index(tmp_path / "out", [first])
    write_index(tmp_path / "out", [second, tmp_path / "bad-1.0-py3-none-any.whl"], said.append)
    page = json.loads((tmp_path / "out/simple/some-name/index.v1_json").read_text())
    for file, wheel in zip(page["files"], (first, second), strict=True):
        place = tmp_path / "out/simple/some-name" / file["url"]
        assert place.samefile(wheel)
        assert file["hashes"]["sha256"] == sha256_file(wheel)
        assert b"Name: Some_Name" in place.with_name(place.name + ".metadata").read_bytes()
    assert [line.partition(": cannot")[0] for line in said] == [
        "not in the wheel index: bad/bad-1.0-py3-none-any.whl"
    ]
    # what somebody removed comes back
    shutil.rmtree(tmp_path / "out/simple/some-name")
    write_index(tmp_path / "out", [first])
    html = (tmp_path / "out/simple/some-name/index.html").read_text()
    assert html.count("<a ") == 1 and f"{first.name}#sha256={sha256_file(first)}" in html


@pytest.mark.parametrize("name", ["tiny", "simple", "simple/beta"])
def test_nothing_is_laid_out_through_a_link_that_came_with_the_project(
    work: Workplace, tmp_path: Path, name: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = work.project.output / name
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is a link"):
        work.lay_out()
    assert list((tmp_path / "elsewhere").iterdir()) == []
