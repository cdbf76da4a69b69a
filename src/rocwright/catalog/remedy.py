"""What a machine can do about a known failure: typed actions, as data."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rocbase.model import Frozen
from rocwright.model.edits import Edit, Range

Text = Annotated[str, Field(pattern=r"\S")]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]*$")]
Program = Annotated[str, Field(pattern=r"^[a-z][a-z0-9+_.-]*$")]
Flag = Annotated[str, Field(pattern=r"^-[A-Za-z][A-Za-z0-9+=_.,:/{}-]*$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class SetVariables(Frozen):
    """Set variables where the failed thing is built, or where it runs.

    With `join`, a variable that is set already keeps what it holds, and the value follows behind that word.
    """

    kind: Literal["set"]
    variables: Annotated[dict[Variable, str], Field(min_length=1)]
    join: str = ""
    scope: Literal["build", "run"] = "build"


class UnsetVariables(Frozen):
    """Take variables out of where the failed thing is built, or where it runs."""

    kind: Literal["unset"]
    variables: Annotated[tuple[Variable, ...], Field(min_length=1)]
    scope: Literal["build", "run"] = "build"


class CompilerFlags(Frozen):
    """Give flags to compilers, behind all others: by a program of the same name before each in the path, for
    builds that take in no variable, or that say something else behind it."""

    kind: Literal["flags"]
    programs: Annotated[tuple[Program, ...], Field(min_length=1)]
    flags: Annotated[tuple[Flag, ...], Field(min_length=1)]


class TakeEdit(Frozen):
    """Change the source tree of a component."""

    kind: Literal["edit"]
    component: Name
    edit: Edit


class BoundJobs(Frozen):
    """Run with fewer jobs: this part of those that ran."""

    kind: Literal["jobs"]
    share: Annotated[float, Field(gt=0, lt=1)]


class PickVersion(Frozen):
    """Take another version of a component, or of a tool of the build."""

    kind: Literal["version"]
    component: Name
    versions: Annotated[Range, Field(min_length=1)]


class AddPackages(Frozen):
    """Install system packages, by the catalog's names, for the build."""

    kind: Literal["packages"]
    names: Annotated[tuple[Text, ...], Field(min_length=1)]


# What a machine can do about a failure.
RemedyAction = Annotated[
    SetVariables | UnsetVariables | CompilerFlags | TakeEdit | BoundJobs | PickVersion | AddPackages,
    Field(discriminator="kind"),
]


def texts_of(action: RemedyAction) -> tuple[str, ...]:
    """The texts of an action into which `{name}` puts what a family's line names."""
    match action:
        case SetVariables():
            return tuple(action.variables.values())
        case CompilerFlags():
            return action.flags
        case _:
            return ()
