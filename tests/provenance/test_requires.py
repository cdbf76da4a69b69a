"""What a wheel wants beside it, in its bill: by its project, and tied to what it comes from."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rocwheel.wheels.metadata import Headers
from rocwright.catalog.load import builtin_catalog
from rocwright.model.steps import FilePin, GitOrigin
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.lock import make_lock
from rocwright.plan.resolve.model import Lock, LockedComponent, Request
from rocwright.plan.resolve.upstream import OfflineUpstream
from rocwright.provenance.bundled import Contents
from rocwright.provenance.materials import whole_provenance
from rocwright.provenance.sbom import SbomSubject, sbom
from rocwright.store.model import Output
from tests.making import deb, digest
from tests.provenance.official import faults

CATALOG = builtin_catalog()


def locked(stack: str, base: str, **more: Any) -> Lock:
    """A lock as it is offline, its sources and its packages made up."""
    request = Request(stack=stack, gpu=("gfx1151",), base=base, **more)
    lock = make_lock(request, CATALOG, OfflineUpstream(), lambda _: None)
    roots = tuple(
        root.model_copy(update={"packages": (deb("libc6"), deb("python3-torch", "2.6.0+dfsg-7"))})
        for root in lock.roots
    )
    return lock.model_copy(update={"components": tuple(map(with_source, lock.components)), "roots": roots})


def with_source(one: LockedComponent) -> LockedComponent:
    origin = GitOrigin(url=f"https://example.org/{one.name}", commit="a" * 40)
    pin = FilePin(filename=f"{one.name}.tar.zst", sha256=digest(one.name), size=1, origin=origin)
    return one.model_copy(update={"files": (pin,), "pending": ""})


def bill(lock: Lock, *wanted: str) -> dict[str, Any]:
    """The bill of a torchvision wheel that wants these."""
    metadata = "\n".join(["Name: torchvision", "Version: 1", *(f"Requires-Dist: {one}" for one in wanted)])
    plan = make_plan(lock, CATALOG)
    made = whole_provenance(lock, plan)
    step = next(one for one in plan.steps if one.name == "torchvision")
    made = replace(made, step=step)
    output = Output(name="wheel", filename="torchvision-1-py3-none-any.whl", sha256="0" * 64, size=1)
    contents = Contents(metadata=Headers(f"{metadata}\n\n".encode()))
    data: dict[str, Any] = json.loads(
        sbom(made, lock, CATALOG, SbomSubject(output=output, contents=contents))
    )
    return data


@pytest.mark.parametrize(
    ("stack", "base", "answer", "version"),
    [
        ("torch-extensions", "debian:trixie", ("packages", "python3-torch 2.6.0+dfsg-7"), "2.6.0"),
        ("pytorch", "ubuntu:24.04", ("source", "pytorch"), "2.12.1"),
    ],
    ids=["brought along by the base", "built beside it"],
)
def test_a_requirement_depends_on_what_its_package_comes_from(
    stack: str, base: str, answer: tuple[str, str], version: str
) -> None:
    more = {} if stack == "torch-extensions" else {"versions": {"pytorch": "2.12.1", "rocm": "7.14.0"}}
    data = bill(locked(stack, base, **more), "Torch>=2", "numpy", "pillow!=8.3.*; extra == 'x'")
    depends = {one["ref"]: one.get("dependsOn", []) for one in data["dependencies"]}
    kind, named = answer
    assert depends["requirement:Torch>=2"] == [f"{kind}:{digest(named)}"]
    assert depends["requirement:numpy"] == []
    assert "requirement:Torch>=2" in depends["artifact"]
    parts = {one["bom-ref"]: one for one in data["components"]}
    torch = parts["requirement:Torch>=2"]
    assert (torch["version"], torch["purl"]) == (version, f"pkg:pypi/torch@{version}")
    assert "version" not in parts["requirement:numpy"]
    assert {ref for refs in depends.values() for ref in refs} <= set(parts)
    assert faults(data) == []
