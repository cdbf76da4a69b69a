"""The project file whole: what is asked for, and the settings of what follows upstream."""

from __future__ import annotations

import shlex
from itertools import product
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from rocbase.errors import InputError
from rocbase.model import Frozen
from rocwright.model.architecture import Architecture
from rocwright.plan.resolve.model import Request

# What a request cannot do without.
ASKED = ("stack", "gpu", "base")

# What is worth telling: releases of the same minor version, any that is no pre-release, or all.
Take = Literal["patch", "stable", "all"]


class WatchSettings(Frozen):
    """`[watch]`: what `rocwright watch` and `rocwright bump` take.

    `cool_down` are the days that must have passed since a release (0: none); a release whose day nobody tells
    is not held back, and is told as such. `branches` maps components to the git branch that each follows.
    `seconds` is how long one source may take to answer.
    """

    take: Take = "stable"
    cool_down: int = Field(default=7, ge=0, le=3650, alias="cool-down")
    branches: dict[str, str] = {}
    seconds: float = Field(default=30, gt=0, le=3600)


# What a channel can ask for, each more than the one before it.
Said = Literal[
    "built",
    "checked without a GPU",
    "ran in software",
    "ran on an emulated GPU",
    "ran on a GPU of another maker",
    "ran on a GPU",
]

# One name, or several.
Names = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
]


class MatrixRows(Frozen):
    """`[[matrix]]`: every stack for every GPU on every base, each a row; the rest as in a request."""

    stack: Names = Field(min_length=1)
    gpu: Names = Field(min_length=1)
    base: Names = Field(min_length=1)
    provider: str = ""
    extra: tuple[str, ...] = ()
    versions: dict[str, str] = {}
    accept_missing: tuple[str, ...] = ()
    allow_untested: bool = False
    architecture: Architecture | None = None

    def rows(self, architecture: Architecture) -> tuple[Request, ...]:
        """What is asked for in each row, for an architecture where they name none."""
        common: dict[str, object] = {
            "provider": self.provider,
            "extra": self.extra,
            "versions": self.versions,
        }
        common["accept_missing"] = self.accept_missing
        common["allow_untested"] = self.allow_untested
        common["architecture"] = self.architecture or architecture
        return tuple(
            Request.model_validate({"stack": stack, "gpu": (gpu,), "base": base} | common)
            for stack, gpu, base in product(self.stack, self.gpu, self.base)
        )


class Channel(Frozen):
    """`[[channel]]`: what a lock must have shown before it is promoted to a channel.

    `said` is the least that evidence must say, `days` how long the channel before must have held the lock,
    `checks` names of checks that must have run and been right, `device` a regular expression (RE2) for where.
    `agree` is how many owners, each with a key of its own, must have built the same. `slower` is by how many
    percent it may be slower than the lock that the channel holds, by figures of `rocwright bench`.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    said: Said
    days: float = Field(default=0, ge=0, le=3650)
    checks: tuple[str, ...] = ()
    device: str = ""
    agree: int = Field(default=1, ge=1, le=100)
    slower: float | None = Field(default=None, ge=0, le=100)
    summary: str = ""


class ChannelsFile(Frozen):
    """channels.toml."""

    channel: tuple[Channel, ...] = ()


def _may_be_a_matrix(schema: dict[str, Any]) -> None:
    """Editors take a request, or a matrix, or both."""
    schema.pop("required", None)
    schema["anyOf"] = [{"required": list(ASKED)}, {"required": ["matrix"]}]


class ProjectFile(Request):
    """`rocwright.toml`: a request, and the tables of settings beside it, which no lock depends on.

    A file with a `[[matrix]]` needs no request beside it.
    """

    model_config = ConfigDict(json_schema_extra=_may_be_a_matrix)

    stack: str = ""
    gpu: tuple[str, ...] = ()
    base: str = ""
    watch: WatchSettings = WatchSettings()
    matrix: tuple[MatrixRows, ...] = ()
    channel: tuple[Channel, ...] = ()

    @model_validator(mode="after")
    def _asks_for_something(self) -> Self:
        """A request is there whole, or nothing of one and a matrix."""
        of_a_request = [
            name for name in Request.model_fields if name != "architecture" and getattr(self, name)
        ]
        missing = [name for name in ASKED if not getattr(self, name)]
        if missing and (of_a_request or not self.matrix):
            suffix = f" beside {', '.join(of_a_request)}" if of_a_request else ""
            raise ValueError(f"{', '.join(missing)} must be given{suffix}, or a [[matrix]] instead")
        return self

    @property
    def rows(self) -> tuple[Request, ...]:
        """The rows of the matrix, each once; where there is none, what is asked for itself."""
        rows = [row for matrix in self.matrix for row in matrix.rows(self.architecture)]
        return tuple({row.name: row for row in rows}.values()) or (self.request,)

    @property
    def first(self) -> Request:
        """The request, or the first row of a matrix alone."""
        return self.request if self.stack else self.rows[0]

    @property
    def request(self) -> Request:
        """What a lock answers: of a matrix alone, its only row.

        Raises InputError where it has several: one must be named.
        """
        if not self.stack:
            rows = self.rows
            if len(rows) > 1:
                raise InputError(
                    f"the project file has {len(rows)} rows in its [[matrix]]: one must be named",
                    cause="it has no stack, gpu and base of its own",
                    next_step="rocwright cycle builds all of them; for one, write behind the verb: "
                    f"{shlex.join(rows[0].words)}",
                )
            return rows[0]
        return Request.model_validate({name: getattr(self, name) for name in Request.model_fields})
