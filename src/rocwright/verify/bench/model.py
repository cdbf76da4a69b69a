"""What is measured: bench.toml, as data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Literal

import re2
from pydantic import AfterValidator, Field, model_validator

from rocbase.model import Frozen
from rocbase.toml.read import Reader, parse
from rocwright.catalog.folders import catalog_folders
from rocwright.catalog.model import Check
from rocwright.records.model import Better

BENCH = "bench.toml"

# The line by which a program of the catalog says where it ran.
DEVICE = r"^device: (.+)$"

# The line by which it says why there is nothing to measure.
ABSENT = r"^absent: (.+)$"

# Letters of a line that are looked at: what was built may print any.
LONGEST = 4000


def _pattern(text: str) -> str:
    try:
        groups = re2.compile(text).groups
    except re2.error as error:
        raise ValueError(f"not a pattern of RE2: {error}") from error
    if groups != 1:
        raise ValueError(f"{groups} groups; the one group is the number")
    return text


class FigureKind(Frozen):
    """One figure: its unit, whether higher or lower is better, and the pattern (RE2) that finds its number.

    The number is its one group; each line of the output that has it is one run.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9 ,.-]*$")]
    unit: Annotated[str, Field(min_length=1)]
    better: Better
    pattern: Annotated[str, AfterValidator(_pattern)]


class Measurement(Check):
    """`[[measurement]]`: a program of the catalog that runs what was built, and the figures that it prints.

    The program, its slots and where it runs are those of a check of the kind "script"; `{runs}` is how often
    it measures, each time in a process of its own. It runs on the first of `components` that a stack builds.
    """

    kind: Literal["script"] = "script"
    components: Annotated[tuple[str, ...], Field(min_length=1)]
    figure: Annotated[tuple[FigureKind, ...], Field(min_length=1)]
    source: str = ""

    @model_validator(mode="after")
    def _names(self) -> Measurement:
        names = [figure.name for figure in self.figure]
        if len({*names}) != len(names):
            raise ValueError("two figures have one name")
        return self


class BenchFile(Frozen):
    """bench.toml."""

    measurement: tuple[Measurement, ...] = ()


def measurements() -> tuple[Measurement, ...]:
    """The catalog's measurements in order; an overlay's stand in for those of their name."""
    reader = Reader(catalog_folders())
    tables = [parse(BenchFile, reader.data(path), path) for path in reader.layers(BENCH)]
    return tuple(
        {measurement.name: measurement for table in tables for measurement in table.measurement}.values()
    )


def read_figures(kinds: Iterable[FigureKind], lines: Iterable[str]) -> dict[str, list[float]]:
    """The values of each figure in a program's output. What is no number, or is not above 0, is not there."""
    kinds = tuple(kinds)
    values: dict[str, list[float]] = {kind.name: [] for kind in kinds}
    searches = [(kind.name, re2.compile(kind.pattern)) for kind in kinds]
    for line in lines:
        for name, search in searches:
            match = search.search(line[:LONGEST])
            value = _number(match[1]) if match else None
            if value is not None:
                values[name].append(value)
    return values


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) and value > 0 else None
