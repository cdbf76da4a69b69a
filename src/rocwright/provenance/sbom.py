"""A software bill of materials of an artifact, as CycloneDX 1.6 JSON: the same lock, the same bytes.

Source: https://cyclonedx.org/docs/1.6/json/. Scopes say what stays: `required` is in the artifact or needed
to run it, `excluded` was needed to build it alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from packageurl import PackageURL
from packaging.requirements import InvalidRequirement

from rocwheel.wheels.names import read_requirement
from rocwright.catalog.load import Catalog
from rocwright.model.edits import Edit
from rocwright.model.steps import ImageAction, ImageOrigin
from rocwright.plan.resolve.model import Lock, LockedComponent
from rocwright.provenance.bundled import Bundled, Contents
from rocwright.provenance.cyclonedx import (
    Object,
    address,
    component,
    document,
    in_order,
    licenses,
    object_of,
    properties,
    reference,
    references,
)
from rocwright.provenance.facts import the_facts
from rocwright.provenance.materials import BuildProvenance, Material, Role
from rocwright.provenance.purl import addresses, commit_of, purl_of, wheel_purl
from rocwright.store.model import Output

# What the name of an SBOM ends with, beside the artifact that it is of.
SUFFIX = ".cdx.json"

_STAYS: frozenset[Role] = frozenset({"source", "download", "packages to run", "rocm"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SbomSubject:
    """What an SBOM is of: the artifact as the step made it, and what was found in it; neither for a stack
    that is told by its lock alone."""

    output: Output | None = None
    contents: Contents = field(default_factory=Contents)


def sbom(provenance: BuildProvenance, lock: Lock, catalog: Catalog, subject: SbomSubject) -> bytes:
    """The bill of materials of an artifact, as JSON."""
    top = _top(provenance, lock, catalog, subject)
    parts = {
        material.pin.sha256: _source(material, catalog) if material.role == "source" else _material(material)
        for material in provenance.materials
    }
    sources = [parts[material.pin.sha256] for material in provenance.materials if material.role == "source"]
    inputs = [parts[material.pin.sha256] for material in provenance.materials if material.role != "source"]
    bundled = [_bundled(library) for library in subject.contents.bundled]
    needs = list(wants(subject.contents, lock, catalog, provenance.materials))
    requirements = [_requirement(want) for want in needs]
    if subject.output is None:
        sources += [_open(locked, catalog) for locked in lock.components if not locked.files]
    depends = {reference(top): [*sources, *bundled, *requirements]}
    for requirement, want in zip(requirements, needs, strict=True):
        depends[reference(requirement)] = [parts[answer.pin.sha256] for answer in want.answers]
    return document(top, [*sources, *inputs, *bundled, *requirements], depends, _of_the_lock(lock))


def _of_the_lock(lock: Lock) -> Iterator[tuple[str, str]]:
    request = lock.request
    yield "stack", request.stack
    yield "base", request.base
    yield "targets", ",".join(request.gpu)
    if lock.rocm is not None:
        yield "rocm", f"{lock.rocm.version} from {lock.rocm.name}"
    elif version := lock.provided.get("rocm"):
        yield "rocm", version
    yield from ((f"provided:{name}", version) for name, version in lock.provided.items())


def _top(provenance: BuildProvenance, lock: Lock, catalog: Catalog, subject: SbomSubject) -> Object:
    """The artifact itself, with its pedigree."""
    output = subject.output
    if output is None:
        return component("framework", "stack", lock.request.stack, lock.created[:10])
    locked = next(locked for locked in lock.components if locked.name == provenance.component)
    recipe = catalog.component(locked.name)
    metadata = subject.contents.metadata
    name, version = locked.name, locked.version
    purl = PackageURL("generic", None, locked.name, locked.version)
    if metadata is not None:
        name, version = metadata.get("Name"), metadata.get("Version")
        purl = wheel_purl(name, version)
    if isinstance(provenance.step.action, ImageAction):
        kind: Literal["container", "library", "application"] = "container"
    else:
        kind = "application" if metadata is None else "library"
    return component(
        kind,
        "artifact",
        name,
        version,
        purl=purl,
        description=recipe.summary,
        licenses=licenses(recipe.license),
        externalReferences=references("website", [recipe.homepage]),
        pedigree=_pedigree(provenance, locked, catalog),
        properties=properties(
            (
                ("component", locked.name),
                ("step", provenance.step.key),
                ("file", output.filename),
                ("as-built:sha256", output.sha256),
                ("as-built:size", str(output.size)),
            )
        ),
    )


def _pedigree(provenance: BuildProvenance, locked: LockedComponent, catalog: Catalog) -> Object:
    """Where it comes from: the upstream release, its commit, and what was changed in it."""
    mine = [
        material
        for material in provenance.materials
        if material.component is locked and material.role == "source"
    ]
    commits = {commit for material in mine if (commit := commit_of(material.pin))}
    url = next((address(place) for material in mine for place in addresses(material.pin)), None)
    notes = [f"source: {locked.place}", *(f"passed over: {reason}" for reason in locked.passed_over)]
    edits = [_patch(number, edit) for number, edit in enumerate(provenance.edits.get(locked.name, ()), 1)]
    series = [
        _series_patch(number, patch) for number, patch in enumerate(provenance.series.get(locked.name, ()), 1)
    ]
    return object_of(
        ancestors=in_order(
            _source(material, catalog) | {"bom-ref": f"upstream:{material.pin.sha256}"} for material in mine
        ),
        commits=[object_of(uid=commit, url=url) for commit in sorted(commits)],
        patches=[*sorted(edits, key=_place), *sorted(series, key=_place)],
        notes="; ".join(notes),
    )


def _patch(number: int, edit: Edit) -> Object:
    if edit.patch:
        text = {"contentType": "text/x-diff", "content": edit.patch}
    else:
        content = json.dumps(edit.material(), indent=1, sort_keys=True)
        text = {"contentType": "application/json", "content": content}
    reason = object_of(
        type="defect",
        id=f"edit {number}",
        name=edit.subject,
        description=edit.why,
        references=[address(edit.upstream)] if edit.upstream.startswith("https://") else None,
    )
    return {"type": "unofficial", "diff": {"text": text}, "resolves": [reason]}


def _series_patch(number: int, name: str) -> Object:
    return {
        "type": "unofficial",
        "resolves": [{"type": "defect", "id": f"series {number}", "name": name}],
    }


def _place(patch: Object) -> tuple[str, str, str]:
    """Patches by what they change, as text, and their number."""
    text = patch.get("diff", {}).get("text", {})
    return text.get("contentType", ""), text.get("content", ""), patch["resolves"][0]["id"]


def _source(material: Material, catalog: Catalog) -> Object:
    """The source of a component: what was compiled."""
    recipe = catalog.components.get(material.name)
    part = _material(material)
    if recipe is not None:
        part |= object_of(licenses=licenses(recipe.license), description=recipe.summary)
    return part


def _open(locked: LockedComponent, catalog: Catalog) -> Object:
    """The source of a component whose hash the lock leaves open."""
    recipe = catalog.component(locked.name)
    return component(
        "library",
        f"open:{locked.name}",
        locked.name,
        locked.version,
        scope="required",
        description=recipe.summary,
        licenses=licenses(recipe.license),
        properties=properties((("role", "source"), ("place", locked.place), ("open", locked.pending))),
    )


def _material(material: Material) -> Object:
    compiler = material.role == "packages to build" and the_facts().compiles(material.name)
    role = "toolchain" if compiler else material.role
    return component(
        "container" if isinstance(material.pin.origin, ImageOrigin) else "library",
        f"{material.role.partition(' ')[0]}:{material.pin.sha256}",
        material.name,
        material.version or None,
        scope="required" if material.role in _STAYS else "excluded",
        purl=purl_of(material),
        sha256=material.pin.sha256,
        externalReferences=references(
            "vcs" if commit_of(material.pin) else "distribution", addresses(material.pin)
        ),
        properties=properties((("role", role), ("file", material.pin.filename))),
    )


def _bundled(library: Bundled) -> Object:
    facts = [("role", "bundled"), ("size", str(library.size))]
    facts += [("soname", library.soname)] if library.soname else []
    facts += [("needs", ", ".join(library.needed))] if library.needed else []
    facts += [("gpu-code", ", ".join(library.gpus))] if library.gpus else []
    return component(
        "file",
        f"bundled:{library.path}",
        library.path,
        scope="required",
        sha256=library.sha256,
        properties=properties(facts),
    )


def _requirement(want: Want) -> Object:
    """What a wheel wants beside it."""
    purl = wheel_purl(want.name, want.version)
    return component(
        "library",
        f"requirement:{want.text}",
        want.name,
        purl.version,
        scope="required" if want.always else "optional",
        purl=purl,
        properties=properties((("role", "requirement"), ("requires", want.text))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """A requirement as the wheel says it; the version is told where the lock decides it, and `answers` are
    the files of the lock that the wanted package comes from."""

    text: str
    name: str
    version: str
    always: bool
    answers: tuple[Material, ...]


def wants(contents: Contents, lock: Lock, catalog: Catalog, materials: Sequence[Material]) -> Iterator[Want]:
    """Each requirement of a wheel's metadata, once."""
    requirements = contents.metadata.all("Requires-Dist") if contents.metadata else ()
    for text in dict.fromkeys(requirements):
        try:
            requirement = read_requirement(text)
        except InvalidRequirement:
            continue
        component = _component_of(requirement.name, lock, catalog)
        yield Want(
            text=text,
            name=requirement.name,
            version=_versions(lock).get(component, ""),
            always=requirement.marker is None,
            answers=tuple(_answers(component, lock, catalog, materials)),
        )


def _versions(lock: Lock) -> Mapping[str, str]:
    return lock.provided | {component.name: component.version for component in lock.components}


def _component_of(project: str, lock: Lock, catalog: Catalog) -> str:
    """The component that makes the wheel of a project; a project that none makes is called as it is."""
    wheel = f"{re.sub(r'[-_.]+', '_', project).lower()}-0-py3-none-any.whl"
    for name in _versions(lock):
        recipe = catalog.components.get(name)
        if recipe and any(fnmatchcase(wheel, output.pattern.lower()) for output in recipe.output):
            return name
    return project


def _answers(
    component: str, lock: Lock, catalog: Catalog, materials: Sequence[Material]
) -> Iterator[Material]:
    """The source of a component, or the package of the base that brings it along."""
    base, release = catalog.base(lock.request.base)
    brought = base.provided(release).get(component) if component in lock.provided else None
    for material in materials:
        if material.role == "source":
            matches = material.name == component
        else:
            matches = material.root is not None and brought is not None and material.name == brought.package
        if matches:
            yield material
