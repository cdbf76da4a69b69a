"""The steps of a plan, run in order and at the same time; failures told together."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests.execution.conftest import Workshop
from tests.making import put_output, small_plan

from rocbase.errors import FailureClass, OutOfDiskError, from_dict
from rocwright.execution.disk import check_room
from rocwright.execution.estimate import Expected
from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import PlainProgress
from rocwright.execution.scheduler import Notes, StepsOutcome
from rocwright.farm.executors import run_steps
from rocwright.home import Home
from rocwright.model.steps import Plan, Resources, Step
from rocwright.plan.decide import decide
from rocwright.records.model import StepRun
from rocwright.sandbox import cgroup
from rocwright.sandbox.cgroup import Cgroup
from rocwright.store.local import LocalStore

pytestmark = pytest.mark.timing


def run(
    workshop: Workshop,
    *steps: Step,
    jobs: int = 2,
    expected: Mapping[str, Expected] | None = None,
    under_way: Notes | None = None,
) -> StepsOutcome:
    """Build these steps as a plan; the root and the trees are in the store already."""
    plan = Plan(
        steps=(workshop.root, *workshop.trees.values(), *steps), artifacts=tuple(one.name for one in steps)
    )
    return run_steps(
        decide(plan, workshop.store),
        workshop.store,
        workshop.home,
        BuildOptions(jobs=jobs, engine=workshop.engine),
        workshop.home.runs / "run",
        expected or {},
        PlainProgress(),
        under_way,
    )


def outcomes(told: StepsOutcome) -> dict[str, str]:
    return {one.name: one.outcome for one in told.steps}


def log(workshop: Workshop, name: str) -> list[str]:
    return (workshop.home.runs / "run" / f"{name}.log").read_text().splitlines()


def test_steps_run_after_what_they_need(workshop: Workshop) -> None:
    first = workshop.step("echo 1 > $OUT/result", name="first")
    second = workshop.step("cat $IN/x/result > $OUT/result", name="second", inputs={"x": first})
    third = workshop.step("cat $IN/x/result file > $OUT/result", name="third", inputs={"x": second})
    told = run(workshop, first, second, third)
    assert list(outcomes(told).items()) == [("first", "built"), ("second", "built"), ("third", "built")]
    record = workshop.store.record(third.key)
    assert record is not None
    assert workshop.text(record) == "1\ntext\n"


def test_a_failed_step_stops_only_what_needs_it_and_all_failures_are_told_together(
    workshop: Workshop,
) -> None:
    bad = workshop.step("echo 'error: bad' >&2", "exit 1", name="bad")
    after = workshop.step("touch $OUT/result", name="after", inputs={"x": bad})
    later = workshop.step("touch $OUT/result", name="later", inputs={"x": after})
    other = workshop.step("sleep 0.3", "touch $OUT/result", name="other")
    worse = workshop.step("touch $OUT/nothing", name="worse", inputs={"x": other})
    told = run(workshop, bad, after, later, other, worse)
    assert outcomes(told) == {
        "bad": "failed", "after": "skipped", "later": "skipped", "other": "built", "worse": "failed",
    }  # fmt: skip
    assert {name: error.failure for name, error in told.failures} == {
        "bad": FailureClass.COMPILE,
        "worse": FailureClass.CHECK,
    }
    assert dict(told.failures)["bad"].cause == "error: bad"


def test_steps_that_do_not_need_each_other_run_at_the_same_time(workshop: Workshop) -> None:
    """Each waits for the other: one after the other they would never end."""
    meet = "for i in 1 2 3 4 5 6 7 8 9; do test -e /ccache/{other} && break; sleep 0.5; done"
    one, two = (
        workshop.step(
            f"touch /ccache/{name}",
            meet.format(other=other),
            f"test -e /ccache/{other}",
            "touch $OUT/result",
            name=name,
        )
        for name, other in (("one", "two"), ("two", "one"))
    )
    assert outcomes(run(workshop, one, two, jobs=2)) == {"one": "built", "two": "built"}


def test_no_more_run_at_once_than_jobs_are_allowed(workshop: Workshop) -> None:
    commands = ("mkdir /ccache/busy", "sleep 0.2", "echo $JOBS > $OUT/result", "rm -r /ccache/busy")
    steps = [workshop.step(f"true {name}", *commands, name=name) for name in ("a", "b", "c")]
    assert set(outcomes(run(workshop, *steps, jobs=1)).values()) == {"built"}


def test_the_jobs_are_shared_among_steps_and_kept_below_what_a_step_can_use(workshop: Workshop) -> None:
    steps = [
        workshop.step("echo $JOBS > $OUT/result", name="few", resources=Resources(cores=1, limit=60)),
        workshop.step("echo $JOBS > $OUT/result", name="many", resources=Resources(cores=64, limit=60)),
    ]
    told = run(workshop, *steps, jobs=4)
    jobs = {one.name: one.jobs for one in told.steps}
    assert jobs["few"] == 1
    assert jobs["many"] in (2, 3)


def test_a_step_that_wants_much_memory_for_each_job_gets_fewer_jobs(workshop: Workshop) -> None:
    step = workshop.step("echo $JOBS > $OUT/result", resources=Resources(cores=64, memory=2**60, limit=60))
    [told] = run(workshop, step, jobs=8).steps
    assert (told.outcome, told.jobs) == ("built", 1)


def test_a_log_has_every_line_with_its_time(workshop: Workshop) -> None:
    run(workshop, workshop.step("echo one; echo two >&2", "printf 'no newline'", "touch $OUT/result"))
    lines = log(workshop, "hello")
    assert all(line[:10].count("-") == 2 and line[23] == "Z" for line in lines)
    told = [line[25:] for line in lines]
    commands = ("$ echo one; echo two >&2", "$ printf 'no newline'", "$ touch $OUT/result")
    assert told[-6:] == [commands[0], "one", "two", commands[1], "no newline", commands[2]]


def test_a_step_whose_inputs_are_identical_is_told_as_reused(workshop: Workshop) -> None:
    def steps(text: str) -> tuple[Step, Step]:
        first = workshop.step(f"true {text}", "echo same > $OUT/result", name="first")
        return first, workshop.step("touch $OUT/result", name="second", inputs={"x": first})

    run(workshop, *steps("one"))
    assert outcomes(run(workshop, *steps("two"))) == {"first": "built", "second": "reused"}


class Notebook:
    """What the scheduler tells whoever keeps the record."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []
        self.used: list[tuple[str, int, int]] = []

    def note(self, step: StepRun) -> None:
        self.told.append((step.name, step.state, step.outcome))

    def sample(self, step: str, memory: int, processes: int) -> None:
        self.used.append((step, memory, processes))


