"""Libraries of ROCm that have no code for a GPU: built along, accepted, or a reason to refuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rocbase.errors import ConflictError, InputError
from rocwright.catalog.load import Catalog, builtin_catalog
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.lock import make_lock
from rocwright.plan.resolve.model import Lock, Request
from rocwright.plan.resolve.shipped import request_of, rows, shipped_lock
from rocwright.plan.resolve.upstream import OfflineUpstream
from rocwright.plan.resolve.validate import check_fits
from rocwright.plan.resolve.without_code import to_build

CATALOG = builtin_catalog()
POLARIS = Request(stack="pytorch", gpu=("gfx803",), base="arch:2025-10-15", versions={"pytorch": "2.6.0"})
PHOENIX = Request(stack="llama-hip", gpu=("gfx1103",), base="debian:sid")
LLAMA = CATALOG.stack("llama-hip")
# Where nothing builds rocBLAS.
WITHOUT = replace(CATALOG, stacks={**CATALOG.stacks, LLAMA.name: LLAMA.model_copy(update={"optional": ()})})


def locked(request: Request, told: list[str] | None = None, catalog: Catalog = CATALOG) -> Lock:
    return make_lock(request, catalog, OfflineUpstream(), (told if told is not None else []).append)


def names(lock: Lock) -> list[str]:
    return [one.name for one in lock.components]


def test_a_library_without_code_that_the_stack_can_build_is_built_along_and_told() -> None:
    told: list[str] = []
    lock = locked(POLARIS, told)
    assert "rocblas" in names(lock)
    plan = make_plan(lock, CATALOG)
    (step,) = (one for one in plan.steps if one.name == "pytorch")
    assert "rocblas" in {one.name for one in step.inputs}
    assert any("rocblas is built too" in line and "gfx803" in line for line in told)


def test_a_lock_that_was_made_without_it_does_not_fit_any_more() -> None:
    lock = locked(POLARIS)
    without = tuple(one for one in lock.components if one.name != "rocblas")
    with pytest.raises(InputError, match="does not match the recipes") as caught:
        check_fits(lock.model_copy(update={"components": without}), CATALOG)
    assert "rocblas" in caught.value.cause


def test_a_library_that_nothing_here_builds_is_a_refusal_with_the_reason_and_where_it_is_whole() -> None:
    with pytest.raises(
        ConflictError, match="rocblas of ROCm on debian:sid has no code for gfx1103"
    ) as caught:
        locked(PHOENIX, catalog=WITHOUT)
    assert "librocblas 6.4.4" in caught.value.cause
    assert "--accept-missing rocblas" in caught.value.next_step
    assert "--base fedora:43 --provider distribution" in caught.value.next_step


def test_who_accepts_that_gets_a_lock_and_is_told() -> None:
    told: list[str] = []
    lock = locked(PHOENIX.model_copy(update={"accept_missing": ("rocblas",)}), told)
    assert names(lock) == ["llama.cpp-hip"]
    assert any("no code for gfx1103, as accepted" in line for line in told)
    check_fits(lock, CATALOG)


@pytest.mark.parametrize("accepted", [("rocblas",), ("miopen",)])
def test_to_accept_what_is_not_missing_is_refused(accepted: Sequence[str]) -> None:
    whole = Request(stack="llama-hip", gpu=("gfx1100",), base="debian:sid", accept_missing=tuple(accepted))
    with pytest.raises(InputError, match=f"--accept-missing {accepted[0]} has no effect here"):
        locked(whole)


def test_two_gpus_of_which_one_lacks_code_are_refused_by_the_name_of_that_one() -> None:
    with pytest.raises(ConflictError, match="no code for gfx1103"):
        locked(PHOENIX.model_copy(update={"gpu": ("gfx1100", "gfx1103")}), catalog=WITHOUT)


def test_rocblas_is_built_along_for_what_llama_leaves_to_it() -> None:
    assert names(locked(PHOENIX)) == ["tensile", "rocblas", "llama.cpp-hip"]


def test_all_that_is_missing_is_said_at_once() -> None:
    request = Request(stack="pytorch", gpu=("gfx1151", "gfx1103"), base="debian:sid")
    provider = CATALOG.provider("distribution")
    lacks = provider.without_code(request.gpu, "6.4.4", request.base, request.architecture)
    bare = CATALOG.stack("pytorch").model_copy(update={"optional": ()})
    with pytest.raises(
        ConflictError, match="rocblas and rocsparse of ROCm on debian:sid have no code"
    ) as caught:
        to_build(lacks, request, bare, CATALOG)
    assert "--accept-missing rocblas --accept-missing rocsparse" in caught.value.next_step
    both = request.model_copy(update={"accept_missing": ("rocblas", "rocsparse")})
    assert to_build(lacks, both, bare, CATALOG) == ()


def test_a_library_that_the_stack_builds_anyway_is_no_refusal() -> None:
    stack = CATALOG.stack("pytorch")
    own = stack.model_copy(update={"optional": (), "components": (*stack.components, "rocblas")})
    catalog = replace(CATALOG, stacks={**CATALOG.stacks, "pytorch": own})
    lock = make_lock(POLARIS, catalog, OfflineUpstream(), lambda _: None)
    assert "rocblas" in names(lock)


def test_a_request_that_accepts_something_is_another_one() -> None:
    accepted = PHOENIX.model_copy(update={"accept_missing": ("rocblas",)})
    assert accepted.name != PHOENIX.name
    assert accepted.variant == "without-rocblas"
    assert accepted.words[-2:] == ["--accept-missing", "rocblas"]


def test_a_lock_of_a_row_that_goes_without_is_not_given_to_who_did_not_accept() -> None:
    row = next(row for stack, row in rows(CATALOG) if row.accept_missing and stack.name == "llama-hip")
    meant = request_of(CATALOG.stack("llama-hip"), row)
    assert shipped_lock(CATALOG, meant) is not None
    assert shipped_lock(CATALOG, meant.model_copy(update={"accept_missing": ()})) is None
