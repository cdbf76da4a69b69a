"""A software bill of materials of an artifact, as CycloneDX 1.6 JSON: the same lock, the same bytes.

Source: https://cyclonedx.org/docs/1.6/json/. Scopes say what stays: `required` is in the artifact or needed
to run it, `excluded` was needed to build it alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from packageurl import PackageURL

from rocwright.catalog.load import Catalog
from rocwright.model.edits import Edit
from rocwright.model.steps import ImageAction, ImageOrigin
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
from rocwright.provenance.requires import Want, wants
from rocwright.resolve.model import Lock, LockedComponent
from rocwright.store.model import Output

SUFFIX = ".cdx.json"
"""What the name of an SBOM ends with, beside the artifact that it is of."""

_STAYS: frozenset[Role] = frozenset({"source", "download", "packages to run", "rocm"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SbomSubject:
    """What an SBOM is of: the artifact as the step made it, and what was found in it; neither for a stack
    that is told by its lock alone."""

    output: Output | None = None
    contents: Contents = field(default_factory=Contents)


def sbom(made: BuildProvenance, lock: Lock, catalog: Catalog, subject: SbomSubject) -> bytes:
    """The bill of materials of an artifact, as JSON."""
    top = _top(made, lock, catalog, subject)
    parts = {
        one.pin.sha256: _source(one, catalog) if one.role == "source" else _material(one)
        for one in made.materials
    }
    sources = [parts[one.pin.sha256] for one in made.materials if one.role == "source"]
    others = [parts[one.pin.sha256] for one in made.materials if one.role != "source"]
    bundled = [_bundled(one) for one in subject.contents.bundled]
    found = list(wants(subject.contents, lock, catalog, made.materials))
    wanted = [_requirement(one) for one in found]
    if subject.output is None:
        sources += [_open(one, catalog) for one in lock.components if not one.files]
    depends = {reference(top): [*sources, *bundled, *wanted]}
    for requirement, want in zip(wanted, found, strict=True):
        depends[reference(requirement)] = [parts[one.pin.sha256] for one in want.answers]
    return document(top, [*sources, *others, *bundled, *wanted], depends, _of_the_lock(lock))


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


def _top(made: BuildProvenance, lock: Lock, catalog: Catalog, subject: SbomSubject) -> Object:
    """The artifact itself, with its pedigree."""
    output = subject.output
    if output is None:
        return component("framework", "stack", lock.request.stack, lock.created[:10])
    locked = next(one for one in lock.components if one.name == made.component)
    known = catalog.component(locked.name)
    metadata = subject.contents.metadata
    name, version = locked.name, locked.version
    purl = PackageURL("generic", None, locked.name, locked.version)
    if metadata is not None:
        name, version = metadata.get("Name"), metadata.get("Version")
        purl = wheel_purl(name, version)
    if isinstance(made.step.action, ImageAction):
        kind: Literal["container", "library", "application"] = "container"
    else:
        kind = "application" if metadata is None else "library"
    return component(
        kind,
        "artifact",
        name,
        version,
        purl=purl,
        description=known.summary,
        licenses=licenses(known.license),
        externalReferences=references("website", [known.homepage]),
        pedigree=_pedigree(made, locked, catalog),
        properties=properties(
            (
                ("component", locked.name),
                ("step", made.step.key),
                ("file", output.filename),
                ("as-built:sha256", output.sha256),
                ("as-built:size", str(output.size)),
            )
        ),
    )


def _pedigree(made: BuildProvenance, locked: LockedComponent, catalog: Catalog) -> Object:
    """Where it comes from: the upstream release, its commit, and what was changed in it."""
    mine = [one for one in made.materials if one.component is locked and one.role == "source"]
    commits = {commit for one in mine if (commit := commit_of(one.pin))}
    url = next((address(place) for one in mine for place in addresses(one.pin)), None)
    told = [f"source: {locked.place}", *(f"passed over: {why}" for why in locked.passed_over)]
    edits = [_patch(number, one) for number, one in enumerate(made.edits.get(locked.name, ()), 1)]
    series = [_series_patch(number, one) for number, one in enumerate(made.series.get(locked.name, ()), 1)]
    return object_of(
        ancestors=in_order(_source(one, catalog) | {"bom-ref": f"upstream:{one.pin.sha256}"} for one in mine),
        commits=[object_of(uid=one, url=url) for one in sorted(commits)],
        patches=[*sorted(edits, key=_place), *sorted(series, key=_place)],
        notes="; ".join(told),
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


def _source(one: Material, catalog: Catalog) -> Object:
    """The source of a component: what was compiled."""
    known = catalog.components.get(one.name)
    found = _material(one)
    if known is not None:
        found |= object_of(licenses=licenses(known.license), description=known.summary)
    return found


def _open(one: LockedComponent, catalog: Catalog) -> Object:
    """The source of a component whose hash the lock leaves open."""
    known = catalog.component(one.name)
    return component(
        "library",
        f"open:{one.name}",
        one.name,
        one.version,
        scope="required",
        description=known.summary,
        licenses=licenses(known.license),
        properties=properties((("role", "source"), ("place", one.place), ("open", one.pending))),
    )


def _material(one: Material) -> Object:
    compiler = one.role == "packages to build" and the_facts().compiles(one.name)
    role = "toolchain" if compiler else one.role
    return component(
        "container" if isinstance(one.pin.origin, ImageOrigin) else "library",
        f"{one.role.partition(' ')[0]}:{one.pin.sha256}",
        one.name,
        one.version or None,
        scope="required" if one.role in _STAYS else "excluded",
        purl=purl_of(one),
        sha256=one.pin.sha256,
        externalReferences=references("vcs" if commit_of(one.pin) else "distribution", addresses(one.pin)),
        properties=properties((("role", role), ("file", one.pin.filename))),
    )


def _bundled(one: Bundled) -> Object:
    more = [("role", "bundled"), ("size", str(one.size))]
    more += [("soname", one.soname)] if one.soname else []
    more += [("needs", ", ".join(one.needed))] if one.needed else []
    more += [("gpu-code", ", ".join(one.gpus))] if one.gpus else []
    return component(
        "file",
        f"bundled:{one.path}",
        one.path,
        scope="required",
        sha256=one.sha256,
        properties=properties(more),
    )


def _requirement(one: Want) -> Object:
    """What a wheel wants beside it."""
    purl = wheel_purl(one.name, one.version)
    return component(
        "library",
        f"requirement:{one.text}",
        one.name,
        purl.version,
        scope="required" if one.always else "optional",
        purl=purl,
        properties=properties((("role", "requirement"), ("requires", one.text))),
    )
