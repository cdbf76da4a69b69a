"""A card that a ROCm's runtime refuses is served if the stack builds a runtime that opens it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rocbase.errors import ConflictError
from rocwright.catalog.load import builtin_catalog
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.elsewhere import check_resolves, resolves
from rocwright.plan.resolve.lock import make_lock
from rocwright.plan.resolve.model import Request
from rocwright.plan.resolve.shipped import request_of, rows, shipped_lock
from rocwright.plan.resolve.upstream import OfflineUpstream

CATALOG = builtin_catalog()
REFUSED = Request(stack="pytorch", gpu=("gfx803",), base="debian:experimental")
OPENED = REFUSED.model_copy(update={"extra": ("rocr",)})


def test_without_a_runtime_that_opens_the_card_the_option_is_named() -> None:
    with pytest.raises(ConflictError, match="no ROCm for gfx803") as caught:
        check_resolves(REFUSED, CATALOG)
    assert "does not open gfx803" in caught.value.cause
    assert caught.value.next_step.startswith("--with rocr, or choose another base: --base ")


def test_a_stack_that_has_no_such_runtime_does_not_name_one() -> None:
    with pytest.raises(ConflictError) as caught:
        check_resolves(REFUSED.model_copy(update={"stack": "llama-hip"}), CATALOG)
    assert "--with" not in caught.value.next_step


def test_with_it_the_card_is_served_and_torch_takes_it_in() -> None:
    assert check_resolves(OPENED, CATALOG).versions["rocm"].startswith("7.")
    plan = make_plan(make_lock(OPENED, CATALOG, OfflineUpstream(), lambda _: None), CATALOG)
    [torch] = [step for step in plan.steps if step.name == "pytorch"]
    assert "rocr" in {step.name for step in torch.inputs}


def test_a_stack_that_has_it_among_its_components_needs_no_option() -> None:
    stack = CATALOG.stack("pytorch")
    own = stack.model_copy(update={"components": ("rocr", *stack.components)})
    assert resolves(REFUSED, replace(CATALOG, stacks={**CATALOG.stacks, "pytorch": own}))


def test_what_a_component_opens_decides() -> None:
    closed = CATALOG.component("rocr").model_copy(update={"opens": ("gfx900",)})
    assert resolves(OPENED, CATALOG)
    assert not resolves(OPENED, replace(CATALOG, components={**CATALOG.components, "rocr": closed}))


def test_a_lock_of_a_row_with_it_is_given_only_to_who_asks_for_it() -> None:
    [row] = [row for stack, row in rows(CATALOG) if stack.name == "pytorch" and row.extra]
    request = request_of(CATALOG.stack("pytorch"), row)
    assert request.extra == ("rocr",)
    assert shipped_lock(CATALOG, request) is not None
    assert shipped_lock(CATALOG, request.model_copy(update={"extra": ()})) is None
