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
    found = find(own, request, facts, requires=requires, folder=folder)
    meant = [one for one in own if is_meant(one.path, request.only)]
    names = final_names(found, facts)
    return Plan(
        home=home,
        layout="linux",
        libraries=_brought(found, names, folder),
        data=found.data,
        aliases=_aliases(found, names, folder),
        edits=tuple(
            sorted(
                (
                    *_own_edits(meant, found, names, folder, facts),
                    *_brought_edits(found, names, folder, facts),
                    *_program_edits(found, names, folder),
                ),
                key=lambda edit: edit.place,
            )
        ),
        missing=found.missing,
        without=found.without,
        named=found.named,
        kept_out=dict(sorted(found.kept_out.items())),
        dropped=found.dropped,
    )


def final_names(found: FoundLibraries, facts: Facts) -> dict[str, str]:
    """Each name that is asked for -> the file's name in the wheel.

    A library keeps the name by which the loader knows it where something opens it, or where it is one of
    ROCm's: a process must have one of these. Others get a part of their hash into it, as auditwheel does, so
    that they meet no other wheel's.
    """
    opened = found.opened_names
    kept = {
        one.file_name
        for name, one in found.libraries.items()
        if name in opened or one.file_name in opened or facts.known(one.file_name)
    }
    hashed: dict[Path, str] = {}
    names = {}
    for name, one in found.libraries.items():
        if one.file_name in kept:
            names[name] = one.file_name
        else:
            if one.path not in hashed:
                hashed[one.path] = sha256_file(one.path)[:_HASH_DIGITS]
            stem, dot, rest = one.file_name.partition(".")
            names[name] = f"{stem}-{hashed[one.path]}{dot}{rest}"
    return names


def _groups(found: FoundLibraries, names: Mapping[str, str]) -> dict[str, list[str]]:
    """The names that are asked for, by the name of the file that answers."""
    groups: dict[str, list[str]] = {}
    for name in sorted(found.libraries):
        groups.setdefault(names[name], []).append(name)
    return groups


def _brought(found: FoundLibraries, names: Mapping[str, str], folder: str) -> tuple[Brought, ...]:
    opened = found.opened_names
    return tuple(
        Brought(
            place=f"{folder}/{name}",
            name=name,
            soname=found.libraries[asked[0]].file_name,
            source=found.libraries[asked[0]].path,
            was=tuple(asked),
            opened_as=tuple(one for one in asked if one in opened),
            wanted_by=tuple(dict.fromkeys(who for one in asked for who in found.wanted_by[one])),
            versions=found.libraries[asked[0]].linkage.versions,
        )
        for name, asked in sorted(_groups(found, names).items())
    )


def _aliases(found: FoundLibraries, names: Mapping[str, str], folder: str) -> tuple[Alias, ...]:
    return tuple(
        Alias(place=f"{folder}/{name}", of=names[name], machine=found.libraries[name].linkage.machine)
        for name in sorted(found.opened_names)
        if name in names and names[name] != name
    )


def _own_edits(
    own: Sequence[Own], found: FoundLibraries, names: Mapping[str, str], folder: str, facts: Facts
) -> list[Edit]:
    """The wheel's own files: RPATHs that lead to what was brought in, and nowhere outside of the wheel."""
    edits = []
    for one in own:
        replaced = _replaced(one.linkage, names)
        wants = any(name in names for name in (*one.linkage.needed, *found.opened.get(one.path, ())))
        beside = [
            str(PurePosixPath(found.inside[name].installed).parent)
            for name in one.linkage.needed
            if name in found.inside
        ]
        kept = list(inside_folders(one.linkage.search_path, one.installed))
        leads_out = len(kept) < len(one.linkage.search_path)
        folders = dict.fromkeys((*kept, *beside, *((folder,) if wants or leads_out else ())))
        rpath = tuple(_origin(place, one.installed) for place in folders)
        remove = tuple(filter(facts.unneeded, one.linkage.needed))
        if wants or leads_out or remove or not set(beside) <= set(kept):
            edits.append(Edit(place=one.path, rpath=rpath, replace=replaced, remove=remove))
    return edits


def _brought_edits(found: FoundLibraries, names: Mapping[str, str], folder: str, facts: Facts) -> list[Edit]:
    edits = []
    for name, asked in _groups(found, names).items():
        library = found.libraries[asked[0]]
        linkage = library.linkage
        inside = [
            str(PurePosixPath(found.inside[one].installed).parent)
            for one in linkage.needed
            if one in found.inside
        ]
        wants = any(one in names for one in (*linkage.needed, *found.opened.get(library.file_name, ())))
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


def _program_edits(found: FoundLibraries, names: Mapping[str, str], folder: str) -> list[Edit]:
    return [
        Edit(place=place, rpath=(_origin(folder, place),), replace=_replaced(linkage, names))
        for place, linkage in found.programs.items()
    ]


def _replaced(linkage: Linkage, names: Mapping[str, str]) -> dict[str, str]:
    return {name: names[name] for name in linkage.needed if names.get(name, name) != name}


def _origin(folder: str, file: str) -> str:
    """A folder of the wheel as a RPATH of a file of the wheel."""
    relative = os.path.relpath(f"/{folder}", f"/{PurePosixPath(file).parent}")
    return "$ORIGIN" if relative == "." else f"$ORIGIN/{relative}"
