"""Files that hold machine code or tuning data for certain GPUs, known by their paths."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated

from pydantic import AfterValidator

from rocbase.errors import CheckError
from rocbase.model import Frozen
from rocbase.toml.read import Reader, parse
from rocwheel.tables import data_folders
from rocwheel.wheels.devicecode.gpu import (
    HEADER_SIZE,
    any_machine,
    gpu_header,
    is_gpu_elf,
    machines_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loose:
    """What a file's path or head tells: its kind, its targets, and features fixed for them (sorted).

    `named` is the target or family as the path has it. `needed`: a library that finds no such file for its
    GPU fails, and is not only slower.
    """

    kind: str
    named: str
    targets: frozenset[str]
    features: tuple[str, ...]
    needed: bool


def _check_path(text: str) -> str:
    shape = text
    for word in ("{target}", "{targets}"):
        shape = shape.replace(word, "(?P<target>.)")
    _check_pattern(shape.replace("{features}", "(?P<features>.)"))
    return text


def _check_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from error
    return text


class LooseKind(Frozen):
    """A kind of loose file.

    `code_at` is where in it a code object begins that names the GPU; None where its path does.
    `missing` says what becomes of a GPU that has none. `tuned` is a pattern of the files that are made for
    one GPU and one operation (its group of that name; none: every operation), where there are others that
    serve any GPU slowly; `operations` has words for operations.
    """

    name: str
    what: str
    path: Annotated[str, AfterValidator(_check_path)]
    code_at: int | None = None
    needed: bool
    missing: str
    tuned: Annotated[str, AfterValidator(_check_pattern)] = ""
    operations: dict[str, str] = {}
    source: tuple[str, ...]

    def tuned_for(self, paths: Iterable[str]) -> Iterator[str]:
        """The operations for which there are tuned kernels in `paths`; empty stands for every one."""
        if self.tuned:
            pattern = re.compile(self.tuned)
            yield from (match["operation"] or "" for path in paths if (match := pattern.search(path)))


class LooseFile(Frozen):
    """loose_kernels.toml."""

    kind: tuple[LooseKind, ...]


def loose(path: str, head: bytes = b"") -> Loose | None:
    """What kind of loose file `path` (with /) names, if one; `head` is how it begins, where that is known.

    Raises InputError where the catalog is wrong.
    """
    for kind, pattern in _patterns():
        if match := pattern.search(path):
            if kind.code_at is not None:
                return _of_code(kind, head[kind.code_at :])
            groups = match.groupdict()
            return Loose(
                kind=kind.name,
                named=groups["target"],
                targets=machines_of(groups["target"]),
                features=tuple(sorted(re.findall(r"[a-z]+[+-]", groups.get("features") or ""))),
                needed=kind.needed,
            )
    return None


def _of_code(kind: LooseKind, head: bytes) -> Loose | None:
    """What the code object says that begins so; None where it names no known GPU."""
    if len(head) < HEADER_SIZE or not is_gpu_elf(head):
        return None
    try:
        header = gpu_header(head, kind.name)
    except CheckError:
        return None
    return Loose(
        kind=kind.name,
        named=header.target,
        targets=frozenset((header.target,)),
        features=header.features,
        needed=kind.needed,
    )


def kinds() -> tuple[LooseKind, ...]:
    """Every kind that the catalog knows."""
    return tuple(kind for kind, _ in _patterns())


@cache
def _patterns() -> tuple[tuple[LooseKind, re.Pattern[str]], ...]:
    reader = Reader(data_folders())
    words = {
        "{target}": f"(?P<target>{any_machine()})",
        "{targets}": "(?P<target>gfx[0-9a-fx]+)",
        "{features}": r"(?P<features>(?:[-:][a-z]+[+-])*)",
    }
    patterns = []
    for path in reader.layers("loose_kernels.toml"):
        for kind in parse(LooseFile, reader.data(path), path).kind:
            text = kind.path
            for word, meaning in words.items():
                text = text.replace(word, meaning)
            patterns.append((kind, re.compile(text)))
    return tuple(patterns)
