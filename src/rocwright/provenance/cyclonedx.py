"""Objects of CycloneDX 1.6 JSON: the same facts, the same bytes.

Source: https://cyclonedx.org/docs/1.6/json/. They are plain JSON objects, in the order that
cyclonedx-python-lib gives them: with all the packages of a root that library takes longer than the rest of a
build that does little. Tests have it read and write each document again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import NAMESPACE_OID, UUID, uuid5

from packageurl import PackageURL
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from rocbase.files.atomic import sha256_bytes
from rocbase.model import canonical_json
from rocwright import __version__
from rocwright.model.step_environment import EPOCH

# An object of the document; what is None or an empty list in it is left out when it is made.
Object = dict[str, Any]

_NOT_YET = UUID(int=0).urn
_OR_LATER = {
    f"{licence}+" for licence in ("GPL-1.0", "GPL-2.0", "GPL-3.0", "LGPL-2.0", "LGPL-2.1", "LGPL-3.0")
}
# what an address may not hold, by what stands for it (RFC 3986, percent-encoding)
_ESCAPED = str.maketrans({character: f"%{ord(character):02X}" for character in " \"'[]<>{}"})


def document(
    top: Object,
    components: Iterable[Object],
    depends: Mapping[str, Iterable[Object]],
    facts: Iterable[tuple[str, str]] = (),
) -> bytes:
    """The document of `top`; `depends` has what each reference needs, `facts` the document's properties."""
    components = in_order(components)
    return _written(
        {
            "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "serialNumber": _NOT_YET,
            "version": 1,
            "metadata": object_of(
                timestamp=datetime.fromtimestamp(EPOCH, UTC).isoformat(),
                tools={"components": [{"name": "rocwright", "version": __version__, "type": "application"}]},
                component=top,
                properties=properties(facts),
            ),
            "components": components,
            "dependencies": [
                object_of(
                    ref=ref, dependsOn=sorted({reference(dependency) for dependency in depends.get(ref, ())})
                )
                for ref in sorted(map(reference, [top, *components]))
            ],
        }
    )


def _written(data: Object) -> bytes:
    """The JSON, with a serial number that follows from the rest of it."""
    data = {name: value for name, value in data.items() if value != []}
    data["serialNumber"] = uuid5(NAMESPACE_OID, sha256_bytes(canonical_json(data))).urn
    return (json.dumps(data, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()


def object_of(**values: object) -> Object:
    """An object of what there is."""
    return {name: value for name, value in values.items() if value is not None and value != []}


def component(
    kind: Literal["application", "container", "file", "framework", "library"],
    ref: str,
    name: str,
    version: str | None = None,
    *,
    purl: PackageURL | None = None,
    sha256: str = "",
    **fields: object,
) -> Object:
    """A component; `ref` is what it is called in this document."""
    return {
        "bom-ref": ref,
        **object_of(
            type=kind,
            name=name,
            version=version,
            purl=None if purl is None else purl.to_string(),
            hashes=[{"alg": "SHA-256", "content": sha256}] if sha256 else None,
            **fields,
        ),
    }


def reference(part: Object) -> str:
    return str(part["bom-ref"])


def in_order(components: Iterable[Object]) -> list[Object]:
    """Components by type, name, version and reference, each reference once; those without a version last."""

    def place(part: Object) -> tuple[str, str, bool, str, str]:
        version = part.get("version")
        return part["type"], part["name"], version is None, version or "", reference(part)

    return sorted({reference(part): part for part in components}.values(), key=place)


def licenses(text: str) -> list[Object]:
    if not text:
        return []
    if _is_spdx(text):
        return [{"license": {"id": text}}]
    if any(f" {word} " in text for word in ("AND", "OR", "WITH")):
        return [{"expression": text}]
    return [{"license": {"name": text}}]


def _is_spdx(text: str) -> bool:
    """Whether it is the identifier of one licence of the SPDX list, as that spells it."""
    try:
        canonical = canonicalize_license_expression(text) == text
    except InvalidLicenseExpression:
        return False
    plain = not set(text) & set(" ()+") and not text.startswith("LicenseRef-")
    return canonical and (plain or text in _OR_LATER)


def address(url: str) -> str:
    return url.translate(_ESCAPED)


def references(kind: str, urls: Sequence[str]) -> list[Object]:
    return [{"type": kind, "url": url} for url in sorted({address(url) for url in urls if url})]


def properties(facts: Iterable[tuple[str, str]]) -> list[Object]:
    return [{"name": f"rocwright:{name}", "value": value} for name, value in sorted(set(facts))]
