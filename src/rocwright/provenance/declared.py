"""What a wheel says of its licences: License-Expression, License, classifiers, and the files of License-File.

Source: https://packaging.python.org/specifications/core-metadata/ and PEP 639.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from rocwheel.wheels.metadata import Headers
from rocwright.provenance.facts import the_facts

_CLASSIFIER = "License :: "
_LONGEST = 200
"""Characters of a `License:` that is a name; a longer one is the whole text of a licence."""

_NAMES = ("licen", "copying", "notice", "copyright")
"""How the names of licence files begin that no License-File tells of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """Licences as SPDX has them, or by name, and which header says so ("" where none does); files of the
    wheel with licences, and those that METADATA names and the wheel has not."""

    licences: tuple[str, ...] = ()
    told_by: str = ""
    files: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def declared(metadata: Headers, folder: str, paths: Collection[str]) -> Declared:
    """What METADATA declares; `folder` is the wheel's *.dist-info, `paths` are all of its files."""
    licences, told_by = _licences(metadata)
    files, missing = _files(metadata.all("License-File"), folder, paths)
    return Declared(licences=licences, told_by=told_by, files=files, missing=missing)


def _licences(metadata: Headers) -> tuple[tuple[str, ...], str]:
    """The most exact that is told: the expression, else the classifiers, else the free text."""
    if expression := metadata.get("License-Expression").strip():
        return (expression[:_LONGEST],), "License-Expression"
    classifiers = [
        classifier for classifier in metadata.all("Classifier") if classifier.startswith(_CLASSIFIER)
    ]
    licences = dict.fromkeys(the_facts().licence_of(classifier) for classifier in classifiers)
    free = metadata.get("License").strip()
    named = free if "\n" not in free and len(free) <= _LONGEST and free.upper() != "UNKNOWN" else ""
    # "BSD License" alone says less than what was written by hand
    if exact := [licence for licence in licences if licence and " " not in licence]:
        return tuple(sorted(exact)), "Classifier"
    if named:
        return (named,), "License"
    if vague := [licence[:_LONGEST] for licence in licences if licence]:
        return tuple(sorted(vague)), "Classifier"
    return ((), "") if not free or named == free else (("see the text in METADATA",), "License")


def _files(
    names: Iterable[str], folder: str, paths: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Files with licences by their path in the wheel, and those that are told and not there."""
    files: dict[str, None] = {}
    missing = []
    for name in dict.fromkeys(names):
        places = (f"{folder}/licenses/{name}", f"{folder}/{name}")
        place = next((place for place in places if place in paths), None)
        if place is None:
            missing.append(name)
        else:
            files[place] = None
    for path in sorted(paths):
        inside = path.removeprefix(f"{folder}/")
        if inside != path and inside.rpartition("/")[2].lower().startswith(_NAMES):
            files.setdefault(path)
    return tuple(sorted(files)), tuple(sorted(missing))
