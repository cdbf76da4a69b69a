"""What was found, as a plan: names, places and edits of everything in the new wheel."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from rocbase.files.atomic import sha256_file
from rocwheel.wheels.needed import Linkage, inside_folders
from rocwheel.wheels.repair.facts import Facts
from rocwheel.wheels.repair.finding import FoundLibraries, Own, find
from rocwheel.wheels.repair.model import Alias, Brought, Edit, Plan, Request
from rocwheel.wheels.repair.staying import is_meant

LIB = "lib"
_HASH_DIGITS = 8


def plan_linux(
    own: Sequence[Own], request: Request, facts: Facts, *, home: str, requires: Iterable[str]
) -> Plan:
    """What must be brought in so that the ELF files `own` load with no ROCm around.

    `home` is the folder of the wheel for it, `requires` are the wheels that this one requires. Raises
    InputError where an exclusion or inclusion matches nothing.
    """
    folder = f"{home}/{LIB}"
    findings = find(own, request, facts, requires=requires, folder=folder)
    selected = [library for library in own if is_meant(library.path, request.only)]
    names = final_names(findings, facts)
    return Plan(
        home=home,
        layout="linux",
        libraries=_brought(findings, names, folder),
        data=findings.data,
        aliases=_aliases(findings, names, folder),
        edits=tuple(
            sorted(
                (
                    *_own_edits(selected, findings, names, folder, facts),
                    *_brought_edits(findings, names, folder, facts),
                    *_program_edits(findings, names, folder),
                ),
                key=lambda edit: edit.place,
            )
        ),
        missing=findings.missing,
        without=findings.without,
        named=findings.named,
        kept_out=dict(sorted(findings.kept_out.items())),
        dropped=findings.dropped,
    )


def final_names(findings: FoundLibraries, facts: Facts) -> dict[str, str]:
    """Each name that is asked for -> the file's name in the wheel.

    A library keeps the name by which the loader knows it where something opens it, or where it is one of
    ROCm's: a process must have one of these. Others get a part of their hash into it, as auditwheel does, so
    that they meet no other wheel's.
    """
    opened = findings.opened_names
    unhashed = {
        library.file_name
        for name, library in findings.libraries.items()
        if name in opened or library.file_name in opened or facts.elf_library(library.file_name)
    }
    hashed: dict[Path, str] = {}
    names = {}
    for name, library in findings.libraries.items():
        if library.file_name in unhashed:
            names[name] = library.file_name
        else:
            if library.path not in hashed:
                hashed[library.path] = sha256_file(library.path)[:_HASH_DIGITS]
            stem, dot, suffix = library.file_name.partition(".")
            names[name] = f"{stem}-{hashed[library.path]}{dot}{suffix}"
    return names


def _groups(findings: FoundLibraries, names: Mapping[str, str]) -> dict[str, list[str]]:
    """The names that are asked for, by the name of the file that answers."""
    groups: dict[str, list[str]] = {}
    for name in sorted(findings.libraries):
        groups.setdefault(names[name], []).append(name)
    return groups


def _brought(findings: FoundLibraries, names: Mapping[str, str], folder: str) -> tuple[Brought, ...]:
    opened = findings.opened_names
    return tuple(
        Brought(
            place=f"{folder}/{name}",
            name=name,
            soname=findings.libraries[needs[0]].file_name,
            source=findings.libraries[needs[0]].path,
            was=tuple(needs),
            opened_as=tuple(need for need in needs if need in opened),
            wanted_by=tuple(
                dict.fromkeys(dependent for need in needs for dependent in findings.wanted_by[need])
            ),
            versions=findings.libraries[needs[0]].linkage.versions,
        )
        for name, needs in sorted(_groups(findings, names).items())
    )


def _aliases(findings: FoundLibraries, names: Mapping[str, str], folder: str) -> tuple[Alias, ...]:
    return tuple(
        Alias(place=f"{folder}/{name}", of=names[name], machine=findings.libraries[name].linkage.machine)
        for name in sorted(findings.opened_names)
        if name in names and names[name] != name
    )


def _own_edits(
    own: Sequence[Own], findings: FoundLibraries, names: Mapping[str, str], folder: str, facts: Facts
) -> list[Edit]:
    """The wheel's own files: RPATHs that lead to what was brought in, and nowhere outside of the wheel."""
    edits = []
    for library in own:
        replaced = _replaced(library.linkage, names)
        wants = any(
            name in names for name in (*library.linkage.needed, *findings.opened.get(library.path, ()))
        )
        inside = [
            str(PurePosixPath(findings.inside[name].installed).parent)
            for name in library.linkage.needed
            if name in findings.inside
        ]
        retained = list(inside_folders(library.linkage.search_path, library.installed))
        leads_out = len(retained) < len(library.linkage.search_path)
        folders = dict.fromkeys((*retained, *inside, *((folder,) if wants or leads_out else ())))
        rpath = tuple(_origin(place, library.installed) for place in folders)
        remove = tuple(filter(facts.unneeded, library.linkage.needed))
        if wants or leads_out or remove or not set(inside) <= set(retained):
            edits.append(Edit(place=library.path, rpath=rpath, replace=replaced, remove=remove))
    return edits


def _brought_edits(
    findings: FoundLibraries, names: Mapping[str, str], folder: str, facts: Facts
) -> list[Edit]:
    edits = []
    for name, needs in _groups(findings, names).items():
        library = findings.libraries[needs[0]]
        linkage = library.linkage
        inside = [
            str(PurePosixPath(findings.inside[need].installed).parent)
            for need in linkage.needed
            if need in findings.inside
        ]
        wants = any(need in names for need in (*linkage.needed, *findings.opened.get(library.file_name, ())))
        folders = dict.fromkeys((*((folder,) if wants else ()), *inside))
        rpath = tuple(_origin(place, f"{folder}/{name}") for place in folders)
        edit = Edit(
            place=f"{folder}/{name}",
            rpath=rpath,
            soname="" if linkage.soname == name else name,
            replace=_replaced(linkage, names),
            remove=tuple(filter(facts.unneeded, linkage.needed)),
        )
        if edit.soname or edit.replace or edit.remove or rpath != linkage.rpath or linkage.runpath:
            edits.append(edit)
    return edits


def _program_edits(findings: FoundLibraries, names: Mapping[str, str], folder: str) -> list[Edit]:
    return [
        Edit(place=place, rpath=(_origin(folder, place),), replace=_replaced(linkage, names))
        for place, linkage in findings.programs.items()
    ]


def _replaced(linkage: Linkage, names: Mapping[str, str]) -> dict[str, str]:
    return {name: names[name] for name in linkage.needed if names.get(name, name) != name}


def _origin(folder: str, file: str) -> str:
    """A folder of the wheel as a RPATH of a file of the wheel."""
    relative = os.path.relpath(f"/{folder}", f"/{PurePosixPath(file).parent}")
    return "$ORIGIN" if relative == "." else f"$ORIGIN/{relative}"
