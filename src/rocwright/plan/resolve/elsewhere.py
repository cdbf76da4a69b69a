"""Where else a request that is refused can be answered: the bases of its stack on which it resolves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice, product

from rocbase.errors import ConflictError, ExplainedError, InputError
from rocwright.catalog.load import Catalog
from rocwright.catalog.provider import KINDS
from rocwright.plan.resolve.choose import ANOTHER_BASE, Choice, choose
from rocwright.plan.resolve.evidence import evidence_rank, shipped_evidence
from rocwright.plan.resolve.model import Request
from rocwright.plan.resolve.validate import check_request

# How many other bases a refusal names.
SHOWN = 3


def check_resolves(request: Request, catalog: Catalog) -> Choice:
    """What a lock of this request would choose, by the catalog alone: nothing is asked outside.

    Raises what `choose` raises, with the bases on which the request resolves as next step.
    """
    with naming_bases(request, catalog):
        check_request(request, catalog)
        return choose(request, catalog, lambda package: package.version)


def resolves(request: Request, catalog: Catalog) -> bool:
    """Whether a lock would be made of this request, by the catalog alone."""
    with suppress(ExplainedError):
        return bool(choose(request, catalog, lambda package: package.version))
    return False


def other_bases(request: Request, catalog: Catalog) -> Iterator[str]:
    """Yield the other bases of the stack on which the rest of a request resolves, as options.

    The bases with the most evidence for these GPUs go first, then the stack's rows for them, then the
    providers that cost a user least."""
    catalog = catalog.general or catalog
    stack = catalog.stack(request.stack)
    providers = sorted(catalog.providers.values(), key=lambda provider: KINDS.index(provider.kind))
    names = ("", *(provider.name for provider in providers))
    pairs = [(row.base, row.provider) for row in stack.row if (row.gpu,) == request.gpu]
    evidence, named = shipped_evidence(catalog), {request.base}
    pairs = sorted(
        (*pairs, *product(stack.bases, names)), key=lambda pair: -evidence_rank(evidence, pair[0], request)
    )
    for base, provider in pairs:
        if base in named:
            continue
        candidate = request.model_copy(update={"base": base, "provider": provider, "accept_missing": ()})
        with suppress(ExplainedError):
            chosen = choose(candidate, catalog, lambda package: package.version).provider
            named.add(base)
            yield f"--base {base}" + (f" --provider {chosen.name}" if chosen else "")


@contextmanager
def naming_bases(request: Request, catalog: Catalog) -> Iterator[None]:
    """A refusal in here names the bases on which the rest of the request resolves, or says that none does."""
    try:
        yield
    except (ConflictError, InputError) as error:
        stack = catalog.stacks.get(request.stack)
        if stack is not None and (isinstance(error, ConflictError) or request.base not in stack.bases):
            options = list(islice(other_bases(request, catalog), SHOWN))
            error.next_step = _next_step(error.next_step, options, request)
        raise


def _next_step(own: str, options: list[str], request: Request) -> str:
    head, another, tail = own.partition(ANOTHER_BASE)
    if options:
        places = ", or ".join(options)
        return f"{head}{ANOTHER_BASE}: {places}{tail}" if another else f"{ANOTHER_BASE}: {places}; or {own}"
    if not another:
        return own
    nowhere = f"choose another stack: {request.stack} has no base that serves {', '.join(request.gpu)}"
    return f"{head}{nowhere} (rocwright stacks){tail}"
