"""The locks that come with rocwright: one a row, made from the catalog alone, planned without a network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rocwright.catalog.folders import DATA
from rocwright.catalog.load import Catalog, load_catalog
from rocwright.catalog.model import Row, Stack
from rocwright.plan.make import make_plan
from rocwright.resolve.lock import make_lock
from rocwright.resolve.model import Request
from rocwright.resolve.shipped import name_of, request_of, rows, ship, shipped_lock
from rocwright.resolve.upstream import OfflineUpstream

CATALOG = load_catalog(DATA)
ROWS = [pytest.param(stack, row, id=f"{stack.name}-{row.gpu}-{row.base}") for stack, row in rows(CATALOG)]


@pytest.mark.parametrize(("stack", "row"), ROWS)
def test_every_row_comes_with_the_lock_that_the_catalog_gives_today(stack: Stack, row: Row) -> None:
    request = request_of(stack, row)
    shipped = shipped_lock(CATALOG, request)
    assert shipped is not None, "python -m rocwright.resolve.shipped writes it"
    made = make_lock(request, CATALOG, OfflineUpstream(), lambda _: None)
    assert shipped.model_copy(update={"created": "", "rocwright": ""}) == made.model_copy(
        update={"created": "", "rocwright": ""}
    ), "python -m rocwright.resolve.shipped writes it anew"


@pytest.mark.parametrize(("stack", "row"), ROWS)
def test_every_shipped_lock_is_planned_without_a_network(stack: Stack, row: Row) -> None:
    lock = shipped_lock(CATALOG, request_of(stack, row))
    assert lock is not None
    plan = make_plan(lock, CATALOG)
    assert plan.artifacts
    keys = {step.key for step in plan.steps}
    assert all(item.key in keys for step in plan.steps for item in step.inputs)


def test_no_lock_is_left_over_from_a_row_that_is_gone() -> None:
    wanted = {name_of(request_of(stack, row)) for stack, row in rows(CATALOG)}
    there = {path.relative_to(DATA).as_posix() for path in (DATA / "locks").rglob("*.lock")}
    assert there == wanted


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """One stack with a row, and its lock in a folder over the carried ones."""
    stack = CATALOG.stack("gfx-smoke")
    row = Row(gpu="gfx1151", base="debian:sid", wish="x", holds="x")
    made = replace(
        CATALOG,
        stacks={"gfx-smoke": stack.model_copy(update={"row": (row,)})},
        folders=(tmp_path, *CATALOG.folders),
    )
    assert ship(made, tmp_path) == [tmp_path / name_of(request_of(stack, row))]
    assert ship(made, tmp_path) == []
    return made


def test_a_request_for_what_a_row_means_gets_its_lock(catalog: Catalog) -> None:
    asked = Request(stack="gfx-smoke", gpu=("gfx1151",), base="debian:sid")
    lock = shipped_lock(catalog, asked)
    assert lock is not None
    assert lock.request == asked
    assert any("gfx-smoke" in text for text in lock.pending)


@pytest.mark.parametrize(
    "change",
    [
        {"gpu": ("gfx803",)},
        {"base": "debian:trixie"},
        {"versions": {"x": "1"}},
        {"extra": ("x",)},
        {"provider": "amd"},
    ],
)
def test_a_request_for_anything_else_does_not(catalog: Catalog, change: dict[str, object]) -> None:
    asked = {"stack": "gfx-smoke", "gpu": ("gfx1151",), "base": "debian:sid"} | change
    assert shipped_lock(catalog, Request.model_validate(asked)) is None