def test_how_each_step_stands_and_what_it_uses_is_told_while_it_runs(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocwright.execution.scheduler.SAMPLE", 0)
    notebook = Notebook()
    run(workshop, workshop.step("sleep 2", "touch $OUT/result"), under_way=notebook)
    assert notebook.told == [("hello", "queued", ""), ("hello", "running", ""), ("hello", "ended", "built")]
    assert {name for name, _, _ in notebook.used} == {"hello"}
    assert max(memory for _, memory, _ in notebook.used) > 0


@pytest.mark.parametrize("elsewhere", [0, 1])
def test_a_step_that_is_killed_is_told_as_killed_and_not_kept(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, elsewhere: int
) -> None:
    # the kernel counts for the whole machine, where another process runs out of memory meanwhile
    monkeypatch.setattr("rocwright.farm.step.machine_kills", lambda: 7)
    monkeypatch.setattr("rocwright.execution.killed.machine_kills", lambda: 7 + elsewhere)
    step = workshop.step("sleep 30", "touch $OUT/result")
    killer = subprocess.Popen(
        [sys.executable, "-c", KILLER, step.key], stdout=subprocess.DEVNULL, start_new_session=True
    )
    told = run(workshop, step)
    killer.wait()
    assert outcomes(told) == {"hello": "failed"}
    [(_, error)] = told.failures
    assert "killed" in error.message
    assert error.failure is FailureClass.INTERRUPTED
    assert ("so that is uncertain" if elsewhere else "say that it did not") in error.cause
    assert workshop.store.record(step.key) is None


KILLER = """
import os, signal, sys, time
from pathlib import Path
end = time.monotonic() + 120
while time.monotonic() < end:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\\0")
        except OSError:
            continue
        if b"exec-step" in words and sys.argv[1].encode() in words:
            time.sleep(0.7)
            os.kill(int(entry.parent.name), signal.SIGKILL)
            sys.exit()
    time.sleep(0.05)
"""


def test_ctrl_c_ends_what_runs_and_says_that_nothing_is_lost(workshop: Workshop, tmp_path: Path) -> None:
    first = workshop.step("touch $OUT/result", name="first")
    second = workshop.step(
        "echo waiting", "sleep 77.7", "touch $OUT/result", name="second", inputs={"x": first}
    )
    plan = Plan(
        steps=(workshop.root, *workshop.trees.values(), first, second), artifacts=(first.name, second.name)
    )
    (tmp_path / "plan.json").write_text(plan.model_dump_json(by_alias=True))
    count = tmp_path / "vmstat"
    count.write_text("oom_kill 3\n")
    driver = (
        f"from pathlib import Path; from rocwright.sandbox import memory; memory.VMSTAT = Path('{count}')"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", driver + DRIVER, str(tmp_path / "plan.json"), str(workshop.home.path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    path = workshop.home.runs / "run" / "second.log"
    end = time.monotonic() + 120
    while not (path.exists() and "waiting" in path.read_text()) and time.monotonic() < end:
        time.sleep(0.05)
    assert "waiting" in path.read_text()
    # meanwhile the kernel kills some other process of the machine for memory
    count.write_text("oom_kill 4\n")
    running.send_signal(signal.SIGINT)
    out, said = running.communicate(timeout=20)
    assert out == "interrupted: finished steps are kept: the same command continues from there\n"
    assert "second: stopped after" in said and "failed" not in said
    assert workshop.store.record(first.key) is not None
    assert workshop.store.record(second.key) is None
    end = time.monotonic() + 120
    while b"77.7" in processes() and time.monotonic() < end:
        time.sleep(0.1)
    assert b"77.7" not in processes()


def test_a_step_that_was_just_started_ends_with_the_build_that_started_it(
    workshop: Workshop, tmp_path: Path
) -> None:
    step = workshop.step("sleep 78.8", "touch $OUT/result")
    plan = Plan(steps=(workshop.root, *workshop.trees.values(), step), artifacts=(step.name,))
    (tmp_path / "plan.json").write_text(plan.model_dump_json(by_alias=True))
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, tmp_path / "plan.json", workshop.home.path]
    ) as running:
        end = time.monotonic() + 120
        while step.key.encode() not in processes() and time.monotonic() < end:
            time.sleep(0.005)
        running.kill()
    end = time.monotonic() + 120
    while step.key.encode() in processes() and time.monotonic() < end:
        time.sleep(0.1)
    assert step.key.encode() not in processes()


