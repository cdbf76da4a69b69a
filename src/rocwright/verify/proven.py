"""What a request gets that leaves a choice open: the origin of a stack, and its base."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import chain

from rocbase.errors import ExplainedError, InputError
from rocwright.catalog.load import Catalog
from rocwright.plan.resolve.choose import choose
from rocwright.plan.resolve.elsewhere import resolves
from rocwright.plan.resolve.evidence import evidence_rank, shipped_evidence
from rocwright.plan.resolve.model import Request

# Between the name of a stack and its origin.
ORIGIN = ":"


def stacks_named(name: str, catalog: Catalog) -> tuple[str, ...]:
    """Return the stacks that a name stands for, in the order of choice: those of all origins, or of one.

    `vllm:built` names the origin. Raises InputError for an unknown stack or origin.
    """
    family, _, origin = name.partition(ORIGIN)
    origins = catalog.stack(family).origins
    if origin and origin not in origins:
        raise InputError(
            f"{family} does not come from {origin!r}",
            cause=f"it comes from {', '.join(origins)}" if origins else f"{family} has one origin only",
            next_step=f"--from {next(iter(origins))}" if origins else "leave --from out",
        )
    return origins[origin] if origin else tuple(chain(*origins.values())) or (family,)


def serving_request(request: Request, names: Sequence[str], catalog: Catalog, base: str = "") -> Request:
    """Return a request for the first of several stacks that serves its GPUs, on `base` or its best base.

    A base of the request's own stack means that stack. If no stack serves, what refuses it says why.
    """
    if base and base in catalog.stack(request.stack).bases and request.stack in names:
        names = (request.stack,)
    candidates = [request.model_copy(update={"stack": name}) for name in names]
    for candidate in candidates if len(names) > 1 else ():
        place = base or _able_base(candidate, catalog)
        placed = candidate.model_copy(update={"base": place})
        if place and _serves(placed, catalog):
            return placed
    last = next((candidate for candidate in candidates if candidate == request), candidates[0])
    return last.model_copy(update={"base": base or proven_base(last, catalog)})


def _serves(request: Request, catalog: Catalog) -> bool:
    """Whether a stack takes all that a request says of it."""
    if not {*request.extra} <= {*catalog.stack(request.stack).optional}:
        return False
    with suppress(ExplainedError):
        chosen = choose(request, catalog, lambda package: package.version)
        return not request.provider or chosen.provider is not None
    return False


def proven_base(request: Request, catalog: Catalog) -> str:
    """The base on which the rest of a request resolves and of which the shipped evidence says most.

    Where it resolves on none, the first of them all: what refuses it there says why.
    """
    return _able_base(request, catalog) or _bases(request, catalog)[0]


def _able_base(request: Request, catalog: Catalog) -> str:
    bases = _bases(request, catalog)
    able = (base for base in bases if resolves(request.model_copy(update={"base": base}), catalog))
    return next(able, "")


def _bases(request: Request, catalog: Catalog) -> list[str]:
    """The bases of a stack in the order of choice.

    The rows for its GPUs go before the stack's other bases, and bases on which rows go without a library that
    the request wants go last; of equal evidence the first is taken.
    """
    stack, evidence = catalog.stack(request.stack), shipped_evidence(catalog)
    rows = [row for row in stack.row if (row.gpu,) == request.gpu]
    row_bases = [row.base for row in rows if set(row.accept_missing) == set(request.accept_missing)]
    bases = list(dict.fromkeys([*row_bases, *stack.bases]))
    # what was seen there was seen without that library
    without = {row.base for row in rows}.difference(row_bases)
    ranks = {base: (base in without, -evidence_rank(evidence, base, request)) for base in bases}
    return sorted(bases, key=lambda base: (base not in row_bases, ranks[base]))
