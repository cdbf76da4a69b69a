"""A software bill of materials of an artifact, as CycloneDX 1.6 JSON: the same lock, the same bytes.

Source: https://cyclonedx.org/docs/1.6/json/. Scopes say what stays: `required` is in the artifact or needed
to run it, `excluded` was needed to build it alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import NAMESPACE_OID, UUID, uuid5

from cyclonedx.model import (
    AttachedText,
    ExternalReference,
    ExternalReferenceType,
    HashAlgorithm,
    HashType,
    Property,
    XsUri,
)
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import (
    Commit,
    Component,
    ComponentScope,
    ComponentType,
    Diff,
    Patch,
    PatchClassification,
    Pedigree,
)
from cyclonedx.model.issue import IssueClassification, IssueType
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.spdx import is_supported_id
from packageurl import PackageURL

from rocwright import __version__
from rocwright.catalog.load import Catalog
from rocwright.files import sha256_bytes
from rocwright.models import canonical_json
from rocwright.patching.model import Edit
from rocwright.plan.environment import EPOCH
from rocwright.plan.model import ImageAction, ImageOrigin
from rocwright.proof.bundled import Bundled, Contents
from rocwright.proof.facts import the_facts
from rocwright.proof.materials import Made, Material, Role
from rocwright.proof.purl import addresses, commit_of, purl_of, wheel_purl
from rocwright.proof.wants import Want, wants
from rocwright.resolve.model import Lock, LockedComponent
from rocwright.store.model import Output

SUFFIX = ".cdx.json"
"""What the name of an SBOM ends with, beside the artifact that it is of."""

_NOT_YET = UUID(int=0)
_STAYS: frozenset[Role] = frozenset({"source", "download", "packages to run", "rocm"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What an SBOM is of: the artifact as the step made it, and what was found in it; neither for a stack
    that is told by its lock alone."""

    output: Output | None = None
    contents: Contents = field(default_factory=Contents)


def sbom(made: Made, lock: Lock, catalog: Catalog, subject: Subject) -> bytes:
    """The bill of materials of an artifact, as JSON."""
    top = _top(made, lock, catalog, subject)
    parts = {
        one.pin.sha256: _source(one, catalog) if one.role == "source" else _material(one)
        for one in made.materials
    }
    sources = [parts[one.pin.sha256] for one in made.materials if one.role == "source"]
    others = [parts[one.pin.sha256] for one in made.materials if one.role != "source"]
    bundled = [_bundled(one) for one in subject.contents.bundled]
    wanted = {_requirement(one): one for one in wants(subject.contents, lock, catalog, made.materials)}
    if subject.output is None:
        sources += [_open(one, catalog) for one in lock.components if not one.files]
    tool = Component(name="rocwright", version=__version__, type=ComponentType.APPLICATION)
    bom = Bom(
        components=[*sources, *others, *bundled, *wanted],
        serial_number=_NOT_YET,
        metadata=BomMetaData(
            timestamp=datetime.fromtimestamp(EPOCH, UTC),
            tools=ToolRepository(components=[tool]),
            component=top,
            properties=_properties(_of_the_lock(lock)),
        ),
    )
    bom.register_dependency(top, [*sources, *bundled, *wanted])
    for requirement, want in wanted.items():
        bom.register_dependency(requirement, [parts[one.pin.sha256] for one in want.answers])
    return _written(bom)


