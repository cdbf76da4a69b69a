"""Libraries of a ROCm that have no code for a GPU asked for: built here, accepted, or a reason to refuse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rocbase.errors import ConflictError, InputError
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Component, Stack
from rocwright.catalog.provider import Provider, Serves
from rocwright.plan.resolve.model import Request

# How a user says that a library may be left without code.
ACCEPT = "--accept-missing"

# A library -> a GPU that it has no code for, and what says so.
Lacking = Mapping[str, tuple[str, Serves]]


def lacking(
    request: Request,
    provider: Provider | None,
    rocm: str,
    components: Iterable[Component],
    versions: Mapping[str, str],
) -> Lacking:
    """The libraries of a provider's ROCm that these components use and that lack code for a GPU asked for."""
    if provider is None or not rocm:
        return {}
    used = {name for component in components for name in component.system_of(versions[component.name]).rocm}
    reasons = provider.without_code(request.gpu, rocm, request.base, request.architecture)
    return {library: reason for library, reason in reasons.items() if library in used}


def to_build(lacks: Lacking, request: Request, stack: Stack, catalog: Catalog) -> tuple[str, ...]:
    """Those that are built here: components of the stack, optional ones too. The others must be accepted.

    Raises ConflictError where one is neither, InputError where one was accepted that does not lack any.
    """
    for name in request.accept_missing:
        if name not in lacks:
            raise InputError(
                f"{ACCEPT} {name} has no effect here",
                cause=f"what {stack.name} uses of ROCm on {request.base} has code for "
                f"{', '.join(request.gpu)}" + (f", but for {', '.join(lacks)}" if lacks else ""),
                next_step=f"leave {ACCEPT} {name} out",
            )
    remaining = [name for name in lacks if name not in request.accept_missing]
    buildable = {*stack.components, *stack.optional}
    refused = {name: lacks[name] for name in remaining if name not in buildable}
    if refused:
        targets = dict.fromkeys(target for target, _ in refused.values())
        sources = dict.fromkeys(fact.source for _, fact in refused.values())
        verb = "has" if len(refused) == 1 else "have"
        raise ConflictError(
            f"{' and '.join(refused)} of ROCm on {request.base} {verb} no code for {' and '.join(targets)}",
            cause=f"{'; '.join(sources)}; what calls it on the card ends in an error",
            next_step=f"go without: {' '.join(f'{ACCEPT} {name}' for name in refused)}",
        )
    return tuple(remaining)


def library_lines(lacks: Lacking, request: Request, built: Sequence[str]) -> Iterator[str]:
    """A line for each library: that it is built along, or that the user goes without."""
    for name, (target, fact) in lacks.items():
        if name in built:
            yield f"{name} is built too: the one of {request.base} has no code for {target} ({fact.source})"
        elif name in request.accept_missing:
            yield f"{name} has no code for {target}, as accepted: what calls it on the card ends in an error"