def test_a_paused_process_ends_with_the_build_that_was_killed(workshop: Workshop, tmp_path: Path) -> None:
    step = workshop.step("sleep 78.9", "touch $OUT/result")
    plan = Plan(steps=(workshop.root, *workshop.trees.values(), step), artifacts=(step.name,))
    (tmp_path / "plan.json").write_text(plan.model_dump_json(by_alias=True))
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, tmp_path / "plan.json", workshop.home.path]
    ) as running:
        end = time.monotonic() + 120
        while not sleeping() and time.monotonic() < end:
            time.sleep(0.05)
        [pid] = sleeping()
        os.kill(pid, signal.SIGSTOP)
        running.kill()
    end = time.monotonic() + 120
    while sleeping() and time.monotonic() < end:
        time.sleep(0.1)
    assert sleeping() == []


def sleeping() -> list[int]:
    """Processes that sleep as the step above does."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == b"sleep\x0078.9\x00":
                found.append(int(path.parent.name))
    return found


DRIVER = """
import json, sys
from pathlib import Path
from rocwright.execution.estimate import Expected
from rocwright.execution.progress import PlainProgress
from rocwright.execution.options import BuildOptions
from rocwright.farm.executors import run_steps
from rocbase.errors import InterruptedByUser
from rocwright.home import Home
from rocwright.plan.decide import decide
from rocwright.model.steps import Plan
from rocwright.store.local import LocalStore
home = Home(Path(sys.argv[2]))
store = LocalStore(home.store)
plan = Plan.model_validate_json(Path(sys.argv[1]).read_bytes())
try:
    options, logs = BuildOptions(jobs=2, engine="bubblewrap"), home.runs / "run"
    told = run_steps(decide(plan, store), store, home, options, logs, {}, PlainProgress())
    print(json.dumps([one.model_dump() for one in told.steps]))
except InterruptedByUser as stopped:
    print("interrupted:", stopped.next_step)
"""


def processes() -> bytes:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes())
        except OSError:
            continue
    return b"\n".join(found)


# memory


BOTH = """hog() { head -c 200M /dev/zero | tail -n 1; }
till() { while ! test -e $1; do sleep 0.05; done; }
if [ $JOBS -gt 1 ]; then
  hog | { head -c 1; touch held; till ended; } >/dev/null &
  till held
