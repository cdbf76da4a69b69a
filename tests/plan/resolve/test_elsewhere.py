"""Where else a request that is refused can be answered: bases on which it really resolves."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from rocbase.errors import ConflictError, ExplainedError, InputError
from rocwright.catalog.load import builtin_catalog
from rocwright.plan.resolve.aliases import catalog_for
from rocwright.plan.resolve.elsewhere import check_resolves, other_bases, resolves
from rocwright.plan.resolve.lock import make_lock
from rocwright.plan.resolve.model import Request
from rocwright.plan.resolve.upstream import OfflineUpstream

CATALOG = builtin_catalog()
CARDS = ("gfx803", "gfx1103", "gfx1151")
EVERY = [
    Request(stack=stack.name, gpu=(gpu,), base=base)
    for stack in CATALOG.stacks.values()
    for gpu in CARDS
    for base in stack.bases
]


@cache
def _locks(request: str) -> bool:
    try:
        make_lock(Request.model_validate_json(request), CATALOG, OfflineUpstream(), lambda _: None)
    except ExplainedError:
        return False
    return True


def locks(request: Request) -> bool:
    """Whether `lock` takes a request."""
    return _locks(request.model_dump_json(exclude_none=True))


def test_each_base_that_a_refusal_names_is_one_that_lock_takes() -> None:
    refused = [one for one in EVERY if not locks(one)]
    assert len(refused) > 5
    for request in refused:
        with pytest.raises(ExplainedError) as caught:
            check_resolves(request, CATALOG)
        named = re.findall(r"--base (\S+?)(?: --provider (\S+?))?(?:,|;|$)", caught.value.next_step)
        for base, provider in named:
            assert locks(request.model_copy(update={"base": base, "provider": provider})), request
        able = [
            one
            for one in CATALOG.stack(request.stack).bases
            if locks(request.model_copy(update={"base": one}))
        ]
        assert bool(named) >= bool(able), request


def test_no_base_resolves_that_lock_refuses() -> None:
    assert [resolves(one, CATALOG) for one in EVERY] == [locks(one) for one in EVERY]


def test_where_nobody_has_rocm_for_a_card_the_bases_are_named() -> None:
    request = Request(stack="pytorch", gpu=("gfx803",), base="ubuntu:24.04")
    with pytest.raises(ConflictError, match="no provider of ROCm serves gfx803 on ubuntu") as caught:
        make_lock(request, CATALOG, OfflineUpstream(), lambda _: None)
    assert caught.value.next_step.startswith("choose another base: --base debian:sid --provider distribution")


def test_where_no_base_of_a_stack_serves_a_card_that_is_said() -> None:
    with pytest.raises(ConflictError) as caught:
        check_resolves(Request(stack="vllm", gpu=("gfx803",), base="fedora:43"), CATALOG)
    assert caught.value.next_step.startswith("choose another stack: vllm has no base that serves gfx803")


def test_a_base_that_the_stack_has_not_is_refused_with_those_that_work_for_the_card() -> None:
    with pytest.raises(InputError, match="has no recipe on debian:sid") as caught:
        check_resolves(Request(stack="vllm", gpu=("gfx1151",), base="debian:sid"), CATALOG)
    assert "--base fedora:43 --provider distribution" in caught.value.next_step


def test_bases_with_the_most_evidence_for_the_gpu_are_named_first() -> None:
    request = Request(stack="pytorch", gpu=("gfx1151",), base="debian:bookworm")
    assert [*islice(other_bases(request, CATALOG), 2)] == [
        "--base debian:experimental --provider distribution",
        "--base ubuntu:24.04 --provider therock-wheels",
    ]


def test_without_evidence_bases_with_a_row_for_the_gpu_are_named_first(tmp_path: Path) -> None:
    request = Request(stack="pytorch", gpu=("gfx906",), base="debian:bookworm")
    catalog = replace(CATALOG, folders=(tmp_path,))
    assert [*islice(other_bases(request, catalog), 2)] == [
        "--base debian:sid --provider distribution",
        "--base debian:experimental --provider distribution",
    ]


def test_other_bases_are_judged_by_their_own_recipes() -> None:
    request = Request(stack="pytorch", gpu=("gfx803",), base="debian:sid")
    assert [*other_bases(request, catalog_for(request, CATALOG))] == [*other_bases(request, CATALOG)]


def test_rocm_whose_runtime_does_not_open_a_card_is_refused_with_the_reason() -> None:
    with pytest.raises(ConflictError, match="no provider of ROCm serves gfx803") as caught:
        check_resolves(Request(stack="llama-hip", gpu=("gfx803",), base="debian:experimental"), CATALOG)
    assert "does not open gfx803" in caught.value.cause and "deprecated doorbell type" in caught.value.cause
    assert "--base debian:sid" in caught.value.next_step
