"""What a recipe sees of its lock: versions beside it, and its environment with its places filled in."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rocbase.errors import InputError
from rocwright.catalog.model import Component, Env
from rocwright.model.step_environment import FIXED
from rocwright.plan.remedies import actions_for, remedied_environment
from rocwright.plan.resolve.aliases import ROCM
from rocwright.plan.resolve.model import Lock, LockedComponent


def versions_of(lock: Lock) -> dict[str, str]:
    """The version of every component of a lock, built or provided."""
    return lock.provided | {component.name: component.version for component in lock.components}


def environment_of(
    component: Component,
    locked: LockedComponent,
    lock: Lock,
    around: Mapping[str, str] = MappingProxyType({}),
    have: frozenset[str] | None = None,
    targets: str | None = None,
) -> dict[str, str]:
    """The recipe's variables for this lock, those whose condition holds, over `around` (the base's, and what
    the GPUs want of this recipe), as remedies changed them. `have` is `present(lock)`, for who asks for every
    component of it.

    {version}, {commit}, {targets} and {path}, where programs are looked for otherwise, may stand in a value.
    `targets` is put in for the GPUs asked for.
    """
    gpus = ";".join(lock.request.gpu) if targets is None else targets
    placeholders = {"version": locked.version, "targets": gpus, "commit": locked.commit}
    placeholders["path"] = FIXED["PATH"]
    recipe = dict(around) | component.env | component.released(locked.version).env
    variables = {
        name: expand(value, placeholders, f"{component.name}: {name}")
        for name, value in chosen_values(recipe, present(lock) if have is None else have).items()
    }
    return remedied_environment(variables, actions_for(lock, component.name))


def present(lock: Lock) -> frozenset[str]:
    """The components that a lock has, whether built or provided."""
    rocm = {ROCM} if lock.rocm else set()
    return frozenset({component.name for component in lock.components} | set(lock.provided) | rocm)


def chosen_values(env: Env, have: frozenset[str]) -> dict[str, str]:
    """The variables whose condition holds where the components `have` are there."""
    chosen: dict[str, str] = {}
    for name, variable in env.items():
        if isinstance(variable, str):
            chosen[name] = variable
        elif not variable.when or (variable.when.removeprefix("!") in have) != variable.when.startswith("!"):
            chosen[name] = variable.value
        elif variable.otherwise is not None:
            chosen[name] = variable.otherwise
    return chosen


def expand(text: str, values: dict[str, str], subject: str) -> str:
    """`{version}` and `{targets}` in a recipe's environment. Raises InputError for any other name."""
    if "{" not in text and "}" not in text:
        return text
    try:
        return text.format_map(values)
    except (KeyError, ValueError, IndexError, AttributeError) as error:
        raise InputError(
            f"{subject} = {text!r} cannot be filled in",
            cause=f"{error} is not one of {', '.join(values)}",
            next_step="correct the recipe",
        ) from error