fi
hog > /dev/null || touch ended
touch ended"""
"""A compiler of 200 MiB, and another at the same time where there is a job for it."""


def test_a_step_that_ran_out_of_memory_is_built_with_half_the_jobs(
    workshop: Workshop, small_room: Cgroup, tmp_path: Path
) -> None:
    needs = Resources(cores=64, memory=2**20, limit=60)
    steps = [workshop.step(BOTH, "touch $OUT/result", resources=needs)]
    steps += [workshop.step("sleep 0.1", "touch $OUT/result", name="other", inputs={"x": steps[0]})]
    told, said = run_in(small_room, workshop, steps, tmp_path)
    first, second, _ = told.steps
    assert [(one.name, one.outcome, one.jobs) for one in told.steps] == [
        ("hello", "again", 2), ("hello", "built", 1), ("other", "built", 1),
    ]  # fmt: skip
    assert first.error["class"] == "out of memory"
    # the bound above the build, not what the machine has
    assert first.memory == 420 * 2**20
    assert first.peak_memory is not None
    assert first.peak_memory > 200 * 2**20
    assert second.peak_memory is not None
    assert "hello: ran out of memory with 2 jobs and at most" in said
    assert "retrying it alone with 1 job\n" in said


def test_a_step_that_ran_out_of_memory_goes_on_in_its_tree_with_half_the_jobs_and_the_run_says_so(
    workshop: Workshop, small_room: Cgroup, tmp_path: Path
) -> None:
    needs = Resources(cores=64, memory=2**20, limit=60)
    commands = ("echo with $JOBS >> /build/ran", BOTH, "echo then $JOBS | cat /build/ran - > $OUT/result")
    step = workshop.step(*commands, resources=needs, resume=2)
    told, said = run_in(small_room, workshop, [step], tmp_path)
    assert [(one.outcome, one.jobs, one.resumed) for one in told.steps] == [("again", 2, 0), ("built", 1, 1)]
    record = workshop.store.record(step.key)
    assert record is not None
    assert workshop.text(record) == "with 2\nthen 1\n"
    assert ", resumed\n" in said


def test_a_step_that_runs_out_of_memory_twice_has_failed_and_tells_of_both(
    workshop: Workshop, small_room: Cgroup, tmp_path: Path
) -> None:
    step = workshop.step("head -c 600M /dev/zero | tail -n 1 >/dev/null || exit 2", "touch $OUT/result")
    told, _ = run_in(small_room, workshop, [step], tmp_path)
    assert [(one.outcome, one.jobs) for one in told.steps] == [("again", 1), ("failed", 1)]
    [(_, error)] = told.failures
    assert (error.failure, error.message) == (FailureClass.OUT_OF_MEMORY, "the step ran out of memory twice")
    assert error.cause.startswith("first 1 job and at most ")
    assert "; then, alone, 1 job and at most " in error.cause
    assert error.next_step.startswith("use a machine with more memory, raise --memory")


@pytest.fixture
def small_room() -> Iterator[Cgroup]:
    """A cgroup of 420 MiB."""
    room = cgroup.create(f"rocwright-test-{os.getpid()}")
    if room is None:
        pytest.skip("no cgroup can be made here")
    room.limit(420 * 2**20)
    yield room
    cgroup.kill(room.folder)
    cgroup.remove(room.path)


def run_in(room: Cgroup, workshop: Workshop, steps: Sequence[Step], folder: Path) -> tuple[StepsOutcome, str]:
    """Build these steps with all that it takes in a cgroup: how it went, and what was said."""
    plan = Plan(steps=(workshop.root, *workshop.trees.values(), *steps), artifacts=(steps[-1].name,))
    (folder / "plan.json").write_text(plan.model_dump_json(by_alias=True))
    words: list[str | Path] = [sys.executable, "-c", DRIVER, folder / "plan.json", workshop.home.path]
    done = subprocess.run(
        ["sh", "-c", f'echo $$ > {room.procs} && exec "$@"', "sh", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    told = [StepRun.model_validate(one) for one in json.loads(done.stdout)]
    failures = [(one.name, from_dict(one.error)) for one in told if one.outcome == "failed"]
    return StepsOutcome(steps=told, failures=failures), done.stderr


# room


def with_disk(plan: Plan, size: int) -> Plan:
    steps = [step.model_copy(update={"resources": Resources(disk=size)}) for step in plan.steps]
    return plan.model_copy(update={"steps": tuple(steps)})


def test_a_plan_for_which_there_is_no_room_is_refused_before_it_starts(store: LocalStore, home: Home) -> None:
    plan = with_disk(small_plan(), 10**15)
    with pytest.raises(OutOfDiskError, match="this build needs about") as caught:
        check_room(decide(plan, store), home)
    assert "packages/build" in caught.value.cause
    assert "ROCWRIGHT_HOME" in caught.value.next_step


def test_room_is_asked_for_what_runs_and_not_for_what_is_in_the_store(
    store: LocalStore, home: Home, tmp_path: Path
) -> None:
    plan = with_disk(small_plan(), 10**15)
    put_output(store, plan.steps[-1], "program", b"x", tmp_path)
    assert check_room(decide(plan, store), home) == 0


def test_the_room_that_a_plan_needs_is_added_up(store: LocalStore, home: Home) -> None:
    assert check_room(decide(with_disk(small_plan(), 10), store), home) == 50
