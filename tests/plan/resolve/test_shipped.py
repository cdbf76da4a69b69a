"""The locks that come with rocwright: one a row, made from the catalog alone, planned without a network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from packaging.version import Version

from rocbase.errors import NetworkError
from rocwheel_samples.tables import each
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import Catalog, load_catalog
from rocwright.catalog.model import Stack, StackRow
from rocwright.export.write import export
from rocwright.model.steps import IndexOrigin
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.lock import make_lock
from rocwright.plan.resolve.model import Lock, LockedPython, Request
from rocwright.plan.resolve.shipped import name_of, preferred, request_of, rows, shipped_lock
from rocwright.plan.resolve.shipping import Resolve, WithHashes, ship
from rocwright.plan.resolve.upstream import OfflineUpstream

CATALOG = load_catalog(DATA)
ROWS = [pytest.param(stack, row, id=f"{stack.name}-{row.gpu}-{row.base}") for stack, row in rows(CATALOG)]


def dateless(lock: Lock) -> Lock:
    """The lock, whoever made it and when."""
    on = None if lock.on is None else dateless(lock.on)
    return lock.model_copy(update={"created": "", "rocwright": "", "on": on})


@each(("stack", "row"), ROWS)
def test_every_row_comes_with_the_lock_that_the_catalog_gives_today(stack: Stack, row: StackRow) -> None:
    request = request_of(stack, row)
    shipped = shipped_lock(CATALOG, request)
    assert shipped is not None, "python -m rocwright.plan.resolve.shipping writes it"
    made = make_lock(request, CATALOG, WithHashes(shipped.packages, None, shipped.components), lambda _: None)
    assert dateless(shipped) == dateless(made), "python -m rocwright.plan.resolve.shipping writes it anew"


@each(("stack", "row"), ROWS)
def test_every_shipped_lock_has_the_hashes_of_its_python_packages(stack: Stack, row: StackRow) -> None:
    lock = shipped_lock(CATALOG, request_of(stack, row))
    assert lock is not None
    for part in (lock.python, lock.python_run):
        pins = (*part.files, *(pin for one in part.sdists for pin in one.files)) if part else ()
        assert bool(pins) == bool(part)
        assert not part or not part.pending
        assert all(isinstance(pin.origin, IndexOrigin) and not pin.origin.index for pin in pins)
    files = export(lock, CATALOG, "requirements")
    assert not [name for name, file in files.items() if name.startswith("python/") and "PENDING" in file.text]


def asked(answer: LockedPython | None) -> tuple[Resolve, list[tuple[str, ...]]]:
    """An index that answers so, or not at all, and what it was asked for."""
    seen: list[tuple[str, ...]] = []

    def resolve(version: str, wanted: tuple[str, ...]) -> LockedPython:
        seen.append(wanted)
        if answer is None:
            raise NetworkError("silent", cause="no answer", next_step="try again")
        return answer

    return resolve, seen


def test_hashes_are_kept_while_the_same_is_wanted_and_asked_for_once_when_it_is_not() -> None:
    had, new = (LockedPython(version="3.13", wanted=(name,)) for name in ("six", "rich"))
    resolve, seen = asked(new)
    outside = WithHashes([had], resolve)
    assert outside.python("3.13", ("six",)) is had
    assert [outside.python("3.13", ("rich",)) for _ in range(2)] == [new, new]
    assert seen == [("rich",)]
    assert outside.python("3.14", ("six",)) is new


def test_what_the_index_does_not_answer_stays_open() -> None:
    resolve, seen = asked(None)
    open_still = LockedPython(version="3.13", wanted=("six",), pending="the Python packages for six, by hash")
    assert WithHashes([open_still], resolve).python("3.13", ("six",)) == open_still
    assert WithHashes([open_still], None).python("3.13", ("six",)) == open_still
    assert seen == [("six",)]


@each(("stack", "row"), ROWS)
def test_every_shipped_lock_is_planned_without_a_network(stack: Stack, row: StackRow) -> None:
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
    row = StackRow(gpu="gfx1151", base="debian:sid", wish="x", holds="x")
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


def test_a_lock_of_a_row_takes_its_python_packages_as_long_as_the_same_is_wanted() -> None:
    stack = CATALOG.stack("pytorch")
    shipped = shipped_lock(CATALOG, request_of(stack, stack.row[0]))
    assert shipped is not None and shipped.python is not None
    request = shipped.request
    row = make_lock(request, CATALOG, OfflineUpstream(), lambda _: None, **preferred(CATALOG, request))
    assert row.python == shipped.python
    assert row.python_run == shipped.python_run
    fewer = [one.model_copy(update={"wanted": one.wanted[1:]}) for one in (shipped.python,)]
    asked = make_lock(request, CATALOG, OfflineUpstream(), lambda _: None, pythons=fewer)
    assert asked.python is not None
    assert asked.python.pending


@each(("stack", "gpu"), [("ollama", "gfx1151"), ("pytorch-wheels", "gfx1201")])
def test_a_request_that_leaves_versions_open_means_the_newest_row_in_any_order(stack: str, gpu: str) -> None:
    whole = CATALOG.stack(stack)
    for order in (whole.row, whole.row[::-1]):
        stacks = {**CATALOG.stacks, stack: whole.model_copy(update={"row": order})}
        catalog = replace(CATALOG, stacks=stacks)
        own = [row for row in order if row.gpu == gpu]
        newest, oldest = sorted(own, key=lambda row: Version(*row.versions.values()), reverse=True)
        plain = Request(stack=stack, gpu=(gpu,), base=newest.base)
        lock = shipped_lock(catalog, plain)
        assert lock is not None and newest.versions.items() <= lock.versions.items()
        assert newest.versions.items() <= preferred(catalog, plain)["prefer"].items()
        named = shipped_lock(catalog, plain.model_copy(update={"versions": oldest.versions}))
        assert named is not None and oldest.versions.items() <= named.versions.items()
