"""Steps as jobs of a real cluster: two machines that are processes of this one."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.execution.conftest import Workshop
from tests.execution.conftest import workshop as workshop
from tests.farm.cluster import MEMORY, Cluster, cluster
from tests.farm.machines import until

from rocbase.errors import InterruptedByUser
from rocwright.execution.executor import Task
from rocwright.execution.options import BuildOptions
from rocwright.execution.outcome import StepsOutcome
from rocwright.execution.progress import PlainProgress
from rocwright.farm.executors import run_steps
from rocwright.farm.slurm import WAITS, SlurmExecutor, _Job, _State
from rocwright.model.steps import Plan, Resources, Step
from rocwright.plan.decide import decide


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("slurm")) as found:
        yield found


@pytest.fixture(autouse=True)
def here(slurm: Cluster, workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.settings))
    monkeypatch.setenv("ROCWRIGHT_HOME", str(workshop.home.path))


def build(workshop: Workshop, *steps: Step) -> StepsOutcome:
    plan = Plan(steps=(workshop.root, *workshop.trees.values(), *steps), artifacts=(steps[-1].name,))
    logs = workshop.folder / "logs"
    logs.mkdir(exist_ok=True)
    options = BuildOptions(engine=workshop.engine, executor="slurm")
    decisions = decide(plan, workshop.store)
    return run_steps(decisions, workshop.store, workshop.home, options, logs, {}, PlainProgress())


def sleeps(mark: str) -> bool:
    return any(one.info["cmdline"] == ["sleep", mark] for one in psutil.process_iter(["cmdline"]))


def test_steps_are_jobs_and_give_what_they_give_here(workshop: Workshop) -> None:
    first = workshop.step("echo said it", "tr a-z A-Z < file > $OUT/result", name="first")
    last = workshop.step("cat $IN/first/result > $OUT/result", name="last", inputs={"first": first})
    outcome = build(workshop, first, last)
    assert outcome.failures == []
    assert [one.outcome for one in outcome.steps] == ["built", "built"]
    record = workshop.store.record(last.key)
    assert record is not None
    assert workshop.text(record) == "TEXT\n"
    assert "said it" in (workshop.folder / "logs/first.log").read_text()
    # nothing is left in the folder of jobs
    assert not [*workshop.home.work.glob("*slurm*")]


def test_a_step_that_fails_tells_its_own_failure(workshop: Workshop) -> None:
    outcome = build(workshop, workshop.step("echo no; exit 3", "touch $OUT/result"))
    [(_, error)] = outcome.failures
    assert error.failure.value == "compile"
    assert "exit 3" in error.message or "3" in error.message


def test_what_no_machine_has_is_refused_before_anything_starts(workshop: Workshop) -> None:
    step = workshop.step("touch $OUT/result", resources=Resources(memory=90 * 10**9, limit=60))
    [(_, error)] = build(workshop, step).failures
    assert error.message == "no machine of the farm can run hello"
    assert "the nearest is n" in error.cause
    assert f"{MEMORY / 1024:.2f} GiB memory of 83.82 GiB" in error.cause


def test_a_step_that_has_no_machine_yet_is_told_with_the_reason_of_the_cluster(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = Resources(cores=64, limit=120)
    parts = {
        name: workshop.step(f"sleep 5; echo {name} > $OUT/result", name=name, resources=wide)
        for name in ("a", "b", "c")
    }
    outcome = build(workshop, *parts.values(), workshop.step("touch $OUT/result", name="all", inputs=parts))
    assert outcome.failures == []
    said = [line for line in "".join(capsys.readouterr()).splitlines() if "waits for room" in line]
    assert len(said) == 1, "once, while it waits a few seconds"
    assert re.search("[abc] waits for room: (Resources|Priority)", said[0])


def test_of_many_that_wait_some_are_named_and_the_others_are_counted(workshop: Workshop) -> None:
    said: list[str] = []
    executor = SlurmExecutor(workshop.home, BuildOptions(), said.append)
    for number in range(5):
        step = workshop.step("true", name=f"part-{number}")
        task = Task(step=step, store=workshop.store.url, jobs=1)
        job = _Job(str(number), task, 1, 0, workshop.folder / "report", workshop.folder / "log")
        executor._jobs[task.id] = job
    waits = {str(number): _State("PENDING", "", "Resources") for number in range(5)}
    executor._looked = 1.0
    executor._say_waiting({name: _State("PENDING", "", "None") for name in waits})
    assert said == [], "the cluster has not looked at them yet"
    executor._say_waiting(waits)
    named = "; ".join(f"part-{number} waits for room: Resources" for number in range(3))
    assert said == [f"{named}; so do 2 other steps"]
    executor._looked += WAITS
    executor._say_waiting(waits)
    assert len(said) == 1, "again after a minute"
    executor._looked += 1
    executor._say_waiting({"4": _State("PENDING", "", "Prio\x1brity")})
    assert said[1:] == ["part-4 waits for room: Prio\N{REPLACEMENT CHARACTER}rity"]
    executor._say_waiting({})
    executor._say_waiting(waits)
    assert len(said) == 3, "what waits anew is told at once"


def test_what_is_interrupted_is_ended_on_its_machine(workshop: Workshop) -> None:
    mark = "1414.1"
    step = workshop.step(f"sleep {mark}", "touch $OUT/result")

    def interrupt() -> None:
        until(lambda: sleeps(mark))
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(InterruptedByUser):
        build(workshop, step)
    until(lambda: not sleeps(mark), 10)


def test_a_step_whose_machine_goes_runs_on_the_other(workshop: Workshop, tmp_path: Path) -> None:
    mark = "4.1414"
    step = workshop.step(f"sleep {mark}", "echo done > $OUT/result")
    with cluster(tmp_path / "two") as other, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(other.settings))
        told: list[StepsOutcome] = []
        thread = threading.Thread(target=lambda: told.append(build(workshop, step)))
        thread.start()
        until(lambda: sleeps(mark))
        [busy] = [name for name, state in other.state().items() if state in ("mix", "alloc")]
        victim = other.nodes[busy]
        # its daemon and the sandbox go together, as with a machine that is switched off
        children = psutil.Process(victim.pid).children(recursive=True)
        for one in psutil.process_iter(["cmdline"]):
            if one.info["cmdline"] and "slurmstepd" in one.info["cmdline"][0]:
                children += [one, *one.children(recursive=True)]
        os.killpg(victim.pid, signal.SIGKILL)
        for one in children:
            # some have gone with it
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        thread.join(120)
        assert not thread.is_alive()
    [outcome] = told
    assert [one.outcome for one in outcome.steps] == ["again", "built"]
    assert outcome.steps[0].error["message"] == f"the step was lost with {busy}, at attempt 1"
