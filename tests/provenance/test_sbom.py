"""SBOMs as they are written: what cyclonedx-python-lib makes of the same, byte for byte."""

from __future__ import annotations

import json
from dataclasses import replace

from cyclonedx.model.bom import Bom
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.spdx import is_supported_id
from packaging.licenses import _spdx

from rocwheel.wheels.metadata import Headers
from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.home import Home
from rocwright.model.edits import Edit
from rocwright.model.steps import ArchiveOrigin
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Lock
from rocwright.provenance.bundled import Bundled, Contents
from rocwright.provenance.cyclonedx import licenses
from rocwright.provenance.materials import made_from, whole_provenance
from rocwright.provenance.sbom import SbomSubject, sbom
from rocwright.store.model import Output
from tests.provenance.official import faults
from tests.provenance.test_requires import locked
from tests.provenance.workplace import make_workplace

CATALOG = builtin_catalog()
METADATA = (
    "Name: x\nVersion: 1\nRequires-Dist: torch>=2\nRequires-Dist: a_b; extra=='x'\nRequires-Dist: \u00e9\n\n"
)


def as_the_library_has_it(data: bytes) -> bytes:
    """The document as the library reads it, puts it in order and writes it."""
    said = json.loads(data)
    written = json.loads(JsonV1Dot6(Bom.from_json(said)).output_as_string())  # type: ignore[attr-defined]
    return (json.dumps(written, indent=1, sort_keys=True) + "\n").encode()


def edit(**said: str) -> Edit:
    return Edit.model_validate({"upstream": "https://example.org/1"} | said)


def of_everything(lock: Lock) -> bytes:
    """The SBOM of a wheel that has a bit of all: edits, series, libraries, requirements, open addresses."""
    plan = make_plan(lock, CATALOG)
    step = next(one for one in plan.steps if one.name == "torchvision")
    made = made_from(step, plan, lock)
    edits = tuple(
        edit(**{"file": f"f{number}", "literal": "a", "with": "b"}, why=f"why {number}")
        for number in range(12)
    )
    diffs = tuple(edit(diff=name, patch=f"--- a/{name}\n", why=name) for name in "ba")
    made = replace(
        made,
        edits={"torchvision": (*edits, *diffs)},
        series={"torchvision": tuple(f"{number}.patch" for number in range(12))},
    )
    bundled = tuple(
        Bundled(path=f"x/{number}.so", sha256=f"{number:064x}", size=number, soname="x" * (number % 2))
        for number in (3, 10, 2)
    )
    contents = Contents(bundled=(*bundled, *bundled), metadata=Headers(METADATA.encode()))
    output = Output(name="wheel", filename="x-1-py3-none-any.whl", sha256="0" * 64, size=1)
    return sbom(made, lock, CATALOG, SbomSubject(output=output, contents=contents))


@each(
    ("stack", "base"),
    [("torch-extensions", "debian:trixie"), ("vllm", "fedora:43"), ("pytorch-hip-start", "debian:sid")],
)
def test_the_sbom_of_a_lock_is_what_the_library_writes(stack: str, base: str) -> None:
    lock = locked(stack, base)
    data = sbom(whole_provenance(lock, make_plan(lock, CATALOG)), lock, CATALOG, SbomSubject())
    assert as_the_library_has_it(data) == data
    assert faults(json.loads(data)) == []


def test_the_sbom_of_an_artifact_is_what_the_library_writes() -> None:
    lock = locked("torch-extensions", "debian:trixie")
    (first, *others) = lock.components
    origin = ArchiveOrigin(url="https://example.org/<ab>['{}']\".tar")
    files = tuple(one.model_copy(update={"origin": origin}) for one in first.files)
    lock = lock.model_copy(update={"components": (first.model_copy(update={"files": files}), *others)})
    data = of_everything(lock)
    assert as_the_library_has_it(data) == data
    assert faults(json.loads(data)) == []
    pedigree = json.loads(data)["metadata"]["component"]["pedigree"]
    assert len(pedigree["patches"]) == 26
    assert len(json.loads(data)["components"]) == len(
        {one["bom-ref"] for one in json.loads(data)["components"]}
    )


def test_what_lies_beside_artifacts_is_what_the_library_writes(home: Home, tmp_path) -> None:  # type: ignore[no-untyped-def]
    for one in make_workplace(home, tmp_path).lay_out().values():
        data = one.beside[0].read_bytes()
        assert as_the_library_has_it(data) == data


@each("text", ["MIT+", "mit", "LicenseRef-own", "MIT OR", "no licence", "(MIT)", ""])
def test_what_is_on_no_list_of_licences_is_not_said_to_be(text: str) -> None:
    assert not is_supported_id(text)
    assert all("id" not in one.get("license", {}) for one in licenses(text))


def test_the_identifiers_of_licences_are_those_of_the_schema() -> None:
    for known in _spdx.LICENSES.values():
        assert is_supported_id(known["id"])
        assert licenses(known["id"]) == [{"license": {"id": known["id"]}}]
