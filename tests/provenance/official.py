"""The official JSON schema of CycloneDX 1.6, and as much of a validator as it needs.

The schema comes with cyclonedx-python-lib, as published by the project. The words of JSON Schema draft 7 that
it uses are checked, but for `format` and `$comment`-like ones; a word that is not known here is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import cyclonedx.schema

FOLDER = Path(cyclonedx.schema.__file__).parent / "_res"
TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
}
SILENT = {
    "$schema", "$id", "$comment", "title", "description", "default", "examples", "format", "definitions",
    "deprecated", "meta:enum", "contentEncoding", "readOnly",
}  # fmt: skip


@cache
def schema(name: str) -> dict[str, Any]:
    """A schema file by the name that others refer to it by."""
    found: dict[str, Any] = json.loads((FOLDER / name).read_text())
    return found


def faults(data: Any) -> list[str]:
    """What the schema says against an SBOM."""
    name = "bom-1.6.SNAPSHOT.schema.json"
    return list(_check(data, schema(name), name, "$"))


def _check(data: Any, rule: Any, name: str, at: str) -> Iterator[str]:
    if rule is True:
        return
    if rule is False:
        yield f"{at} may not be there"
        return
    if "$ref" in rule:
        file, _, pointer = rule["$ref"].partition("#")
        name = file or name
        target: Any = schema(name)
        for part in filter(None, pointer.split("/")):
            target = target[part]
        yield from _check(data, target, name, at)
        return
    for word, value in rule.items():
        yield from _word(word, value, data, rule, name, at)


def _word(word: str, value: Any, data: Any, rule: Any, name: str, at: str) -> Iterator[str]:
    def fits(one: Any, sub: Any) -> bool:
        return not any(_check(one, sub, name, at))

    match word:
        case "type":
            kinds = value if isinstance(value, list) else [value]
            if not any(_is(data, kind) for kind in kinds):
                yield f"{at} is no {value}"
        case "enum" if data not in value:
            yield f"{at} is {data!r}, none of the words"
        case "const" if data != value:
            yield f"{at} is not {value!r}"
        case "oneOf" if sum(fits(data, one) for one in value) != 1:
            yield f"{at} fits not exactly one"
        case "anyOf" if not any(fits(data, one) for one in value):
            yield f"{at} fits none"
        case "allOf":
            for one in value:
                yield from _check(data, one, name, at)
        case "not" if fits(data, value):
            yield f"{at} fits what it must not"
        case "if":
            chosen = "then" if fits(data, value) else "else"
            yield from _check(data, rule.get(chosen, True), name, at)
        case _ if isinstance(data, dict):
            yield from _of_object(word, value, data, rule, name, at)
        case _ if isinstance(data, list):
            yield from _of_list(word, value, data, name, at)
        case _ if isinstance(data, str):
            yield from _of_text(word, value, data, at)
        case "minimum" if isinstance(data, int | float) and data < value:
            yield f"{at} is too small"
        case "maximum" if isinstance(data, int | float) and data > value:
            yield f"{at} is too large"


def _of_object(word: str, value: Any, data: Any, rule: Any, name: str, at: str) -> Iterator[str]:
    match word:
        case "required":
            yield from (f"{at} has no {one}" for one in value if one not in data)
        case "properties":
            for key, sub in value.items():
                if key in data:
                    yield from _check(data[key], sub, name, f"{at}.{key}")
        case "additionalProperties":
            known = rule.get("properties", {})
            patterns = rule.get("patternProperties", {})
            for key in data:
                if key not in known and not any(re.search(one, key) for one in patterns):
                    yield from _check(data[key], value, name, f"{at}.{key}")
        case "patternProperties":
            for key, one in data.items():
                for pattern, sub in value.items():
                    if re.search(pattern, key):
                        yield from _check(one, sub, name, f"{at}.{key}")
        case _ if word not in SILENT | ALL:
            raise AssertionError(f"{word} is not known here")


def _of_list(word: str, value: Any, data: list[Any], name: str, at: str) -> Iterator[str]:
    match word:
        case "items":
            for number, one in enumerate(data):
                sub = value[number] if isinstance(value, list) and number < len(value) else value
                yield from _check(one, True if isinstance(sub, list) else sub, name, f"{at}[{number}]")
        case "uniqueItems" if value:
            seen = {json.dumps(one, sort_keys=True) for one in data}
            if len(seen) != len(data):
                yield f"{at} has something twice"
        case "minItems" if len(data) < value:
            yield f"{at} is too short"
        case "maxItems" if len(data) > value:
            yield f"{at} is too long"


def _of_text(word: str, value: Any, data: str, at: str) -> Iterator[str]:
    match word:
        case "pattern" if not re.search(value, data):
            yield f"{at} does not match {value}"
        case "minLength" if len(data) < value:
            yield f"{at} is too short"
        case "maxLength" if len(data) > value:
            yield f"{at} is too long"


ALL = {
    "type", "enum", "const", "oneOf", "anyOf", "allOf", "not", "if", "then", "else", "$ref", "items",
    "pattern", "uniqueItems", "minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum",
    "additionalItems",
}  # fmt: skip


def _is(data: Any, kind: str) -> bool:
    if kind == "null":
        return data is None
    return isinstance(data, TYPES[kind]) and (kind == "boolean" or not isinstance(data, bool))
