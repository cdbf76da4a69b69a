"""Which facts of the catalog are for people: shown, and acted on by nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, get_args

from pydantic import Field

from rocbase.model import Frozen

Words = Annotated[str, Field(min_length=1)]


class ForPeople(Frozen):
    """Facts of some `files` (a glob of the catalog's folder) that nothing acts on; where they are `shown`.

    A fact is a key as the file says it, with the tables around it (`target.therock.label`), one name in a
    table of many (`target.features.aiter`), one row of many by its name (`release[9]`), or a glob of these.
    """

    files: Words
    facts: Annotated[tuple[Words, ...], Field(min_length=1)]
    shown: Words


class ForPeopleFile(Frozen):
    """for_people.toml."""

    mark: tuple[ForPeople, ...] = ()


def keys(says: type[Frozen], within: str = "") -> Iterator[str]:
    """Every key that a file of this model may say, with the tables around it."""
    for name, field in says.model_fields.items():
        key = f"{within}{field.alias or name}"
        tables = list(dict.fromkeys(_tables(field.annotation)))
        if not tables:
            yield key
        for table in tables:
            yield from keys(table, f"{key}.")


def _tables(annotation: object) -> Iterator[type[Frozen]]:
    if isinstance(annotation, type) and issubclass(annotation, Frozen):
        yield annotation
    for argument in get_args(annotation):
        yield from _tables(argument)


def in_vain(table: ForPeopleFile, files: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Marks of what no file can say, with their places; `files` maps globs to the keys of such files."""
    for number, mark in enumerate(table.mark):
        globs = [glob for glob in files if _match_each_other(glob, mark.files)]
        if not globs:
            yield f"mark.{number}.files", f"there are no files {mark.files}; there are {', '.join(files)}"
            continue
        allowed = {key for glob in globs for key in files[glob]}
        for fact in mark.facts:
            if not any(_fits(key, fact) for key in allowed):
                yield f"mark.{number}.facts", f"no file of {mark.files} says {fact}"


def _fits(key: str, fact: str) -> bool:
    """Whether a mark is of a key, of a name in it, or of a row of the table that it stands in."""
    table, row, _ = fact.partition("[")
    if row:
        return key.rpartition(".")[0] == table
    return fnmatchcase(key, fact) or fact.startswith(f"{key}.")


def marked(table: ForPeopleFile, file: str, key: str) -> bool:
    """Whether a key of a file (or of files, as a glob), or one name in its table, is for people."""
    return any(
        _match_each_other(file, mark.files)
        and any(fact == key or fnmatchcase(key, fact) for fact in mark.facts)
        for mark in table.mark
    )


def _match_each_other(files: str, mark: str) -> bool:
    return fnmatchcase(files, mark) or fnmatchcase(mark, files)
