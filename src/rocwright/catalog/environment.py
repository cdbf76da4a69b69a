"""The environment that a target wants, where something is built for it or where code runs on it."""

from __future__ import annotations

from collections.abc import Iterable

from rocbase.errors import ConflictError
from rocwright.catalog.load import Catalog, kept_from_builds
from rocwright.catalog.target import Quirk, Scope, Target
from rocwright.model.edits import TARGETS


def environment(catalog: Catalog, target: Target, scope: Scope, name: str = "") -> tuple[Quirk, ...]:
    """The variables for one target, required ones first; what the target says stands over what all want.

    What may only be set where code runs is never in the environment of a build. `name` is put in for the
    target's own.
    """
    found = {
        one.variable: one.model_copy(update={"value": one.value.replace("{target}", name or target.name)})
        for one in (*catalog.every, *target.quirk)
        if one.scope == scope and not (scope == "build" and kept_from_builds(catalog, one.variable))
    }
    order = ("required", "recommended", "optional")
    return tuple(sorted(found.values(), key=lambda one: order.index(one.need)))


def for_recipe(catalog: Catalog, gpus: Iterable[str], recipe: str) -> dict[str, str]:
    """The variables that the builds of a recipe take for these targets, as it would say them itself.

    A target that the catalog does not know has none. Raises ConflictError where two targets want another
    value each.
    """
    found: dict[str, tuple[str, str]] = {}
    for gpu in gpus:
        target = catalog.targets.get(gpu)
        for one in environment(catalog, target, "build", TARGETS) if target else ():
            if recipe not in one.recipes or one.need == "optional":
                continue
            other, said = found.setdefault(one.variable, (gpu, one.value))
            if said != one.value:
                raise ConflictError(
                    f"{recipe} cannot be built for {other} and {gpu} at once",
                    cause=f"they want {one.variable}={said} and {one.variable}={one.value}: {one.reason}",
                    next_step=f"build for each alone: --gpu {other}, then --gpu {gpu}",
                )
    return {name: value for name, (_, value) in found.items()}
