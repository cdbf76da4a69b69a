"""Which steps run, and why."""

from __future__ import annotations

from pathlib import Path

from tests.making import chain, put_output, small_plan

from rocwright.model.steps import Input, Plan, RunAction, Step
from rocwright.plan.decide import State, decide, differences
from rocwright.store.local import LocalStore
from rocwright.store.model import verified


def states(plan: Plan, store: LocalStore, **more: object) -> dict[str, str]:
    return {one.step.name: one.state.value for one in decide(plan, store, **more)}  # type: ignore[arg-type]


def reasons(plan: Plan, store: LocalStore, before: Plan | None = None) -> dict[str, tuple[str, ...]]:
    return {one.step.name: one.reasons for one in decide(plan, store, before)}


def build_all(plan: Plan, store: LocalStore, folder: Path) -> None:
    for step in plan.steps:
        put_output(store, step, "out", step.key.encode(), folder)


def with_env(plan: Plan, **env: str) -> Plan:
    *others, last = plan.steps
    assert isinstance(last.action, RunAction)
    changed = last.action.model_copy(update={"env": env})
    return Plan(steps=(*others, last.model_copy(update={"action": changed})), artifacts=plan.artifacts)


def test_everything_runs_the_first_time_because_it_was_never_built(store: LocalStore) -> None:
    plan = small_plan()
    assert set(states(plan, store).values()) == {"run"}
    assert set(reasons(plan, store).values()) == {("never built",)}


def test_decisions_come_in_the_plans_order(store: LocalStore) -> None:
    plan = small_plan()
    assert [one.step for one in decide(plan, store)] == list(plan.steps)


def test_nothing_runs_when_all_is_in_the_store(store: LocalStore, tmp_path: Path) -> None:
    plan = small_plan()
    build_all(plan, store, tmp_path)
    assert set(states(plan, store).values()) == {"in store"}


def test_what_nobody_needs_now_is_left_alone(store: LocalStore, tmp_path: Path) -> None:
    plan = small_plan()
    put_output(store, plan.steps[-1], "program", b"x", tmp_path)
    assert states(plan, store) == {
        "packages/build": "not needed",
        "root/build": "not needed",
        "source/hello": "not needed",
        "tree/hello": "not needed",
        "hello": "in store",
    }


def test_only_the_way_to_what_is_missing_runs(store: LocalStore, tmp_path: Path) -> None:
    plan = small_plan()
    put_output(store, plan.steps[1], "root", b"x", tmp_path)
    assert states(plan, store) == {
        "packages/build": "not needed",
        "root/build": "in store",
        "source/hello": "run",
        "tree/hello": "run",
        "hello": "run",
    }


def test_only_what_leads_to_a_step_asked_for_runs(store: LocalStore) -> None:
    found = states(small_plan(), store, required=("root/build",))
    assert [name for name, state in found.items() if state == "run"] == ["packages/build", "root/build"]


def test_a_lost_output_is_the_reason_for_another_run(store: LocalStore, tmp_path: Path) -> None:
    plan = small_plan()
    build_all(plan, store, tmp_path)
    store.local.remove(
        "file", put_output(store, plan.steps[-1], "out", plan.steps[-1].key.encode(), tmp_path).sha256
    )
    assert reasons(plan, store, plan)["hello"] == ("its output is no longer in the store",)


def test_an_output_of_another_size_than_recorded_is_as_good_as_lost(
    store: LocalStore, tmp_path: Path
) -> None:
    plan = small_plan()
    build_all(plan, store, tmp_path)
    record = store.record(plan.steps[-1].key)
    assert record is not None
    path = verified(store, record.outputs[0].sha256)
    path.chmod(0o644)
    path.write_bytes(b"cut")
    assert states(plan, store)["hello"] == State.RUN


def test_a_changed_environment_is_named_with_both_values(store: LocalStore, tmp_path: Path) -> None:
    before = small_plan()
    build_all(before, store, tmp_path)
    after = with_env(before, VERSION="2.0")
    assert reasons(after, store, before)["hello"] == ("env: VERSION 1.0 -> 2.0",)
    assert states(after, store)["tree/hello"] == "in store"


def test_an_added_and_a_removed_variable_are_named(store: LocalStore) -> None:
    before = small_plan()
    after = with_env(before, JPEG="1")
    told = differences(after.steps[-1], before.steps[-1], {})
    assert told == ["env: JPEG (none) -> 1, VERSION 1.0 -> (none)"]


def test_a_changed_input_is_named_by_the_step_that_makes_it(store: LocalStore) -> None:
    before = small_plan()
    *_, last = before.steps
    other = before.steps[3].model_copy(update={"name": "tree/other", "component": "x"})
    moved = other.model_copy(update={"inputs": ()})
    step = last.model_copy(
        update={"inputs": (last.inputs[0], Input(name="src", key=moved.key, output="tree"))}
    )
    assert differences(step, last, {moved.key: moved}) == ["input src (tree/other) changed"]


def test_inputs_that_came_and_went_are_named() -> None:
    *_, last = small_plan().steps
    fewer = last.model_copy(update={"inputs": last.inputs[:1]})
    assert differences(fewer, last, {}) == ["input src removed"]
    assert differences(last, fewer, {}) == [f"input src ({last.inputs[1].key[:12]}) added"]


def test_changed_commands_are_counted() -> None:
    *_, last = small_plan().steps
    assert isinstance(last.action, RunAction)
    changed = last.action.model_copy(update={"commands": ("make", last.action.commands[1])})
    told = differences(last.model_copy(update={"action": changed}), last, {})
    assert told == ["commands: 1 added, 1 removed"]


def test_commands_in_another_order_are_said_to_be() -> None:
    *_, last = small_plan().steps
    assert isinstance(last.action, RunAction)
    changed = last.action.model_copy(update={"commands": last.action.commands[::-1]})
    told = differences(last.model_copy(update={"action": changed}), last, {})
    assert told == ["commands: order changed"]


def test_a_step_that_is_as_before_but_has_no_record_was_not_finished(store: LocalStore) -> None:
    plan = small_plan()
    assert set(reasons(plan, store, plan).values()) == {("not finished last time",)}


def test_equal_definitions_have_no_differences() -> None:
    step: Step = small_plan().steps[-1]
    assert differences(step, step, {}) == []


def test_a_plan_of_2000_steps_is_decided(store: LocalStore, tmp_path: Path) -> None:
    plan = chain(2000)
    put_output(store, plan.steps[1899], "out", b"x", tmp_path)
    found = {one.step.name: one.state for one in decide(plan, store)}
    assert len(found) == 2000
    assert found["s1899"] is State.CACHED
    # the last hundred reach back past the one in store to those a hundred before
    assert {found[f"s{number}"] for number in range(1899)} == {State.RUN}


def test_the_plan_built_last_is_read_only_where_something_must_run(store: LocalStore, tmp_path: Path) -> None:
    plan, read = small_plan(), []

    def last() -> Plan:
        read.append(plan)
        return plan

    assert {one.reasons for one in decide(plan, store, last)} == {("not finished last time",)}
    assert len(read) == 1
    build_all(plan, store, tmp_path)
    decide(plan, store, last)
    assert len(read) == 1