def _written(bom: Bom) -> bytes:
    """The JSON, with a serial number that follows from the rest of it."""
    data = json.loads(JsonV1Dot6(bom).output_as_string())
    data["serialNumber"] = uuid5(NAMESPACE_OID, sha256_bytes(canonical_json(data))).urn
    return (json.dumps(data, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()


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


def _top(made: Made, lock: Lock, catalog: Catalog, subject: Subject) -> Component:
    """The artifact itself, with its pedigree."""
    if subject.output is None:
        return Component(
            name=lock.request.stack, version=lock.created[:10], bom_ref="stack", type=ComponentType.FRAMEWORK
        )
    locked = next(one for one in lock.components if one.name == made.component)
    known = catalog.component(locked.name)
    metadata = subject.contents.metadata
    name, version = locked.name, locked.version
    purl = PackageURL("generic", None, locked.name, locked.version)
    kind = ComponentType.APPLICATION
    if metadata is not None:
        name, version = metadata.get("Name"), metadata.get("Version")
        purl, kind = wheel_purl(name, version), ComponentType.LIBRARY
    if isinstance(made.step.action, ImageAction):
        kind = ComponentType.CONTAINER
    output = subject.output
    return Component(
        name=name,
        version=version,
        bom_ref="artifact",
        type=kind,
        purl=purl,
        description=known.summary,
        licenses=_licenses(known.license),
        external_references=_references([(ExternalReferenceType.WEBSITE, known.homepage)]),
        pedigree=_pedigree(made, locked, catalog),
        properties=_properties(
            (
                ("component", locked.name),
                ("step", made.step.key),
                ("file", output.filename),
                ("as-built:sha256", output.sha256),
                ("as-built:size", str(output.size)),
            )
        ),
    )


def _pedigree(made: Made, locked: LockedComponent, catalog: Catalog) -> Pedigree:
    """Where it comes from: the upstream release, its commit, and what was changed in it."""
    mine = [one for one in made.materials if one.component is locked and one.role == "source"]
    edits, series = made.edits.get(locked.name, ()), made.series.get(locked.name, ())
    commits = {commit for one in mine if (commit := commit_of(one.pin))}
    places = [place for one in mine for place in addresses(one.pin)]
    url = XsUri(places[0]) if places else None
    told = [f"source: {locked.place}", *(f"passed over: {why}" for why in locked.passed_over)]
    patches = [_patch(number, one) for number, one in enumerate(edits, 1)]
    patches += [_series_patch(number, one) for number, one in enumerate(series, 1)]
    return Pedigree(
        ancestors=[_ancestor(one, catalog) for one in mine],
        commits=[Commit(uid=one, url=url) for one in sorted(commits)],
        patches=patches,
        notes="; ".join(told),
    )


def _ancestor(one: Material, catalog: Catalog) -> Component:
    found = _source(one, catalog)
    found.bom_ref.value = f"upstream:{one.pin.sha256}"
    return found


def _patch(number: int, edit: Edit) -> Patch:
    if edit.patch:
        diff = AttachedText(content=edit.patch, content_type="text/x-diff")
    else:
        text = json.dumps(edit.material(), indent=1, sort_keys=True)
        diff = AttachedText(content=text, content_type="application/json")
    reason = IssueType(
        type=IssueClassification.DEFECT,
        id=f"edit {number}",
        name=edit.subject,
        description=edit.why,
        references=[XsUri(edit.upstream)] if edit.upstream.startswith("https://") else None,
    )
    return Patch(type=PatchClassification.UNOFFICIAL, diff=Diff(text=diff), resolves=[reason])


def _series_patch(number: int, name: str) -> Patch:
    reason = IssueType(type=IssueClassification.DEFECT, id=f"series {number}", name=name)
    return Patch(type=PatchClassification.UNOFFICIAL, resolves=[reason])


def _source(one: Material, catalog: Catalog) -> Component:
    """The source of a component: what was compiled."""
    known = catalog.components.get(one.name)
    found = _material(one)
    if known is not None:
        found.licenses = _licenses(known.license)
        found.description = known.summary
    return found


def _open(one: LockedComponent, catalog: Catalog) -> Component:
    """The source of a component whose hash the lock leaves open."""
    known = catalog.component(one.name)
    return Component(
        name=one.name,
        version=one.version,
        bom_ref=f"open:{one.name}",
        type=ComponentType.LIBRARY,
        scope=ComponentScope.REQUIRED,
        description=known.summary,
        licenses=_licenses(known.license),
        properties=_properties((("role", "source"), ("place", one.place), ("open", one.pending))),
    )


def _material(one: Material) -> Component:
    compiler = one.role == "packages to build" and the_facts().compiles(one.name)
    role = "toolchain" if compiler else one.role
    kind = ExternalReferenceType.SCM if commit_of(one.pin) else ExternalReferenceType.DISTRIBUTION
    references = [(kind, place) for place in addresses(one.pin)]
    image = isinstance(one.pin.origin, ImageOrigin)
    return Component(
        name=one.name,
        version=one.version or None,
        bom_ref=f"{one.role.partition(' ')[0]}:{one.pin.sha256}",
        type=ComponentType.CONTAINER if image else ComponentType.LIBRARY,
        scope=ComponentScope.REQUIRED if one.role in _STAYS else ComponentScope.EXCLUDED,
        purl=purl_of(one),
        hashes=[_hash(one.pin.sha256)],
        external_references=_references(references),
        properties=_properties((("role", role), ("file", one.pin.filename))),
    )


def _bundled(one: Bundled) -> Component:
    more = [("role", "bundled"), ("size", str(one.size))]
    more += [("soname", one.soname)] if one.soname else []
    more += [("needs", ", ".join(one.needed))] if one.needed else []
    more += [("gpu-code", ", ".join(one.gpus))] if one.gpus else []
    return Component(
        name=one.path,
        bom_ref=f"bundled:{one.path}",
        type=ComponentType.FILE,
        scope=ComponentScope.REQUIRED,
        hashes=[_hash(one.sha256)],
        properties=_properties(more),
    )


def _requirement(one: Want) -> Component:
    """What a wheel wants beside it."""
    purl = wheel_purl(one.name, one.version)
    return Component(
        name=one.name,
        version=purl.version,
        bom_ref=f"requirement:{one.text}",
        type=ComponentType.LIBRARY,
        scope=ComponentScope.REQUIRED if one.always else ComponentScope.OPTIONAL,
        purl=purl,
        properties=_properties((("role", "requirement"), ("requires", one.text))),
    )


def _licenses(text: str) -> list[DisjunctiveLicense | LicenseExpression]:
    if not text:
        return []
    if is_supported_id(text):
        return [DisjunctiveLicense(id=text)]
    if any(f" {word} " in text for word in ("AND", "OR", "WITH")):
        return [LicenseExpression(text)]
    return [DisjunctiveLicense(name=text)]


def _hash(sha256: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=sha256)


def _references(found: Iterable[tuple[ExternalReferenceType, str]]) -> list[ExternalReference]:
    return [ExternalReference(type=kind, url=XsUri(url)) for kind, url in found if url]


def _properties(found: Iterable[tuple[str, str]]) -> list[Property]:
    return [Property(name=f"rocwright:{name}", value=value) for name, value in found]
