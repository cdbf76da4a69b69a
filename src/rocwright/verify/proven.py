"""Which base a request gets where it names none: the one that most was seen of, for these GPUs."""

from __future__ import annotations

from rocwright.catalog.load import Catalog
from rocwright.plan.resolve.elsewhere import resolves
from rocwright.plan.resolve.evidence import evidence_rank, shipped_evidence
from rocwright.plan.resolve.model import Request


def proven_base(request: Request, catalog: Catalog) -> str:
    """The base on which the rest of a request resolves and of which the shipped evidence says most.

    The rows for its GPUs go before the stack's other bases, and bases on which rows go without a library that
    the request wants go last; of equal evidence the first is taken. Where it resolves on none, the first of
    them all: what refuses it there says why.
    """
    stack, evidence = catalog.stack(request.stack), shipped_evidence(catalog)
    rows = [row for row in stack.row if (row.gpu,) == request.gpu]
    row_bases = [row.base for row in rows if set(row.accept_missing) == set(request.accept_missing)]
    bases = list(dict.fromkeys([*row_bases, *stack.bases]))
    # what was seen there was seen without that library
    without = {row.base for row in rows}.difference(row_bases)
    ranks = {base: (base in without, -evidence_rank(evidence, base, request)) for base in bases}
    best = sorted(bases, key=lambda base: (base not in row_bases, ranks[base]))
    able = (base for base in best if resolves(request.model_copy(update={"base": base}), catalog))
    return next(able, bases[0])
