"""TOML files as models; catalogs lie one over another, and what is wrong is named by file and place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import tomli
from pydantic import ValidationError

from rocbase.errors import InputError
from rocbase.model import Frozen
from rocbase.toml.folders import holder as holder
from rocbase.toml.folders import layers
from rocbase.toml.folders import read_table as read_table
from rocbase.toml.folders import read_toml as read_toml

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Model = TypeVar("Model", bound=Frozen)


@dataclass(frozen=True, slots=True, order=True)
class TableFault:
    """Something wrong in a catalog: the file, the place in it, and what."""

    file: Path
    place: str
    what: str

    @property
    def line(self) -> int:
        """The line of the file, from 1 on; 0 where it is about the whole file."""
        return line_in(self.file, _parts(self.place))

    def __str__(self) -> str:
        location = f"{self.file}:{line}" if (line := self.line) else str(self.file)
        return f"{location}: {f'{self.place}: ' if self.place else ''}{self.what}"


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads files of `folders`, the topmost first.

    Without `faults` the first thing wrong is raised as InputError; with it everything wrong is added there,
    and the rest is read.
    """

    folders: Sequence[Path]
    faults: list[TableFault] | None = None
    where: dict[tuple[type[Frozen], str], tuple[Path, str]] = field(default_factory=dict)
    """Where each thing that has a name was read: its file, and the place in it."""
    texts: dict[Path, dict[str, object]] = field(default_factory=dict)

    def files(self, kind: str) -> list[Path]:
        """The TOML files of a folder such as `stacks`, the lowest first; of one name, the topmost."""
        layers = [sorted((folder / kind).glob("*.toml")) for folder in reversed(self.folders)]
        top = {path.name: path for layer in layers for path in layer}
        return [path for layer in layers for path in layer if top[path.name] is path]

    def layers(self, name: str) -> list[Path]:
        """Every file of that name, the lowest first. There must be one."""
        return layers(name, self.folders)

    def data(self, path: Path) -> dict[str, object]:
        """A file as data; nothing where it is at fault."""
        if path in self.texts:
            return self.texts[path]
        try:
            self.texts[path] = read_table(path)
        except InputError as error:
            problem = error.message.removeprefix(f"{path} ")
            self.fault(path, "", f"{problem}: {error.cause}" if error.cause else problem, error)
            self.texts[path] = {}
        return self.texts[path]

    def rows(self, path: Path, data: Mapping[str, object], name: str) -> list[dict[str, object]]:
        """The tables [[name]] of a file."""
        rows = data.get(name, [])
        if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
            return rows
        error = InputError(
            f"{path}: `{name}` is not a list of tables",
            cause=f"it is written as [{name}] or as a plain value",
            next_step=f"write each as [[{name}]]",
        )
        self.fault(path, name, "is not a list of tables", error)
        return []

    def model(self, model: type[Model], data: object, path: Path, place: str = "") -> Model | None:
        """`data` as a model; None where it is at fault."""
        try:
            return model.model_validate(data)
        except ValidationError as error:
            if self.faults is None:
                raise refused(model, error, path) from error
            for location, problem in places(error):
                self.fault(path, f"{place}{f'.{location}' if place and location else location}", problem)
            return None

    def fault(self, path: Path, place: str, problem: str, error: InputError | None = None) -> None:
        """Note a fault, or raise it."""
        if self.faults is None:
            raise error or InputError(
                f"{path} has an error",
                cause=_fault_text(path, _parts(place), problem),
                next_step="correct the entry that is named",
            )
        self.faults.append(TableFault(path, place, problem))

    def named(self, model: type[Model], entries: Iterable[tuple[Path, str, object]]) -> dict[str, Model]:
        """Models by name, of (file, place, data); a folder's own stand in place of those of folders below."""
        models: dict[str, Model] = {}
        for path, place, data in entries:
            parsed = self.model(model, data, path, place)
            if parsed is None:
                continue
            name = str(getattr(parsed, "name", ""))
            previous, _ = self.where.get((model, name), (None, ""))
            if previous is not None and self._layer(previous) == self._layer(path):
                self.fault(path, place, f"the name {name} is taken already, in {previous}")
            self.where[model, name] = path, place
            models[name] = parsed
        return models

    def _layer(self, path: Path) -> Path | None:
        return next((folder for folder in self.folders if path.is_relative_to(folder)), None)


CORRECT = "correct the entries that are named"


