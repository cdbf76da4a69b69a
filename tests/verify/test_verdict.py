"""What can be expected of a GPU: by evidence, and by the catalog."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.target import HostNeeds, Quirk
from rocwright.plan.resolve.evidence import Evidence
from rocwright.records.model import SAID, Said
from rocwright.verify import verdict as module
from rocwright.verify.verdict import RAN, lines, verdict

CATALOG = builtin_catalog()
ANY = [one.name for one in CATALOG.stacks.values() if one.any_gpu]
STACK = CATALOG.stacks[ANY[0]]
ROW = next((stack, row) for stack in CATALOG.stacks.values() for row in stack.row if row.provider)
TARGET = CATALOG.target(ROW[1].gpu)


def saw(monkeypatch: pytest.MonkeyPatch, *seen: Evidence) -> None:
    """The evidence on record is this, and no other."""
    monkeypatch.setattr(module, "shipped_evidence", lambda catalog: list(seen))


def evidence(said: Said, gpu: str = TARGET.name, stack: str = ROW[0].name) -> Evidence:
    return Evidence(
        stack=stack,
        base=ROW[1].base,
        gpu=(gpu,),
        said=said,
        when="2026-11-20T10:00:00Z",
        device="a card",
        detail="d",
        source="s",
    )


def test_only_what_ran_on_the_gpu_works(monkeypatch: pytest.MonkeyPatch) -> None:
    saw(monkeypatch, evidence(RAN))
    found = verdict(TARGET, CATALOG)
    first = next(lines(found))
    assert found.works
    assert found.instead == ()
    assert first == ("works", f"ran on this GPU: {ROW[0].name} on {ROW[1].base} (2026-11-20, a card)")


@pytest.mark.parametrize("said", [said for said in SAID if said != RAN])
def test_what_is_less_is_called_by_its_name(monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    saw(monkeypatch, evidence(said))
    found = verdict(TARGET, CATALOG)
    told = list(lines(found))
    assert not found.works
    assert told[0] == ("unproven", f"nothing on record ran on this GPU; the most that was seen: {said}")
    assert told[1] == ("seen", f"{said}: {ROW[0].name} on {ROW[1].base}")


def test_what_ran_on_another_gpu_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    other = next(name for name in CATALOG.targets if name != TARGET.name)
    saw(monkeypatch, evidence(RAN, gpu=other))
    assert not verdict(TARGET, CATALOG).works


def test_a_gpu_of_which_nothing_is_known_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    saw(monkeypatch)
    rows = {row.gpu for stack in CATALOG.stacks.values() for row in stack.row}
    target = next(one for one in CATALOG.targets.values() if one.name not in rows)
    assert next(lines(verdict(target, CATALOG)))[0] == "unknown"


def test_a_stack_for_any_gpu_is_named_where_nothing_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    saw(monkeypatch)
    assert [one.stack for one in verdict(TARGET, CATALOG).instead] == ANY
    bound = {name: one.model_copy(update={"any_gpu": False}) for name, one in CATALOG.stacks.items()}
    assert verdict(TARGET, replace(CATALOG, stacks=bound)).instead == ()


def test_a_stack_that_does_not_resolve_for_the_gpu_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    saw(monkeypatch)
    other = next(name for name in CATALOG.targets if name != TARGET.name)
    bound = {**CATALOG.stacks, STACK.name: STACK.model_copy(update={"targets": (other,)})}
    found = verdict(TARGET, replace(CATALOG, stacks=bound)).instead
    assert [one.stack for one in found] == ANY[1:]


def test_what_nothing_runs_without_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    saw(monkeypatch)
    wanted = Quirk(
        variable="A_SWITCH", value="{target}", scope="run", need="required", reason="r", source="s"
    )
    others = (
        wanted.model_copy(update={"variable": "OTHER", "need": "recommended"}),
        wanted.model_copy(update={"variable": "BUILD", "scope": "build"}),
    )
    target = TARGET.model_copy(update={"quirk": (wanted, *others), "host": HostNeeds(kernel_bad=("1.2",))})
    assert verdict(target, CATALOG).needs == (
        f"A_SWITCH={TARGET.name}: r",
        "a Linux kernel other than 1.2, which are known to fail",
    )


def test_of_one_stack_only_its_own_proofs_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    other = next(one for one in CATALOG.stacks if one not in (ROW[0].name, *ANY))
    saw(monkeypatch, evidence(RAN, stack=other), evidence("built"))
    found = verdict(TARGET, CATALOG, stack=ROW[0].name)
    assert not found.works
    assert {one.stack for one in found.proofs} == {ROW[0].name}
    assert [one.stack for one in found.instead] == ANY


def test_rows_of_which_nothing_was_seen_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    saw(monkeypatch, evidence("built"))
    told = dict(lines(verdict(TARGET, CATALOG), limit=1))
    rows = {
        f"{name} on {row.base}"
        for name, one in CATALOG.stacks.items()
        for row in one.row
        if row.gpu == TARGET.name
    }
    assert set(told["untried"].split(", ")) == rows - {f"{ROW[0].name} on {ROW[1].base}"}


def test_a_stack_without_a_row_says_that_it_is_this_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    saw(monkeypatch)
    target = next(one for one in CATALOG.targets.values() if all(row.gpu != one.name for row in ROW[0].row))
    told = next(lines(verdict(target, CATALOG, stack=ROW[0].name)))
    assert told == ("unknown", f"the stack {ROW[0].name} has no row for this GPU, and nothing is on record")


def test_a_stack_for_any_gpu_is_not_sent_to_others_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    target = next(one for one in CATALOG.targets.values() if all(row.gpu != one.name for row in STACK.row))
    base = STACK.row[0].base
    seen = evidence("ran in software", gpu=STACK.row[0].gpu, stack=STACK.name)
    saw(monkeypatch, seen.model_copy(update={"base": base}))
    told = list(lines(verdict(target, CATALOG, stack=STACK.name)))
    assert told[0][0] == "unproven" and "is for any GPU" in told[0][1]
    assert told[1] == ("seen", f"ran in software: {STACK.name} on {base}")
    assert "instead" not in dict(told)
