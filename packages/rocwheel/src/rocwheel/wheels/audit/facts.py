"""What the catalog knows of machine code: features and limits of processors, and what they mean for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from rocbase.model import Frozen
from rocbase.toml.read import Reader, parse
from rocwheel.tables import data_folders

TABLE, PROCESSORS = "machine_code.toml", "isas.toml"


def _check_pattern(text: str) -> str:
    try:
        re.compile(text.encode())
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from error
    return text


Pattern = Annotated[str, AfterValidator(_check_pattern)]
NonEmpty = Annotated[str, Field(min_length=1)]


class Rule(Frozen):
    """Instructions: the beginnings of their names, and what their text holds. Without both, any code."""

    code: tuple[Pattern, ...] = ()
    operands: Pattern = ""
    what: NonEmpty


class Ask(Rule):
    """Instructions that ask the card itself for something; `name` is what, in a word or two."""

    name: NonEmpty


class Feature(Rule):
    """A feature of a processor that the disassembler does not show; the kinds are told in the table."""

    name: NonEmpty
    kind: Literal["hazard", "relied", "differs"]


class Flow(Frozen):
    """Instructions after which another than the next may come: branches to a place in the code, others."""

    branches: Pattern
    leaves: tuple[Pattern, ...]


class Llvm(Frozen):
    """Where LLVM's tools lie, which of its features only change the spelling, and what to install."""

    folders: tuple[str, ...]
    spelling: tuple[str, ...]
    packages: str


class Other(Frozen):
    """Features that need no rule: told elsewhere, or only about speed."""

    told: tuple[str, ...]
    speed: tuple[str, ...]


class MachineCodeTable(Frozen):
    """machine_code.toml."""

    llvm: Llvm
    flow: Flow
    asks: tuple[Ask, ...]
    hazard: tuple[Feature, ...]
    relied: tuple[Feature, ...]
    differs: tuple[Feature, ...]
    other: Other
    source: Annotated[tuple[NonEmpty, ...], Field(min_length=1)]

    @property
    def feature(self) -> tuple[Feature, ...]:
        """The features of every kind."""
        return (*self.hazard, *self.relied, *self.differs)


class Registers(Frozen):
    """Vector registers for waves of one size: `vgprs` in a unit, given out by the `granule`, `most` a wave.

    `told` is how many one step of a kernel descriptor's number stands for.
    """

    vgprs: int
    granule: Annotated[int, Field(gt=0)]
    told: int
    most: int


class Isa(Frozen):
    """Processors that machine code cannot tell apart, with their features and limits (see isas.toml)."""

    names: tuple[str, ...]
    features: frozenset[str]
    lds: int
    simds: Annotated[int, Field(gt=0)]
    cu_simds: Annotated[int, Field(gt=0)]
    waves: int
    sgprs: int
    scratch: int
    wave32: Registers | None = None
    wave64: Registers | None = None

    def registers(self, wave: int) -> Registers | None:
        """Those of waves of this size; None where the processor has no such waves."""
        return {32: self.wave32, 64: self.wave64}.get(wave)


class Processors(Frozen):
    """isas.toml."""

    isa: tuple[Isa, ...]
    source: Annotated[tuple[NonEmpty, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Concern:
    """Why code for one processor may not be valid on another that decodes it alike, where `rule` applies."""

    name: str
    text: str
    rule: Rule

    @property
    def always(self) -> bool:
        return not self.rule.code


@cache
def table() -> MachineCodeTable:
    """The rules, of the topmost catalog that has them. Raises InputError where they are not sound."""
    reader = Reader(data_folders())
    path = reader.layers(TABLE)[-1]
    return parse(MachineCodeTable, reader.data(path), path)


@cache
def isas() -> dict[str, Isa]:
    """Every processor by its name, and by those of the user's own catalog. Raises InputError."""
    reader = Reader(data_folders())
    by_name: dict[str, Isa] = {}
    for path in reader.layers(PROCESSORS):
        for isa in parse(Processors, reader.data(path), path).isa:
            by_name |= dict.fromkeys(isa.names, isa)
    return by_name


def concerns(code: str, device: str) -> list[Concern]:
    """What to look for in code for the processor `code` that is to run on the processor `device`."""
    return [*_of_features(code, device, isas()[code].features, isas()[device].features), *_asks()]


def _of_features(
    code: str, device: str, code_has: frozenset[str], device_has: frozenset[str]
) -> Iterator[Concern]:
    for feature in table().feature:
        in_code, in_device = feature.name in code_has, feature.name in device_has
        match feature.kind:
            case "hazard" if in_device and not in_code:
                text = f"{device} needs a workaround that code for {code} may lack: {feature.what}"
            case "relied" if in_code and not in_device:
                text = f"code for {code} may rely on what {device} lacks: {feature.what}"
            case "differs" if in_code != in_device:
                text = f"{code} and {device} differ here: {feature.what}"
            case _:
                continue
        yield Concern(name=feature.name, text=f"{text} ({feature.name})", rule=feature)


def _asks() -> Iterator[Concern]:
    for rule in table().asks:
        yield Concern(name=rule.name, text=f"its effect depends on the card: {rule.what}", rule=rule)