def parse(model: type[Model], data: object, path: Path, next_step: str = CORRECT) -> Model:
    """Return `data` as a model. Raises InputError that names every place that is wrong, with `next_step`."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise refused(model, error, path, next_step) from error


def refused(model: type[Frozen], error: ValidationError, path: Path, next_step: str = CORRECT) -> InputError:
    """What pydantic found, as an error that a user can act on."""
    names = [field.alias or name for name, field in model.model_fields.items()]
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", model.__name__).lower()
    return InputError(
        f"{path} is not a valid {name}",
        cause="; ".join(
            # what stands below another entry is not the model's own
            _fault_text(
                path,
                place,
                _entry_problem(detail, names if len(place) == 1 else ()),
            )
            for detail in error.errors()[:8]
            for place in (detail["loc"],)
        ),
        next_step=next_step,
    )


_KINDS = {"tuple": "a list, in [brackets]", "list": "a list, in [brackets]", "dict": "a table"}
_KINDS |= {"string": 'text, in "quotes"', "bool": "true or false", "int": "a whole number"}


def _entry_problem(detail: ErrorDetails, names: Iterable[str] = ()) -> str:
    """Return what is wrong with an entry, in words of TOML; `names` are its like."""
    kind, name = detail["type"], str(detail["loc"][-1]) if detail["loc"] else ""
    if kind == "missing":
        return "it is missing"
    expected = _KINDS.get(kind.rpartition("_")[0])
    if expected and kind == "string_type" and isinstance(detail["input"], dict):
        dotted = ".".join((name, *detail["input"]))
        return f'it must be {expected}; put a name with a dot in quotes too: "{dotted}" = ...'
    if expected and isinstance(detail["input"], str) and "list" in expected:
        return f'it must be {expected}: ["{detail["input"]}"]'
    if kind != "extra_forbidden":
        return f"it must be {expected}" if expected else detail["msg"]
    near = get_close_matches(name, [*names])
    return f"there is no such entry{f', did you mean {near[0]}?' if near else ''}"


def _fault_text(path: Path, place: Sequence[str | int], problem: str) -> str:
    """What is wrong at a place of a file, with its line."""
    line = line_in(path, place)
    location = ".".join(str(part) for part in place)
    # what a model's own check says is a sentence already
    problem = problem.removeprefix("Value error, ")
    return f"{f'line {line}: ' if line else ''}{location or 'the file'}: {problem}"


def _parts(place: str) -> tuple[str, ...]:
    """The parts of a place such as `issue.3 (name).patterns.0`; what stands in brackets is for people."""
    return tuple(re.sub(r" \([^)]*\)", "", place).split(".")) if place else ()


def places(error: ValidationError) -> list[tuple[str, str]]:
    """Each place that pydantic found wrong, and what is wrong there."""
    return [
        (
            ".".join(str(part) for part in detail["loc"]),
            _entry_problem(detail),
        )
        for detail in error.errors()
    ]


MOST_CHARACTERS = 4_000_000
"""What is parsed for one line, a second or so; a fault in a file that needs more is told without its line."""


def line_in(path: Path, place: Sequence[str | int]) -> int:
    """The line, from 1 on, of the statement in a file that gives what `place` leads to: names of keys, and
    numbers in lists from 0 on.

    Where that is not there, the line of the nearest thing around it; 0 where nothing of it is, or the file is
    no TOML.
    """
    try:
        return line_of(path.read_text(encoding="utf-8"), place)
    except (OSError, ValueError):
        return 0


def line_of(text: str, place: Sequence[str | int]) -> int:
    """As `line_in`, for the text of a file."""
    lines = _Lines(text)
    parsed = lines.upto(len(lines.lines))
    depth = _depth(parsed, place)
    return lines.first(place[:depth]) if depth else 0


class _Lines:
    """The first lines of a text, as data where they are whole."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines(keepends=True)
        self._left = MOST_CHARACTERS

    def upto(self, count: int) -> dict[str, object] | None:
        """What the first lines say; None where they end amid a value, or enough was parsed."""
        text = "".join(self.lines[:count])
        self._left -= len(text)
        try:
            return tomli.loads(text) if self._left >= 0 else None
        except (ValueError, RecursionError):
            return None

    def first(self, place: Sequence[str | int]) -> int:
        """The line where the statement begins that gives `place`: what stands before is whole without it."""
        low, high = 0, len(self.lines)
        while high - low > 1 and self._left > 0:
            middle = (low + high) // 2
            # a value over several lines is whole only at its end
            for count in (*range(middle, low, -1), *range(middle + 1, high)):
                parsed = self.upto(count)
                if parsed is not None or self._left <= 0:
                    break
            else:
                break
            if _depth(parsed, place) == len(place):
                high = count
            else:
                low = count
        return low + 1 if self._left > 0 else 0


def _depth(node: object, place: Sequence[str | int]) -> int:
    """How many parts of a place lead to something in the data."""
    for depth, part in enumerate(place):
        if isinstance(node, dict) and str(part) in node:
            node = node[str(part)]
        elif isinstance(node, list | dict) and str(part).isdecimal() and int(part) < len(node):
            # rows may be tables by a name
            node = [*(node.values() if isinstance(node, dict) else node)][int(part)]
        else:
            return depth
    return len(place)
