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
    quirks = {
        quirk.variable: quirk.model_copy(
            update={"value": quirk.value.replace("{target}", name or target.name)}
        )
        for quirk in (*catalog.every, *target.quirk)
        if quirk.scope == scope and not (scope == "build" and kept_from_builds(catalog, quirk.variable))
    }
    order = ("required", "recommended", "optional")
    return tuple(sorted(quirks.values(), key=lambda quirk: order.index(quirk.need)))


def for_recipe(catalog: Catalog, gpus: Iterable[str], recipe: str) -> dict[str, str]:
    """The variables that the builds of a recipe take for these targets, as it would say them itself.

    A target that the catalog does not know has none. Raises ConflictError where two targets want another
    value each.
    """
    values: dict[str, tuple[str, str]] = {}
    for gpu in gpus:
        target = catalog.targets.get(gpu)
        for quirk in environment(catalog, target, "build", TARGETS) if target else ():
            if recipe not in quirk.recipes or quirk.need == "optional":
                continue
            first_gpu, first_value = values.setdefault(quirk.variable, (gpu, quirk.value))
            if first_value != quirk.value:
                raise ConflictError(
                    f"{recipe} cannot be built for {first_gpu} and {gpu} at once",
                    cause=f"they want {quirk.variable}={first_value} and {quirk.variable}={quirk.value}: "
                    f"{quirk.reason}",
                    next_step=f"build for each alone: --gpu {first_gpu}, then --gpu {gpu}",
                )
    return {name: value for name, (_, value) in values.items()}
