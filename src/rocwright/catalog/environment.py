"""The environment that a target wants, where something is built for it or where code runs on it."""

from __future__ import annotations

from rocwright.catalog.load import Catalog, kept_from_builds
from rocwright.catalog.target import Quirk, Scope, Target


def environment(catalog: Catalog, target: Target, scope: Scope) -> tuple[Quirk, ...]:
    """The variables for one target, required ones first; what the target says stands over what all want.

    What may only be set where code runs is never in the environment of a build.
    """
    found = {
        one.variable: one.model_copy(update={"value": one.value.replace("{target}", target.name)})
        for one in (*catalog.every, *target.quirk)
        if one.scope == scope and not (scope == "build" and kept_from_builds(catalog, one.variable))
    }
    order = ("required", "recommended", "optional")
    return tuple(sorted(found.values(), key=lambda one: order.index(one.need)))
