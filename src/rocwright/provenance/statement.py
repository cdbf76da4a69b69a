"""How an artifact came to be, as an in-toto Statement with SLSA's provenance predicate.

Sources: https://github.com/in-toto/attestation, spec/v1/statement.md; https://slsa.dev/spec/v1.0/provenance.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from rocbase.files.atomic import sha256_bytes
from rocbase.model import canonical_json
from rocwright import __version__
from rocwright.model.steps import KEY_SCHEMA, ImageOrigin
from rocwright.plan.resolve.model import Lock
from rocwright.provenance.materials import BuildProvenance, Material
from rocwright.provenance.purl import addresses, commit_of, purl_of
from rocwright.store.model import CacheUse, Record

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
# What externalParameters and internalParameters mean; docs/proof.md tells it.
BUILD_TYPE = "urn:rocwright:build:v1"

LOCAL_BUILDER = "urn:rocwright:builder:own-machine"
# The variable that names who builds, as a URI (a CI's address); without it: a machine of the user's own.
BUILDER = "ROCWRIGHT_BUILDER_ID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """Something with a name and a hex sha256: a subject, a by-product."""

    name: str
    sha256: str

    def described(self) -> dict[str, Any]:
        """As in-toto's ResourceDescriptor."""
        return {"name": self.name, "digest": {"sha256": self.sha256}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """How it was built: the step's record, the sha256 of the artifact `as_built`, the run that ran it (""
    where nothing tells), what it left; `caches` says of each step behind it that ran commands whether it had
    a compiler cache, None where nothing tells; `others` the ids of keys whose owners compiled a part.
    """

    record: Record
    as_built: str
    invocation: str = ""
    byproducts: tuple[Thing, ...] = ()
    caches: Mapping[str, CacheUse | None] = field(default_factory=dict)
    others: Mapping[str, Sequence[str]] = field(default_factory=dict)


def statement(provenance: BuildProvenance, lock: Lock, subject: Thing, how: Circumstances) -> dict[str, Any]:
    """What is said of an artifact: made of this, by this request, by these steps."""
    return {
        "_type": STATEMENT,
        "subject": [subject.described()],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": _external_parameters(provenance, lock),
                "internalParameters": {"asBuilt": how.as_built}
                | _how(provenance, lock)
                | {
                    "compilerCache": {
                        component: _cache(use, how.others.get(component, ()))
                        for component, use in how.caches.items()
                    }
                },
                "resolvedDependencies": [_dependency(material) for material in provenance.materials],
            },
            "runDetails": {
                "builder": {
                    "id": os.environ.get(BUILDER) or LOCAL_BUILDER,
                    "version": {"rocwright": __version__},
                },
                "metadata": _metadata(how),
                "byproducts": [byproduct.described() for byproduct in how.byproducts],
            },
        },
    }


def _external_parameters(provenance: BuildProvenance, lock: Lock) -> dict[str, Any]:
    request = lock.request.model_dump(mode="json", exclude_defaults=True)
    return {"request": request, "component": provenance.component, "lock": {"sha256": lock.digest}}


def _how(provenance: BuildProvenance, lock: Lock) -> dict[str, Any]:
    behind = {step.component for step in provenance.steps}
    fields = {"issue", "component", "action", "why"}
    return {
        "step": provenance.step.name,
        "keySchema": KEY_SCHEMA,
        "keys": {step.name: step.key for step in provenance.steps},
        "edits": {name: [_edit(edit) for edit in edits] for name, edits in sorted(provenance.edits.items())},
        "remedies": [
            remedy.model_dump(mode="json", include=fields, exclude_defaults=True)
            for remedy in lock.in_force
            if remedy.component in behind
        ],
    }


def _cache(use: CacheUse | None, builders: Sequence[str]) -> dict[str, Any]:
    cache = use.model_dump(mode="json", exclude_defaults=True) if use else {"state": "unknown"}
    return cache | ({"others": list(builders)} if builders else {})


def _edit(edit: Any) -> dict[str, str]:
    return {"subject": edit.subject, "why": edit.why, "sha256": sha256_bytes(canonical_json(edit.material()))}


def _dependency(material: Material) -> dict[str, Any]:
    digest = {"sha256": material.pin.sha256}
    if commit := commit_of(material.pin):
        digest["gitCommit"] = commit
    dependency: dict[str, Any] = {
        "uri": purl_of(material).to_string(),
        "digest": digest,
        "name": material.pin.filename,
    }
    annotations: dict[str, str] = {"role": material.role}
    if isinstance(material.pin.origin, ImageOrigin):
        # the digest above is of the packed root; the image's own is that of its manifest
        annotations["manifest"] = material.pin.origin.digest
    if places := addresses(material.pin):
        dependency["downloadLocation"] = places[0]
    return dependency | {"annotations": annotations}


def _metadata(how: Circumstances) -> dict[str, str]:
    started = datetime.fromisoformat(how.record.started)
    ended = started + timedelta(seconds=round(how.record.seconds))
    times = {"startedOn": how.record.started, "finishedOn": ended.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return ({"invocationId": how.invocation} if how.invocation else {}) | times


def subjects(payload: Mapping[str, Any]) -> list[Thing]:
    """The subjects of a statement that have a sha256, as it names them."""
    return [
        Thing(name=str(row.get("name", "")), sha256=str(row["digest"]["sha256"]).lower())
        for row in _rows(payload.get("subject"))
        if isinstance(row.get("digest"), dict) and "sha256" in row["digest"]
    ]


def _rows(rows: Any) -> Iterable[dict[str, Any]]:
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
