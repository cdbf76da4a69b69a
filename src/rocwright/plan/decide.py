"""Which steps of a plan must run, and why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Any

from rocbase.model import Frozen
from rocwright.model.steps import Plan, Step
from rocwright.store.model import Record, Store, in_store, records_of


class State(StrEnum):
    """The closed set of what a build does with a step."""

    RUN = "run"
    CACHED = "in store"
    UNNEEDED = "not needed"


class Decision(Frozen):
    """What will be done with a step, and the reasons in words."""

    step: Step
    state: State
    reasons: tuple[str, ...] = ()


def needed(plan: Plan, required: tuple[str, ...] = (), cached: Collection[str] = ()) -> set[str]:
    """Return the keys of the `required` steps, else the artifacts, and of all that they need, without those
    that are `cached` and what only these need."""
    by_key = {step.key: step for step in plan.steps}
    names = {step.name: key for key, step in by_key.items()}
    must: set[str] = set()
    waiting = [names[name] for name in required or plan.artifacts]
    while waiting:
        key = waiting.pop()
        if key in cached or key in must:
            continue
        must.add(key)
        waiting += [item.key for item in by_key[key].inputs]
    return must


def decide(
    plan: Plan,
    store: Store,
    previous: Plan | Callable[[], Plan | None] | None = None,
    required: tuple[str, ...] = (),
) -> list[Decision]:
    """A decision for each step, in the plan's order.

    Only what a wanted step (the plan's artifacts, where none is named) still needs is run: a step whose
    outputs nobody needs now is left alone, even where its outputs have been removed. `previous` is the plan
    that was built last, for the reasons, or what reads it, which is called only where something must run.
    """
    by_key = {step.key: step for step in plan.steps}
    damaged: set[str] = set()
    records = records_of(store, by_key, damaged.add)
    cached = {key for key, record in records.items() if in_store(store, record)}
    must = needed(plan, required, cached)
    last_plan = previous() if callable(previous) and must else previous
    last = {step.name: step for step in last_plan.steps} if isinstance(last_plan, Plan) else {}
    decisions = []
    for key, step in by_key.items():
        if key in must:
            previous_step = last.get(step.name)
            reasons = _reasons(step, records[key], previous_step, by_key, damaged=key in damaged)
            decisions.append(Decision(step=step, state=State.RUN, reasons=reasons))
        else:
            state = State.CACHED if key in cached else State.UNNEEDED
            decisions.append(Decision(step=step, state=state, reasons=_origin(records[key])))
    return decisions


def _origin(record: Record | None) -> tuple[str, ...]:
    return (str(record.origin),) if record is not None and record.origin is not None else ()


def _reasons(
    step: Step, record: Record | None, previous: Step | None, by_key: Mapping[str, Step], *, damaged: bool
) -> tuple[str, ...]:
    if record is not None:
        return ("its output is no longer in the store",)
    if damaged:
        return ("its record was damaged and has been moved aside",)
    if previous is None:
        return ("never built",)
    changes = differences(step, previous, by_key)
    return tuple(changes) or ("not finished last time",)


def differences(step: Step, previous: Step, by_key: Mapping[str, Step]) -> list[str]:
    """What changed between two definitions of a step, in words."""
    old, new = previous.action.material(), step.action.material()
    changes = [
        f"{name}: {change}"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
        for change in [_change(old.get(name), new.get(name))]
    ]
    old_inputs = {(item.name, item.output): item.key for item in previous.inputs}
    for item in step.inputs:
        was = old_inputs.pop((item.name, item.output), None)
        if was != item.key:
            made_by = by_key[item.key].name if item.key in by_key else item.key[:12]
            changes.append(f"input {item.name} ({made_by}) {'changed' if was else 'added'}")
    changes += [f"input {name} removed" for name, _ in old_inputs]
    return changes


def _change(old: Any, new: Any) -> str:
    match old, new:
        case dict(), dict():
            names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
            return ", ".join(
                f"{name} {_short(old.get(name))} -> {_short(new.get(name))}" for name in names[:5]
            )
        case list(), list():
            added = [entry for entry in new if entry not in old]
            removed = [entry for entry in old if entry not in new]
            return f"{len(added)} added, {len(removed)} removed" if added or removed else "order changed"
        case _:
            return f"{_short(old)} -> {_short(new)}"


def _short(value: Any) -> str:
    text = "(none)" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
