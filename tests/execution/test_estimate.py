"""How long steps and whole builds are expected to take, and how honestly that is told."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.making import small_plan

from rocwright.execution.estimate import (
    Expected,
    Source,
    Took,
    expect,
    longest_first,
    machine_pace,
    took,
    whole,
)
from rocwright.execution.jobs.learn import Learnt
from rocwright.execution.jobs.processes import ProcessKind
from rocwright.execution.jobs.room import MemoryBudget
from rocwright.execution.overall import Whole
from rocwright.execution.requirements import outlook, outlook_line
from rocwright.home import Home
from rocwright.model.steps import FetchAction, Input, OutputSpec, Resources, RunAction, Step
from rocwright.plan.decide import Decision, State
from rocwright.records.model import Run, StepRun
from rocwright.records.opening import open_records

GIB = 2**30


def step(name: str, *after: Step, seconds: float = 0, memory: int = 0, cores: int = 64) -> Step:
    return Step(
        name=name,
        component=name,
        action=RunAction(commands=(name,), outputs=(OutputSpec(name="out", pattern="x"),)),
        inputs=tuple(Input(name=one.name, key=one.key, output="out") for one in after),
        resources=Resources(cores=cores, seconds=seconds, memory=memory, disk=GIB),
    )


TORCH = step("torch", seconds=3600, memory=2 * GIB)


def told(past: list[Took], one: Step = TORCH, stack: str = "pytorch") -> Expected:
    recipes = {"torch": 3600.0, "triton": 600.0, "vision": 60.0}
    return expect([one], past, recipes, stack)[one.name]


def test_a_step_takes_what_it_took_before_with_as_many_jobs() -> None:
    found = told([Took(name="torch", stack="pytorch", seconds=1000, jobs=8, counted=7950)])
    assert (found.source, found.counted) == ("built here", 7950)
    assert (found.seconds(8), found.seconds(4)) == (1000, 2000)


def test_the_same_stack_comes_first_then_any_and_the_newest_of_each() -> None:
    other = [Took(name="torch", stack="vllm", seconds=one) for one in (50, 60)]
    mine = [Took(name="torch", stack="pytorch", seconds=one) for one in (70, 80)]
    assert told(other + mine).work == 70
    assert told(other).work == 50


def test_a_build_out_of_the_compiler_cache_only_counts_where_there_is_no_other() -> None:
    warm = Took(name="torch", stack="pytorch", seconds=60, cached=0.97)
    assert told([warm, Took(name="torch", stack="vllm", seconds=5000)]).work == 5000
    assert told([warm]).work == 60


def test_what_was_never_built_here_takes_what_the_recipe_says_at_this_machines_pace() -> None:
    """Recipes are for two cores: triton took 1200 s of one, here 2400; torch took 7200, so here 14400."""
    past = [
        Took(name="triton", stack="x", seconds=300, jobs=8),
        Took(name="vision", stack="x", seconds=12, jobs=20),
        Took(name="vision", stack="x", seconds=1, jobs=1, cached=1.0),
        Took(name="unheard-of", stack="x", seconds=10**6),
    ]
    assert told(past) == Expected(work=14400, source="recipe, by this machine")


def test_on_a_machine_that_has_built_nothing_the_recipe_is_all_that_is_known() -> None:
    assert told([]) == Expected(work=7200, source="recipe")
    assert told([], step("torch")) == Expected()


def test_a_fetch_is_not_measured_by_the_pace_of_compilers() -> None:
    fetch = small_plan().steps[0].model_copy(update={"resources": Resources(seconds=10)})
    past = [Took(name="triton", stack="x", seconds=6000, jobs=8)]
    assert told(past, fetch) == Expected(work=10, source="recipe")


@given(seconds=st.lists(st.floats(1, 10**5), min_size=1, max_size=9))
def test_the_pace_lies_within_what_was_seen(seconds: list[float]) -> None:
    found = machine_pace([Took(name="a", stack="x", seconds=one, jobs=2) for one in seconds], {"a": 100})
    assert found is not None
    assert min(seconds) / 100 <= found <= max(seconds) / 100


def test_the_history_is_that_of_the_runs(home: Home) -> None:
    cold, warm = {"hit": 1, "miss": 3}, {"hit": 3, "miss": 1}
    with open_records(home) as records:
        for at, (outcome, seconds, cache) in enumerate(
            [("built", 9.0, cold), ("built", 7.0, cold), ("built", 5.0, warm), ("failed", 1.0, cold)]
        ):
            one = StepRun(
                name="torch", key="k", outcome=outcome, seconds=seconds, jobs=4, compiler_cache=cache
            )
            run = Run(
                id=f"{at}", command="build", started="", seconds=1, stack="pytorch", gpu=(), base="",
                outcome=outcome, steps=(one,),
            )  # fmt: skip
            records.put(run)
    assert [(one.seconds, one.jobs, one.cached) for one in took(home)] == [(5, 4, 0.75), (7, 4, 0.25)]


# the whole


A = step("a")
B, C = step("b", A), step("c", A)
D = step("d", B, C)
PLAN = (A, B, C, D)


def test_a_build_takes_no_less_than_its_longest_way_and_no_less_than_all_its_work() -> None:
    """With all jobs, each of the four takes 100 s, and two at once only share the cores."""
    assert whole(PLAN, {one.key: 100.0 for one in PLAN}, 8).seconds == 400
    narrow = [step("a", cores=1), step("b", cores=1), step("c", cores=1)]
    assert whole(narrow, {one.key: 100.0 for one in narrow}, 8).seconds == 100


def test_steps_of_which_nothing_is_known_are_named() -> None:
    found = whole(PLAN, {A.key: 100, B.key: None, C.key: 5, D.key: None}, 8)
    assert (found.seconds, found.unknown) == (105, ("b", "d"))


def test_what_is_left_of_a_build_goes_down_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    expected = {one.name: Expected(work=8000, source="built here") for one in PLAN}
    build = Whole(PLAN, expected, 8)
    assert build.describe() == "about 33 to 133 min left · 4 of 4 steps to go"
    running = build.started(A, 8)
    assert (running.jobs, running.expected) == (8, 1000)
    build.again(A)
    assert build.describe().endswith("4 of 4 steps to go")
    build.ended(A)
    clock[0] = 750.0
    assert build.describe() == "about 50 min 00 s left · 3 of 4 steps to go"
    build.failed(B)
    assert build.describe() == ""


def test_where_nothing_is_known_only_steps_are_counted() -> None:
    build = Whole(PLAN, {"c": Expected(work=800)}, 8)
    assert build.describe() == "at least 1 min 40 s left · 4 of 4 steps to go · no history of a, b, d"
    assert Whole(PLAN, {}, 8).describe() == "4 of 4 steps to go · no history of a, b, c"


# which comes first


def first(*steps: Step, took: dict[str, float], shards: dict[str, tuple[str, ...]] | None = None) -> str:
    expected = {name: Expected(work=work) for name, work in took.items()}
    found = longest_first({one.key: one for one in steps}, expected, 4, shards)
    assert list(found) == [one.key for one in found.values()]
    return " ".join(one.name for one in found.values())


LONG = step("long")
HEAD, TAIL = step("head"), step("tail", step("head"))


def test_the_longest_way_to_the_end_comes_first() -> None:
    assert first(LONG, HEAD, TAIL, took={"long": 100, "head": 10, "tail": 95}) == "head long tail"
    assert first(HEAD, TAIL, LONG, took={"long": 106, "head": 10, "tail": 95}) == "long head tail"


def test_what_cannot_use_all_jobs_takes_longer() -> None:
    narrow = step("narrow", cores=1)
    assert first(LONG, narrow, took={"long": 100, "narrow": 50}) == "narrow long"


def test_where_nothing_tells_they_come_as_they_did() -> None:
    assert first(LONG, HEAD, TAIL, took={}) == "long head tail"


def test_shards_come_as_early_as_their_step() -> None:
    shard, other = step("shard/long/1-of-2"), step("other")
    took = {"long": 100.0, "other": 50.0}
    assert (
        first(other, shard, LONG, took=took, shards={LONG.key: (shard.key,)})
        == "shard/long/1-of-2 long other"
    )


@given(st.lists(st.tuples(st.lists(st.integers(0, 8), max_size=3), st.integers(0, 3)), max_size=9))
def test_no_step_comes_before_what_it_needs(wanted: list[tuple[list[int], int]]) -> None:
    steps: list[Step] = []
    for at, (needs, _) in enumerate(wanted):
        steps.append(step(f"s{at}", *(steps[one] for one in {*needs} if one < at)))
    expected = {f"s{at}": Expected(work=work) for at, (_, work) in enumerate(wanted)}
    seen: set[str] = set()
    for key, one in longest_first({one.key: one for one in steps}, expected, 4).items():
        assert {item.key for item in one.inputs} <= seen
        seen.add(key)


# what it needs


def needs(
    *steps: Step,
    expected: dict[str, Expected],
    disk: int = 100 * GIB,
    memory: int = 29 * GIB,
    learnt: Learnt | None = None,
) -> str:
    decisions = [Decision(step=one, state=State.RUN) for one in steps]
    room = MemoryBudget(total=64 * GIB, used=64 * GIB - memory)
    return outlook_line(outlook(decisions, expected, 16, disk=disk, room=room, learnt=learnt or Learnt()))


@pytest.mark.parametrize(
    ("source", "more"),
    [("built here", ""), ("recipe", " by the recipes (nothing was built here yet)")],
    ids=["history", "recipe"],
)
def test_the_line_tells_time_disk_memory_and_jobs(source: Source, more: str) -> None:
    assert needs(TORCH, expected={"torch": Expected(work=14 * 3600, source=source)}) == (
        f"about 1 h 00 min{more}, 1.00 GiB disk, 28.00 GiB memory      "
        "this machine: ok, 14 jobs of 16 (memory)"
    )


def test_the_line_reckons_with_the_memory_that_jobs_took_here() -> None:
    learnt = Learnt()
    for _ in range(200):
        learnt.note("torch", "torch", ProcessKind.COMPILE, 4 * GIB)
    said = needs(TORCH, expected={}, learnt=learnt)
    assert "28.00 GiB memory      this machine: ok, 7 jobs of 16 (memory)" in said


def test_the_line_says_what_there_is_too_little_of_and_what_has_no_history() -> None:
    small = needs(TORCH, A, expected={"torch": Expected(work=60, source="recipe")}, disk=GIB, memory=GIB)
    assert small == (
        "at least 1 min 00 s (no history of a), 2.00 GiB disk, 2.00 GiB memory      "
        "this machine: 1.00 GiB of disk are free; 1.00 GiB of memory are available"
    )
    assert needs(A, expected={}).startswith("no history of a, 1.00 GiB disk      this machine: ok, 16 jobs")


def test_what_is_not_locked_yet_takes_a_time_and_a_disk_that_are_not_known() -> None:
    expected = {"wheels/vllm": Expected(work=5, source="recipe")}
    fetch = Step(name="wheels/vllm", component="vllm", action=FetchAction(pending="the sha256 of vllm 1"))
    said = needs(fetch, expected=expected)
    assert said.startswith("time not known, disk not known (wheels/vllm not locked)      this")
    said = needs(fetch, A, expected=expected | {"a": Expected(work=64, source="recipe")})
    assert said.startswith("at least 4.0 s, at least 1.00 GiB disk (wheels/vllm not locked)      this")
    said = needs(fetch, A, expected=expected)
    assert said.startswith("no history of a, at least 1.00 GiB disk (wheels/vllm not locked)      this")
