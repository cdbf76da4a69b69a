from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.jobs_simulated import (
    GIB,
    MIB,
    Compiler,
    against_best,
    best_fixed,
    build,
    compilers,
    drawn,
    recorded,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel_samples.tables import each
from rocwright.execution.jobs.budget import Budget, Job, Past, StepJobs
from rocwright.execution.jobs.learn import Learnt
from rocwright.execution.jobs.policy import PATIENCE, Decision, decide, fitting, margin
from rocwright.execution.jobs.processes import ProcessKind, StepProcess
from rocwright.execution.jobs.room import MemoryBudget, Pressure
from rocwright.home import Home

STEP = StepJobs(name="step", component="part", reckoned=GIB, jobs=8, shares=True)


def seen(
    pid: int, memory: int, kind: ProcessKind = ProcessKind.COMPILE, *, paused: bool = False, cpu: float = 0
) -> StepProcess:
    return StepProcess(pid=pid, started=pid, step="step", memory=memory, kind=kind, paused=paused, cpu=cpu)


def room(available: int, total: int = 4 * GIB, pressure: Pressure | None = None) -> MemoryBudget:
    return MemoryBudget(total=total, used=total - available, pressure=pressure)


def known(*peaks: int, kind: ProcessKind = ProcessKind.COMPILE) -> Learnt:
    learnt = Learnt()
    for peak in peaks:
        learnt.note("part", "step", kind, peak)
    return learnt


def look(
    available: int, processes: list[StepProcess], before: Decision | None = None, at: float = 0, most: int = 8
) -> Decision:
    return decide(at, room(available), processes, [STEP], known(*[2 * GIB] * 50), before, most)


# --- whole builds, reckoned


@each("seed", range(4))
def test_a_build_of_64_compilers_under_4_gib_needs_no_longer_than_with_the_best_number(seed: int) -> None:
    """And here the number of jobs at which nothing waits would be killed."""
    work = compilers(seed)
    jobs, best = best_fixed(work, 4 * GIB, 2, 8)
    told = build(work, 4 * GIB, 2, 8, recipe=GIB)
    assert jobs >= 1
    assert build(work, 4 * GIB, 2, 8, fixed=True).killed
    assert not told.killed
    assert told.finished == 64
    assert told.seconds <= 1.1 * best.seconds


@pytest.mark.parametrize("late", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("recipe", [0, 100 * MIB, 300 * MIB])
def test_a_cold_start_with_a_recipe_that_says_too_little_loses_no_try(recipe: int, late: float) -> None:
    """All eight at once hold what the first of them lacks, and stopping some gives nothing back."""
    work = [Compiler(700 * MIB, 20, late)] * 8
    for cores in (2, 8):
        told = build(work, 3 * GIB, cores, 8, recipe=recipe)
        assert (told.killed, told.stuck, told.finished) == (False, False, 8)


@pytest.mark.parametrize("late", [False, True])
def test_a_cold_build_of_recorded_compilers_does_not_run_one_by_one(late: bool) -> None:
    """A recipe that says 2 GiB where 270 MiB are taken, nothing learnt: it took 5.8 and 6.8 times as long."""
    told, ratio = against_best(drawn(2, late=late))
    assert (told.killed, told.stuck) == (False, False)
    assert ratio < 1.25


def test_peaks_known_by_name_let_more_run_than_those_of_the_sort(tmp_path: Path) -> None:
    """Three small ones and a large one, which the youngest is: by the sort each might be the large one."""
    learnt = Learnt(tmp_path / "memory.json")
    for unit, peak in [("a", 200 * MIB), ("b", 200 * MIB), ("c", 200 * MIB), ("d", 2 * GIB)]:
        learnt.note("part", "step", ProcessKind.COMPILE, peak, unit=unit)
    learnt.save()
    jobs = [seen(pid, 190 * MIB) for pid in (1, 2, 3)]
    named = [replace(one, unit=unit) for one, unit in zip(jobs, "abc", strict=True)]
    assert decide(0, room(GIB), jobs, [STEP], learnt, None, 8).pause != ()
    assert decide(0, room(GIB), named, [STEP], learnt, None, 8).pause == ()


def test_one_that_passed_its_peak_of_the_last_build_is_as_any_other(tmp_path: Path) -> None:
    learnt = Learnt(tmp_path / "memory.json")
    learnt.note("part", "step", ProcessKind.COMPILE, 200 * MIB, unit="a")
    learnt.note("part", "step", ProcessKind.COMPILE, 2 * GIB, unit="d")
    learnt.save()
    two = [replace(seen(pid, 300 * MIB), unit="a") for pid in (1, 2)]
    assert [one.pid for one in decide(0, room(GIB), two, [STEP], learnt, None, 8).pause] == [2]


@pytest.mark.parametrize(("unknown", "goes"), [("", True), ("b", False)])
def test_one_that_stopped_short_of_its_known_peak_goes_on_for_what_it_lacks(
    tmp_path: Path, unknown: str, goes: bool
) -> None:
    """Without that it needs room for whatever it could take until the next look."""
    learnt = Learnt(tmp_path / "memory.json")
    for unit, peak in (("a", 200 * MIB), ("b", 200 * MIB), ("d", 2 * GIB)):
        learnt.note("part", "step", ProcessKind.COMPILE, peak, unit="" if unit == unknown else unit)
    learnt.save()
    held = {"a": 200 * MIB, "b": 195 * MIB, "d": 100 * MIB}
    jobs = [
        replace(seen(pid, memory, paused=pid > 1), unit=unit)
        for pid, (unit, memory) in enumerate(held.items(), start=1)
    ]
    before = Decision(tokens=1, past=Past(time=0, stopped=frozenset({(2, 2), (3, 3)})))
    free = room(margin(room(0)) + 100 * MIB)
    resumed = decide(0.1, free, jobs, [STEP], learnt, before, 8).resume
    assert [one.pid for one in resumed] == ([2] if goes else [])


def test_a_slow_start_lets_in_twice_as_many_as_have_shown_their_size_or_ended() -> None:
    """Also where all are so short that none is ever seen for long."""

    def allowed(processes: list[StepProcess], before: Decision | None = None) -> Decision:
        return decide(0.5 if before else 0, room(3 * GIB), processes, [STEP], Learnt(), before, 8)

    assert allowed([]).tokens == 1
    young = allowed([seen(1, 50 * MIB, cpu=0.1)])
    assert young.tokens == 1
    assert allowed([seen(1, 50 * MIB, cpu=0.3)], young).tokens == 2
    assert allowed([seen(2, 50 * MIB, cpu=0.1)], young).tokens == 2


def test_with_much_room_nothing_is_held_back() -> None:
    work = compilers(1)
    assert build(work, 64 * GIB, 8, 8).seconds <= build(work, 64 * GIB, 8, 8, fixed=True).seconds + 0.1


@st.composite
def works(draw: st.DrawFn) -> tuple[list[Compiler], int, int, int]:
    """Compilers none of which is larger than the room, the room, processors, and the most jobs."""
    memory = draw(st.integers(1, 16)) * 512 * MIB
    spare = 20 * MIB + margin(room(0, memory))
    largest = round((memory - spare) * draw(st.floats(0.1, 1.0)) * 0.95)
    one = st.builds(
        Compiler,
        st.integers(10 * MIB, max(11 * MIB, largest)),
        st.floats(1.0, 8.0),
        st.sampled_from((0.0, 0.3, 0.8)),
    )
    return (
        draw(st.lists(one, min_size=1, max_size=40)),
        memory,
        draw(st.integers(1, 16)),
        draw(st.integers(1, 24)),
    )


@given(works())
@settings(max_examples=40, deadline=None)
def test_no_kill_and_never_stuck_where_the_peaks_are_known(
    work: tuple[list[Compiler], int, int, int],
) -> None:
    """Whatever the order in which they come: what runs can always be ended, if need be one by one."""
    jobs, memory, cores, most = work
    learnt = known(*(one.peak for one in jobs))
    # the growth of one look is kept free; nothing that is alive grows by more than the room in that time
    slow = [replace(one, seconds=max(one.seconds, 8 * one.peak / (512 * MIB))) for one in jobs]
    told = build(slow, memory, cores, most, learnt=learnt, recipe=min(one.peak for one in jobs))
    assert not told.killed
    assert not told.stuck
    assert told.finished == len(jobs)
    assert told.least >= 1


@given(works())
@settings(max_examples=25, deadline=None)
def test_one_that_knows_nothing_ends_too_or_says_what_is_too_large(
    work: tuple[list[Compiler], int, int, int],
) -> None:
    jobs, memory, cores, most = work
    told = build(jobs, memory, cores, most)
    assert not told.stuck
    assert told.killed or told.finished == len(jobs)


def test_a_process_that_alone_wants_more_than_there_is_is_named() -> None:
    told = build([Compiler(6 * GIB, 20), Compiler(GIB, 5)], 4 * GIB, 2, 2)
    assert told.killed
    assert told.hopeless


def test_a_process_is_too_large_by_its_own_memory_alone() -> None:
    """Not by what others have, also such as wait for something."""

    def told(*memory: int) -> StepProcess | None:
        processes = [seen(pid, each, cpu=1.0) for pid, each in enumerate(memory)]
        used = room(4 * GIB - sum(memory))
        past = decide(0, used, processes, [STEP], Learnt(), None, 8)
        now = [replace(processes[0], cpu=2.0), *processes[1:]]
        return decide(PATIENCE + 1, used, now, [STEP], Learnt(), past, 8).hopeless

    assert told(2200 * MIB, 1800 * MIB) is None
    assert told(4000 * MIB) is not None


def test_a_process_is_not_too_large_for_the_memory_of_one_that_was_just_killed() -> None:
    """It is gone from the processes before the kernel has its memory back."""
    pair = [seen(1, 1900 * MIB), seen(2, 2100 * MIB)]
    before = decide(0, room(90 * MIB), pair, [STEP], Learnt(), None, 8)
    assert decide(0.02, room(90 * MIB), pair[:1], [STEP], Learnt(), before, 8).hopeless is None


def test_one_that_gets_no_processor_is_held_as_one_that_works() -> None:
    pair = [seen(1, 1000 * MIB), replace(seen(2, 1000 * MIB), ready=True)]
    before = look(2 * GIB, pair)
    now = [replace(pair[0], cpu=1.0), pair[1]]
    assert [one.pid for one in look(100 * MIB, now, before, at=PATIENCE + 1).pause] == [2]


@each(
    ("seed", "learnt", "most"),
    [
        (33, False, 1.25),
        (246, False, 1.25),
        (50, True, 1.1),
    ],
)
def test_of_compilers_that_hardly_fit_nearly_as_many_run_as_can(seed: int, learnt: bool, most: float) -> None:
    """A job that has not grown for long has mostly all that it wants."""
    told, ratio = against_best(drawn(seed), learnt=learnt)
    assert not told.killed
    assert ratio <= most


@each("order", [None, 0, 1, 2])
def test_of_two_compilers_at_a_time_the_second_waits_only_a_little(order: int | None) -> None:
    """Both fit, and nothing is known: torchvision's, which took 1.32 to 1.38 times as long as ninja -j2 when
    what two of them may come to was reckoned as for many."""
    units = 2 * list(recorded()["torchvision"])
    if order is not None:
        random.Random(order).shuffle(units)
    fixed = build(units, 1580 * MIB, 2, 2, fixed=True)
    told = build(units, 1580 * MIB, 2, 2, paused_only=True)
    assert not fixed.killed
    assert (told.killed, told.finished) == (False, len(units))
    assert told.pauses > 0
    assert told.seconds <= 1.2 * fixed.seconds


@each("seed", [724, 365, 381])
def test_what_the_next_may_come_to_is_reckoned_with_where_few_are_known(seed: int) -> None:
    """Builds that were killed: the first when less was added to the largest for how much they differ, the
    others when all were let in at once whose first 0.25 s had shown little."""
    work = drawn(seed)
    assert not build(work.compilers, work.memory, work.cores, work.cores, recipe=work.recipe).killed


def job(learnt: Learnt, process: StepProcess, last_growth: float = 0) -> Job:
    past = Past(grew={process.name: (process.memory, last_growth)})
    return Budget([STEP], learnt, [process], past, 8 * GIB, 8).jobs[0]


def test_one_that_stands_still_may_swell_but_hardly_wants_all_that_others_came_to() -> None:
    learnt, process = known(*[600 * MIB] * 40), seen(1, 200 * MIB, cpu=10.0)
    all_, less, least = (job(learnt, process, grown).wants for grown in (9.0, 6.0, 1.0))
    assert all_ == learnt.peaks("part", "step", ProcessKind.COMPILE).most(0, 8) - process.memory
    assert less == pytest.approx(all_ / 2, rel=0.01)
    assert 0 < least < less


def test_its_own_peak_of_the_last_build_is_what_it_may_come_to_and_little_more(tmp_path: Path) -> None:
    first = Learnt.load(Home(tmp_path))
    for unit, peak in (("a", 200 * MIB), ("b", 800 * MIB)):
        first.note("part", "step", ProcessKind.COMPILE, peak, unit=unit)
    first.save()
    learnt, named = Learnt.load(Home(tmp_path)), replace(seen(1, 190 * MIB), unit="a")
    assert 10 * MIB < job(learnt, named).wants <= 16 * MIB
    # it came to more than in the last build: only what others of its sort came to is known of it
    assert job(learnt, replace(named, memory=210 * MIB)).wants > 590 * MIB


# --- single looks


def test_links_are_let_in_and_held_by_what_links_take() -> None:
    learnt = known(100 * MIB, 100 * MIB)
    for _ in range(20):
        learnt.note("part", "step", ProcessKind.LINK, 3 * GIB)
    links = [seen(1, 10 * MIB, ProcessKind.LINK), seen(2, 10 * MIB, ProcessKind.LINK)]
    small = [seen(1, 10 * MIB), seen(2, 10 * MIB)]
    step = replace(STEP, reckoned=100 * MIB)
    assert decide(0, room(2 * GIB), small, [step], learnt, None, 8).tokens == 8
    decision = decide(0, room(2 * GIB), links, [step], learnt, None, 8)
    assert decision.tokens == 1
    assert [one.pid for one in decision.pause] == [2]


def test_the_youngest_stops_first_and_the_oldest_goes_on_first() -> None:
    four = [seen(pid, 600 * MIB) for pid in (1, 2, 3, 4)]
    decision = look(1600 * MIB, four)
    assert [one.pid for one in decision.pause] == [2, 3, 4]
    stopped = [replace(one, paused=one.pid != 1) for one in four]
    later = look(3 * GIB, stopped[1:3], decision, at=1)
    assert [one.pid for one in later.resume][:1] == [2]


def test_what_drives_others_is_never_paused_nor_what_somebody_else_stopped_resumed() -> None:
    drivers = [seen(pid, 900 * MIB, ProcessKind.OTHER) for pid in (1, 2)]
    assert look(10 * MIB, drivers).pause == ()
    assert look(3 * GIB, [seen(1, MIB, paused=True)]).resume == ()


def test_one_that_only_waits_does_not_hold_the_others_up() -> None:
    """The oldest may itself wait for one that is paused: it is not relied upon."""
    decision: Decision | None = None
    for second in range(8):
        pair = [seen(1, 1000 * MIB, cpu=1.0), seen(2, 1000 * MIB, paused=second > 0, cpu=1.0)]
        decision = look(900 * MIB, pair, decision, at=float(second))
        if decision.resume:
            break
    assert decision is not None
    assert [one.pid for one in decision.resume] == [2]


def test_one_that_has_not_stopped_yet_is_let_go_on_all_the_same() -> None:
    """A signal is taken when its process next has a processor: it would stop after it was forgotten."""
    pair = [seen(1, 1000 * MIB), seen(2, 1000 * MIB)]
    paused = look(900 * MIB, pair)
    assert [one.pid for one in paused.pause] == [2]
    assert [one.pid for one in look(3 * GIB, pair, paused, at=0.02).resume] == [2]
    assert look(3 * GIB, pair, look(3 * GIB, pair, paused, at=0.02), at=0.04).resume == ()


def test_one_that_was_stopped_while_it_started_others_goes_on_as_soon_as_that_is_seen() -> None:
    paused = look(900 * MIB, [seen(1, 1000 * MIB), seen(2, 1000 * MIB)])
    driver = seen(2, 1000 * MIB, ProcessKind.OTHER, paused=True)
    assert [one.pid for one in look(MIB, [seen(1, 1000 * MIB), driver], paused, at=1).resume] == [2]


def test_a_pause_is_not_taken_back_for_the_room_that_it_just_saved() -> None:
    """Hysteresis: going on wants more room than staying."""
    pair = [seen(1, 1500 * MIB), seen(2, 600 * MIB)]
    turns = 0
    decision: Decision | None = None
    stopped = False
    for tick in range(200):
        available = 800 * MIB + (tick % 2) * 8 * MIB
        now = [pair[0], replace(pair[1], paused=stopped, cpu=tick * 0.01 * (not stopped))]
        now[0] = replace(now[0], cpu=tick * 0.01)
        decision = look(available, now, decision, at=tick * 0.02)
        before = stopped
        stopped = (stopped or bool(decision.pause)) and not decision.resume
        turns += stopped != before
    assert turns <= 2


def test_where_none_fits_one_goes_on_to_its_end() -> None:
    """What each wants is a guess that grows with it: by that alone they take turns, and none would end."""
    memory, stopped, went = [200 * MIB] * 4, set[int](), set[int]()
    decision: Decision | None = None
    for tick in range(60):
        four = [
            seen(pid, each, paused=pid in stopped, cpu=float(tick * (pid not in stopped)))
            for pid, each in enumerate(memory)
        ]
        free = room(880 * MIB - sum(memory), 880 * MIB)
        decision = decide(tick * 0.02, free, four, [replace(STEP, reckoned=MIB)], Learnt(), decision, 8)
        stopped = (stopped | {one.pid for one in decision.pause}) - {one.pid for one in decision.resume}
        went |= set(range(4)) - stopped
        memory = [each + MIB * (pid not in stopped) for pid, each in enumerate(memory)]
    assert len(went) == 1


def test_waiting_for_memory_counts_as_no_room() -> None:
    four = [seen(pid, 100 * MIB) for pid in (1, 2, 3, 4)]
    calm = Pressure(full=0.0, total=10)
    hard = Pressure(full=0.6, total=10)
    learnt = known(*[200 * MIB] * 50)
    free = decide(0, room(3 * GIB, pressure=calm), four, [STEP], learnt, None, 8)
    tight = decide(0, room(3 * GIB, pressure=hard), four, [STEP], learnt, None, 8)
    assert (free.tokens, free.pause) == (8, ())
    assert tight.tokens == 1
    assert [one.pid for one in tight.pause] == [2, 3, 4]


def test_pressure_that_grew_since_the_last_look_counts_at_once() -> None:
    learnt = known(*[200 * MIB] * 50)
    first = decide(0, room(3 * GIB, pressure=Pressure(full=0, total=10.0)), [], [STEP], learnt, None, 8)
    later = decide(1, room(3 * GIB, pressure=Pressure(full=0, total=10.5)), [], [STEP], learnt, first, 8)
    assert (first.tokens, later.tokens) == (8, 1)


def test_looks_are_rare_with_much_room_and_frequent_with_little() -> None:
    assert decide(0, room(60 * GIB, 64 * GIB), [], [STEP], Learnt(), None, 8).next == 0.5
    assert decide(0, room(150 * MIB), [seen(1, GIB)], [STEP], Learnt(), None, 8).next == 0.02


@each(("memory", "tokens"), [(32 * GIB, 8), (3 * GIB, 4)])
def test_more_than_there_are_processors_run_only_if_the_worst_case_of_all_fits(
    memory: int, tokens: int
) -> None:
    decision = decide(0, room(memory, 32 * GIB), [], [STEP], known(*[100 * MIB] * 49, GIB), None, 8, 4)
    assert decision.tokens == tokens


def test_every_step_has_its_first_process() -> None:
    steps = [replace(STEP, name=name) for name in "abc"]
    assert decide(0, room(0), [], steps, Learnt(), None, 8).tokens == 3


def test_the_jobs_of_a_step_that_takes_a_number_are_counted() -> None:
    fixed = replace(STEP, name="other", shares=False, jobs=3)
    alone = decide(0, room(4 * GIB), [], [STEP], known(*[700 * MIB] * 50), None, 8)
    beside = decide(0, room(4 * GIB), [], [STEP, fixed], known(*[700 * MIB] * 50), None, 8)
    assert beside.tokens - 3 < alone.tokens


@each(("memory", "jobs"), [(100 * MIB, 8), (GIB, 3), (8 * GIB, 1)])
def test_the_number_for_tools_that_know_no_job_server(memory: int, jobs: int) -> None:
    assert fitting(room(4 * GIB), Learnt(), "part", "step", memory, 8) == jobs
