"""Libraries of a ROCm that have no code for a GPU asked for: built here, accepted, or a reason to refuse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from rocwheel.errors import ConflictError, InputError
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Component, Stack
from rocwright.catalog.provider import KINDS, Provider, Serves
from rocwright.resolve.aliases import ROCM
from rocwright.resolve.model import Request

ACCEPT = "--accept-missing"
"""How a user says that a library may be left without code."""

SHOWN = 3
"""How many other places a refusal names."""

Lacking = Mapping[str, tuple[str, Serves]]
"""A library -> a GPU that it has no code for, and what says so."""


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
    used = {name for one in components for name in one.system_of(versions[one.name]).rocm}
    found = provider.without_code(request.gpu, rocm, request.base, request.architecture)
    return {library: reason for library, reason in found.items() if library in used}


def to_build(lacks: Lacking, request: Request, stack: Stack, catalog: Catalog) -> tuple[str, ...]:
    """Those that are built along: optional components of the stack. The others must be accepted.

    Raises ConflictError where one is neither, naming where it has code; InputError where one was accepted
    that does not lack any.
    """
    for name in request.accept_missing:
        if name not in lacks:
            raise InputError(
                f"{ACCEPT} {name} has no effect here",
                cause=f"what {stack.name} uses of ROCm on {request.base} has code for "
                f"{', '.join(request.gpu)}" + (f", but for {', '.join(lacks)}" if lacks else ""),
                next_step=f"leave {ACCEPT} {name} out",
            )
    left = [name for name in lacks if name not in request.accept_missing]
    for name in left:
        if name not in stack.optional:
            target, fact = lacks[name]
            elsewhere = list(islice(whole(name, request, stack, catalog), SHOWN))
            raise ConflictError(
                f"{name} of ROCm on {request.base} has no code for {target}",
                cause=f"{fact.source}; what calls it on the card ends in an error",
                next_step=(f"take one that has it: {', or '.join(elsewhere)}; or " if elsewhere else "")
                + f"go without: {ACCEPT} {name}",
            )
    return tuple(left)


def whole(library: str, request: Request, stack: Stack, catalog: Catalog) -> Iterator[str]:
    """The other bases of a stack whose ROCm has code for all GPUs asked for in a library, as options; of each
    base the provider that costs a user least."""
    for base in stack.bases:
        here = catalog.base(base)
        packaged = here[0].provided(here[1]).get(ROCM)
        for provider in sorted(catalog.providers.values(), key=lambda one: KINDS.index(one.kind)):
            versions = provider.versions
            if provider.kind == "packages":
                versions = (packaged.version,) if packaged is not None else ()
            facts = [_facts(provider, version, base, request) for version in versions]
            if base != request.base and any(fact and _has(library, fact) for fact in facts):
                yield f"--base {base} --provider {provider.name}"
                break


def _facts(provider: Provider, version: str, base: str, request: Request) -> list[Serves]:
    """What says that a version serves each GPU asked for, or nothing where one is not served."""
    found = [provider.evidence(gpu, version, base, request.architecture) for gpu in request.gpu]
    return [one for one in found if one is not None] if all(found) else []


def _has(library: str, facts: Sequence[Serves]) -> bool:
    return all(library not in one.rebuilt for one in facts)


def told(lacks: Lacking, request: Request, built: Sequence[str]) -> Iterator[str]:
    """A line for each library: that it is built along, or that the user goes without."""
    for name, (target, fact) in lacks.items():
        if name in built:
            yield f"{name} is built too: the one of {request.base} has no code for {target} ({fact.source})"
        elif name in request.accept_missing:
            yield f"{name} has no code for {target}, as accepted: what calls it on the card ends in an error"
