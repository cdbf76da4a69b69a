"""Shards of a step: what they are, when there are any, and a build with them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.execution.conftest import Workshop

from rocwright.execution.estimate import Expected
from rocwright.execution.executor import ExecutorOffer
from rocwright.execution.options import BuildOptions
from rocwright.execution.outcome import StepsOutcome
from rocwright.execution.progress import PlainProgress
from rocwright.execution.shards import WORTH_SHARDS, shards_of, with_shards
from rocwright.farm.executors import run_steps
from rocwright.model.steps import Plan, RunAction, Step
from rocwright.plan.decide import State, decide

BROKEN_SHARD = '[ -z "${ROCWRIGHT_SHARD-}" ] || exit 3'


def split(workshop: Workshop, *commands: str, number: int = 0) -> Step:
    """A step whose last command, or that one, can be split."""
    step = workshop.step(*commands)
    assert isinstance(step.action, RunAction)
    action = step.action.model_copy(update={"split": number or len(commands)})
    return step.model_copy(update={"action": action})


def plan_of(workshop: Workshop, step: Step) -> Plan:
    """The step and what it needs, which is in the store."""
    return Plan(steps=(workshop.root, *workshop.trees.values(), step), artifacts=(step.name,))


def run(workshop: Workshop, step: Step, shards: int | None, *, compiler_cache: bool = True) -> StepsOutcome:
    options = BuildOptions(jobs=2, engine=workshop.engine, shards=shards, compiler_cache=compiler_cache)
    logs = workshop.home.runs / "run"
    return run_steps(
        decide(plan_of(workshop, step), workshop.store),
        workshop.store,
        workshop.home,
        options,
        logs,
        {},
        PlainProgress(),
    )


def test_the_shards_of_a_step_have_keys_of_their_own_and_it_keeps_its_own(workshop: Workshop) -> None:
    step = split(workshop, "true", "touch $OUT/result")
    assert step.key == workshop.step("true", "touch $OUT/result").key
    shards = shards_of(step, 3)
    assert [one.name for one in shards] == [f"shard/{step.name}/{part}-of-3" for part in (1, 2, 3)]
    assert len({step.key, *(one.key for one in shards)}) == 4
    assert {one.inputs for one in shards} == {step.inputs}
    assert {one.domain for one in shards} == {step.domain}


@pytest.mark.parametrize("count", [0, 1])
def test_one_shard_is_none(workshop: Workshop, count: int) -> None:
    assert shards_of(split(workshop, "true"), count) == ()


def test_a_step_whose_recipe_does_not_say_that_it_can_be_split_has_no_shards(workshop: Workshop) -> None:
    assert shards_of(workshop.step("touch $OUT/result"), 4) == ()


def test_shards_have_no_shards(workshop: Workshop) -> None:
    [first, _] = shards_of(split(workshop, "true"), 2)
    assert shards_of(first, 2) == ()


PLACE = ExecutorOffer(name="a", cores=2, memory=2**33, disk=2**40)


@pytest.mark.parametrize(
    ("asked", "places", "work", "found"),
    [
        (None, 2, WORTH_SHARDS, 2),
        (None, 3, WORTH_SHARDS * 9, 3),
        (None, 2, WORTH_SHARDS - 1, 0),
        (None, 1, WORTH_SHARDS, 0),
        (4, 1, 0, 4),
        (1, 3, WORTH_SHARDS, 0),
    ],
)
def test_how_many_shards_there_are(
    workshop: Workshop, asked: int | None, places: int, work: float, found: int
) -> None:
    step = split(workshop, "touch $OUT/result")
    plan = plan_of(workshop, step)
    offers = [replace(PLACE, name=str(number)) for number in range(places)]
    decided, shards = with_shards(
        decide(plan, workshop.store), asked, offers, {step.name: Expected(work=work)}, workshop.store
    )
    made = [one for one in decided if one.step.name.startswith("shard/")]
    assert len(made) == found
    assert decided[-1].step is step
    assert shards == ({step.key: tuple(one.step.key for one in made)} if found else {})


def test_a_step_that_is_in_the_store_has_no_shards(workshop: Workshop) -> None:
    step = split(workshop, "touch $OUT/result")
    workshop.run(step)
    plan = plan_of(workshop, step)
    decided, shards = with_shards(decide(plan, workshop.store), 2, [PLACE], {}, workshop.store)
    assert (decided[-1].state, len(decided), shards) == (State.CACHED, len(plan.steps), {})


def test_shards_run_before_their_step_which_names_them_in_its_record(workshop: Workshop) -> None:
    step = split(workshop, "true", "ls /build/shards > $OUT/result")
    # what a compiler leaves; here by hand, as this root has none
    fill = 'if [ "${ROCWRIGHT_SHARD-}" ]; then touch /build/shard/cache/of-${ROCWRIGHT_SHARD%/*}; exit 0; fi'
    step = split(workshop, "true", f"{fill}; ls /build/shards > $OUT/result")
    told = run(workshop, step, 2)
    parts = [f"shard/{step.name}/{part}-of-2" for part in (1, 2)]
    # two that run at once end in any order
    *first, last = told.steps
    assert sorted(one.name for one in first) == parts
    assert last.name == step.name
    assert {one.outcome for one in told.steps} == {"built"}
    record = workshop.store.record(step.key)
    assert record is not None
    assert [one.step for one in record.shards] == parts
    assert workshop.text(record) == "of-1\nof-2\n"
    assert record.cache is not None and record.cache.state == "filled"


def test_a_step_is_built_where_its_shards_fail_and_they_are_no_failures_of_the_build(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    step = split(workshop, "true", f"{BROKEN_SHARD}\necho whole > $OUT/result")
    told = run(workshop, step, 2)
    assert not told.failures
    assert [one.outcome for one in told.steps] == ["failed", "failed", "built"]
    record = workshop.store.record(step.key)
    assert record is not None and record.shards == ()
    assert f"{step.name} compiles that part itself" in capsys.readouterr().err


def test_without_a_compiler_cache_there_are_no_shards(workshop: Workshop) -> None:
    step = split(workshop, "true", f"{BROKEN_SHARD}\necho whole > $OUT/result")
    assert [one.name for one in run(workshop, step, 2, compiler_cache=False).steps] == [step.name]


def test_a_shard_in_the_store_is_not_made_again(workshop: Workshop) -> None:
    step = split(workshop, "true", "echo whole > $OUT/result")
    [first, _] = shards_of(step, 2)
    workshop.store.put_step(first.key, first.model_dump_json(by_alias=True).encode())
    workshop.run(first)
    assert [one.name for one in run(workshop, step, 2).steps] == [f"shard/{step.name}/2-of-2", step.name]
