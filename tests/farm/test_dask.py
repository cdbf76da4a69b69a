"""Steps on other machines: a real coordinator, real workers and S3 server, and what breaks between them."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from distributed import Future
from samples.project import make_sources, open_project, put_roots
from tests.engines import must_work
from tests.execution.conftest import Workshop, put_root
from tests.farm.machines import Running, make_homes, running, until
from tests.store.servers import reach, s3

from rocbase.errors import FailureClass, InputError, InterruptedByUser
from rocbase.files.atomic import sha256_file
from rocwright.cli import cli
from rocwright.config import config_file
from rocwright.execution.executor import Event, Task
from rocwright.execution.options import BuildOptions
from rocwright.execution.outcome import StepsOutcome
from rocwright.execution.progress import PlainProgress
from rocwright.farm.dask.executor import DaskExecutor
from rocwright.farm.executors import run_steps
from rocwright.flow import build
from rocwright.home import Home
from rocwright.model.steps import Plan, Resources, RunAction, Step
from rocwright.plan.decide import decide
from rocwright.sandbox import probe_all
from rocwright.store import open_store
from rocwright.store.signing.keys import key_of

pytestmark = pytest.mark.timing


@dataclass
class Farm:
    """Who asks, the workers by name, and what the workshop of who asks makes."""

    workshop: Workshop
    address: str
    up: Running
    workers: dict[str, Running]
    homes: dict[str, Path]

    def build(self, *steps: Step, shards: int | None = None) -> StepsOutcome:
        plan = Plan(
            steps=(self.workshop.root, *self.workshop.trees.values(), *steps), artifacts=(steps[-1].name,)
        )
        decisions = decide(plan, self.workshop.store)
        logs = self.workshop.folder / "logs"
        logs.mkdir(exist_ok=True)
        options = BuildOptions(engine=self.workshop.engine, executor="dask", shards=shards)
        progress = PlainProgress()
        return run_steps(decisions, self.workshop.store, self.workshop.home, options, logs, {}, progress)

    def log(self, step: Step) -> str:
        return (self.workshop.folder / "logs" / f"{step.name}.log").read_text()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3() as url:
        yield url


@contextlib.contextmanager
def farm_at(server: str, root: Path, folder: Path, probed: Path) -> Iterator[Farm]:
    """A coordinator and two workers."""
    must_work({one.engine: one for one in probe_all(probed)}["bubblewrap"])
    homes = make_homes(folder / "homes")
    with ExitStack() as stack:
        monkeypatch = stack.enter_context(pytest.MonkeyPatch.context())
        reach(monkeypatch, server)
        monkeypatch.setenv("ROCWRIGHT_HOME", str(homes["asks"]))
        up = stack.enter_context(running(homes["asks"], "farm", "up", "--port", "0"))
        address = up.wait_for("coordinator at").split()[-1]
        (homes["asks"] / "config.toml").write_text(f'[farm]\nscheduler = "{address}"\n')
        workers = {
            name: stack.enter_context(running(homes[name], "farm", "worker", address, "--name", name))
            for name in ("one", "two")
        }
        for one in workers.values():
            one.wait_for("is a worker of")
        store = open_store(f"s3://lab/{folder.name}")
        workshop = Workshop(Home(homes["asks"]), store, "bubblewrap", folder, put_root(store, root))
        yield Farm(workshop, address, up, workers, homes)


@pytest.fixture(scope="module")
def shared(
    server: str, tiny_root: Path, probed: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Farm]:
    with farm_at(server, tiny_root, tmp_path_factory.mktemp("farm"), probed) as farm:
        yield farm


@pytest.fixture
def farm(shared: Farm, server: str, monkeypatch: pytest.MonkeyPatch) -> Farm:
    """The farm of all tests that leave it as it was."""
    reach(monkeypatch, server)
    monkeypatch.setenv("ROCWRIGHT_HOME", str(shared.homes["asks"]))
    return shared


@pytest.fixture
def frail(server: str, tiny_root: Path, probed: Path, tmp_path: Path) -> Iterator[Farm]:
    """A farm of one test, which kills some of it."""
    with farm_at(server, tiny_root, tmp_path, probed) as farm:
        yield farm


def test_steps_run_on_workers_and_give_the_bytes_of_one_machine(farm: Farm) -> None:
    shop = farm.workshop
    # and what a worker may do in the bucket, a step may not know
    parts = [
        shop.step(f"echo said {name}; env", f"echo {name} > $OUT/result", name=name)
        for name in ("a", "b", "c")
    ]
    last = shop.step("cat $IN/*/result > $OUT/result", name="all", inputs={one.name: one for one in parts})
    outcome = farm.build(*parts, last)
    assert outcome.failures == []
    assert {one.name: one.outcome for one in outcome.steps} == dict.fromkeys(("a", "b", "c", "all"), "built")
    record = shop.store.record(last.key)
    assert record is not None and record.origin is not None
    assert record.origin.by in ("one", "two")
    assert shop.text(record) == "a\nb\nc\n"
    assert "said a" in farm.log(parts[0])
    assert "PATH=" in farm.log(parts[0])
    assert not any("AWS" in farm.log(one) or "a-secret" in farm.log(one) for one in parts)
    assert not [*(farm.homes["asks"] / "work").glob("*")]


def busy(farm: Farm, mark: str) -> str:
    """The name of the worker whose sandbox runs `sleep MARK`, "" where none does."""
    for name, one in farm.workers.items():
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(one.process.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    if child.cmdline() == ["sleep", mark]:
                        return name
    return ""


def sleeps(mark: str) -> bool:
    """Whether anything of this machine runs `sleep MARK`."""
    return any(one.info["cmdline"] == ["sleep", mark] for one in psutil.process_iter(["cmdline"]))


@contextlib.contextmanager
def building(farm: Farm, *steps: Step) -> Iterator[list[StepsOutcome]]:
    """A build in another thread, while something happens; its outcome once it has ended."""
    told: list[StepsOutcome] = []
    thread = threading.Thread(target=lambda: told.append(farm.build(*steps)))
    thread.start()
    try:
        yield told
    finally:
        thread.join(400)
        assert not thread.is_alive()


def test_a_step_whose_worker_is_killed_runs_elsewhere_and_leaves_nothing_running(frail: Farm) -> None:
    shop, mark = frail.workshop, "1313.1"
    step = shop.step(f"sleep {mark}", "echo done > $OUT/result")
    with building(frail, step) as told:
        until(lambda: bool(busy(frail, mark)))
        first = busy(frail, mark)
        [second] = frail.workers.keys() - {first}
        os.killpg(frail.workers[first].process.pid, signal.SIGKILL)
        # what the killed one had may be seen for a moment
        until(lambda: busy(frail, mark) == second)
        survivor = frail.workers[second].process
        for one in psutil.Process(survivor.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if one.cmdline() == ["sleep", mark]:
                    one.terminate()
    [outcome] = told
    # the first was lost, the second has the failure of a command that was ended
    assert [one.outcome for one in outcome.steps] == ["again", "failed"]
    assert outcome.failures[0][1].failure is not FailureClass.SANDBOX


def test_a_step_that_no_machine_is_fit_for_is_refused_with_the_nearest(farm: Farm) -> None:
    step = farm.workshop.step("touch $OUT/result", resources=Resources(memory=90 * 10**12, limit=60))
    outcome = farm.build(step)
    [(name, error)] = outcome.failures
    assert name == "hello"
    assert error.message == "no machine of the farm can run hello"
    assert re.match("the nearest is (one|two): ", error.cause)
    assert "memory of 83819.03 GiB" in error.cause


def test_a_worker_that_is_asked_to_end_ends_what_it_has_first(frail: Farm) -> None:
    shop, mark = frail.workshop, "2.131"
    step = shop.step(f"sleep {mark}", "echo done > $OUT/result")
    with building(frail, step) as told:
        until(lambda: bool(busy(frail, mark)))
        name = busy(frail, mark)
        assert frail.workers[name].end() == 0
    [outcome] = told
    assert outcome.failures == []
    record = shop.store.record(step.key)
    assert record is not None and record.origin is not None and record.origin.by == name
    # and what comes now runs on the other
    other = shop.step("echo more > $OUT/result", name="more")
    assert frail.build(other).failures == []


@pytest.mark.real
@pytest.mark.nightly
def test_a_worker_that_is_asked_twice_ends_at_once_and_what_it_had_runs_on_the_other(frail: Farm) -> None:
    shop, mark = frail.workshop, "9.131"
    step = shop.step(f"sleep {mark}", "echo done > $OUT/result")
    with building(frail, step) as told:
        until(lambda: bool(busy(frail, mark)))
        name = busy(frail, mark)
        frail.workers[name].process.send_signal(signal.SIGTERM)
        frail.workers[name].wait_for("ending: nothing more is taken")
        assert frail.workers[name].end() == 0
    [outcome] = told
    assert outcome.failures == []
    record = shop.store.record(step.key)
    assert record is not None and record.origin is not None and record.origin.by not in ("", name)


@pytest.mark.real
@pytest.mark.nightly
def test_a_result_that_went_with_its_worker_is_asked_for_again(
    frail: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, gone = frail.workshop, list[str]()
    fetched = DaskExecutor._ended

    def late(self: DaskExecutor, task: Task, future: Future[str]) -> Event:
        if not gone:
            record = shop.store.record(task.step.key)
            assert record is not None and record.origin is not None
            gone.append(record.origin.by)
            assert frail.workers[gone[0]].end() == 0
        return fetched(self, task, future)

    monkeypatch.setattr(DaskExecutor, "_ended", late)
    with building(frail, shop.step("echo done > $OUT/result")) as told:
        pass
    assert gone
    assert told[0].failures == []


def test_what_is_interrupted_is_ended_on_its_worker(farm: Farm) -> None:
    mark = "1313.3"
    step = farm.workshop.step(f"sleep {mark}", "touch $OUT/result")

    def interrupt() -> None:
        until(lambda: bool(busy(farm, mark)))
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(InterruptedByUser):
        farm.build(step)
    until(lambda: not sleeps(mark), 5)


@pytest.mark.real
@pytest.mark.nightly
def test_steps_outlive_their_coordinator_and_are_found_by_the_next_build(frail: Farm) -> None:
    shop, mark = frail.workshop, "6.131"
    step = shop.step(f"sleep {mark}", "echo done > $OUT/result")
    port = frail.address.rpartition(":")[2]
    with building(frail, step) as told:
        until(lambda: bool(busy(frail, mark)))
        os.killpg(frail.up.process.pid, signal.SIGKILL)
    [(_, error)] = told[0].failures
    assert error.message == "the coordinator of the farm is gone"
    until(lambda: shop.store.record(step.key) is not None)
    with running(frail.homes["asks"], "farm", "up", "--port", port) as again:
        again.wait_for("coordinator at")
        for one in frail.workers.values():
            one.wait_for("is a worker of")
        assert frail.build(step).steps == []
        assert frail.build(shop.step("echo more > $OUT/result", name="more")).failures == []


@pytest.mark.parametrize("late", [0.0, pytest.param(25.0, marks=[pytest.mark.real, pytest.mark.nightly])])
def test_what_is_submitted_to_a_coordinator_that_is_gone_is_told_as_gone(
    frail: Farm, monkeypatch: pytest.MonkeyPatch, late: float
) -> None:
    """Also once the client has given it up, after 20 s: dask takes it then, and tells nothing of it."""
    shop, submit = frail.workshop, DaskExecutor.submit

    def submit_late(executor: DaskExecutor, task: Task) -> None:
        if task.step.name == "second":
            os.killpg(frail.up.process.pid, signal.SIGKILL)
            until(lambda: executor._client.status != "running")
            time.sleep(late)
        submit(executor, task)

    monkeypatch.setattr(DaskExecutor, "submit", submit_late)
    first = shop.step("echo > $OUT/result", name="first")
    second = shop.step("echo > $OUT/result", name="second", inputs={"first": first})
    with building(frail, first, second) as told:
        pass
    [(name, error)] = told[0].failures
    assert (name, error.message) == ("second", "the coordinator of the farm is gone")


@pytest.mark.real
@pytest.mark.nightly
def test_what_dask_says_nothing_of_is_told_as_gone_with_its_coordinator(
    frail: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DaskExecutor, "_done", lambda executor, task, future: None)
    mark = "61.31"
    with building(frail, frail.workshop.step(f"sleep {mark}")) as told:
        until(lambda: bool(busy(frail, mark)))
        os.killpg(frail.up.process.pid, signal.SIGKILL)
    [(_, error)] = told[0].failures
    assert error.message == "the coordinator of the farm is gone"


@pytest.mark.real
@pytest.mark.nightly
def test_a_worker_that_runs_a_step_is_soon_found_by_a_coordinator_that_came_back(frail: Farm) -> None:
    mark, port = "45.131", frail.address.rpartition(":")[2]
    with building(frail, frail.workshop.step(f"sleep {mark}", "echo done > $OUT/result")):
        until(lambda: bool(busy(frail, mark)))
        has = frail.workers[busy(frail, mark)]
        os.killpg(frail.up.process.pid, signal.SIGKILL)
    with running(frail.homes["asks"], "farm", "up", "--port", port) as again:
        again.wait_for("coordinator at")
        has.wait_for("is a worker of", 20)
        assert sleeps(mark)


@pytest.mark.real
@pytest.mark.nightly
def test_a_worker_leaves_a_coordinator_that_says_nothing(tmp_path: Path) -> None:
    """As of a machine that was switched off: its connections stay, and nothing comes."""
    home = make_homes(tmp_path)["one"]
    with socket.create_server(("127.0.0.1", 0)) as silent, ExitStack() as stack:
        address = f"tls://127.0.0.1:{silent.getsockname()[1]}"
        worker = stack.enter_context(running(home, "farm", "worker", address))
        stack.enter_context(silent.accept()[0])
        silent.close()
        up = stack.enter_context(running(home, "farm", "up", "--port", address.rpartition(":")[2]))
        up.wait_for("coordinator at")
        worker.wait_for("is a worker of", 40)


def test_a_worker_that_looks_for_its_coordinator_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    home = make_homes(tmp_path)["one"]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tls://127.0.0.1:{silent.getsockname()[1]}"
        with running(home, "farm", "worker", address) as worker, silent.accept()[0]:
            worker.process.send_signal(signal.SIGTERM)
            assert worker.process.wait(15) == 0


def test_a_project_is_built_over_the_farm_and_laid_out_here(farm: Farm, tiny_root: Path) -> None:
    home, url = farm.workshop.home, farm.workshop.store.url
    config_file().write_text(f'store = "{url}"\n\n[farm]\nscheduler = "{farm.address}"\n')
    sources = farm.workshop.folder / "sources"
    make_sources(sources)
    project = open_project(sources, home.path)
    put_roots(project, tiny_root)
    options = BuildOptions(engine=farm.workshop.engine, executor="dask")
    built = build(project, project.locked, options, PlainProgress())
    assert built.failures == ()
    assert built.artifacts
    for one in built.artifacts:
        assert sha256_file(one.path) == one.sha256
    # and there is nothing left to do
    assert build(project, project.locked, options, PlainProgress()).run.steps == ()


def test_more_steps_are_ready_at_once_than_events_are_kept(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever hands them over takes the events too, and must not wait for himself."""
    monkeypatch.setattr("rocwright.farm.dask.executor.MOST_EVENTS", 1)
    monkeypatch.setattr("rocwright.farm.dask.executor.LOOK", 0.1)  # asks the coordinator at each turn
    parts = [farm.workshop.step("echo > $OUT/result", name=f"part-{number}") for number in range(4)]
    last = farm.workshop.step("echo > $OUT/result", name="last", inputs={one.name: one for one in parts})
    with building(farm, *parts, last) as told:
        pass
    assert told[0].failures == []
    assert len(told[0].steps) == 5


def test_without_certificates_nothing_listens_beyond_this_machine(farm: Farm) -> None:
    for one in (farm.up, *farm.workers.values()):
        listening = [
            each.laddr.ip
            for each in psutil.Process(one.process.pid).net_connections()
            if each.status == "LISTEN"
        ]
        assert set(listening) == {"127.0.0.1"}


def test_no_step_waits_behind_a_long_one_where_another_machine_has_room(farm: Farm) -> None:
    shop, mark, wide = farm.workshop, "1414.1", Resources(cores=64, limit=120)
    long = shop.step(f"sleep {mark} || touch $OUT/result", name="long", resources=wide)
    short = [
        shop.step(f"echo {name} > $OUT/result", name=name, resources=wide) for name in ("one", "two", "three")
    ]
    last = shop.step("touch $OUT/result", name="all", inputs={one.name: one for one in (long, *short)})
    with building(farm, long, *short, last) as told:
        until(lambda: sleeps(mark) and all(shop.store.record(one.key) for one in short))
        for process in psutil.process_iter(["cmdline"]):
            if process.info["cmdline"] == ["sleep", mark]:
                process.terminate()
    assert [one.outcome for one in told[0].steps] == ["built"] * 5
    assert [one.name for one in told[0].steps][-2:] == ["long", "all"]


def test_who_is_fit_for_a_step_is_told_with_what_the_others_lack(farm: Farm) -> None:
    words = ("farm", "explain", "gfx-smoke", "gfx-smoke", "--scheduler", farm.address)
    told = CliRunner().invoke(cli, [*words, "--json"])
    assert told.exit_code == 0, told.output
    here = {one["name"]: one["fits"] for one in json.loads(told.stdout)["workers"]}
    assert here == {"one": True, "two": True}
    told = CliRunner().invoke(cli, [*words, "--json", "--arch", "aarch64"])
    lacks = {one["name"]: one["lacks"] for one in json.loads(told.stdout)["workers"]}
    assert lacks == {name: [f"it is {platform.machine()}, not aarch64"] for name in ("one", "two")}
    assert "no worker can run it" in CliRunner().invoke(cli, [*words, "--arch", "aarch64"]).stdout
    wrong = CliRunner().invoke(cli, ["farm", "explain", "x", "gfx-smoke", "--scheduler", farm.address])
    assert isinstance(wrong.exception, InputError) and "gfx-smoke" in wrong.exception.cause


def test_shards_run_on_the_workers_and_the_record_names_who_made_them(farm: Farm) -> None:
    shop = farm.workshop
    # what a compiler leaves in its cache; here by hand, as this root has none
    fill = 'if [ "${ROCWRIGHT_SHARD-}" ]; then touch /build/shard/cache/of-${ROCWRIGHT_SHARD%/*}; exit 0; fi'
    step = shop.step("true", f"{fill}; ls /build/shards > $OUT/result")
    assert isinstance(step.action, RunAction)
    step = step.model_copy(update={"action": step.action.model_copy(update={"split": 2})})
    outcome = farm.build(step, shards=2)
    assert [one.outcome for one in outcome.steps] == ["built"] * 3
    record = shop.store.record(step.key)
    assert record is not None and record.origin is not None
    assert shop.text(record) == "of-1\nof-2\n"
    keys = {name: key_of((home / "attest.pub").read_bytes(), name).keyid for name, home in farm.homes.items()}
    makers = {keys["one"], keys["two"]}
    # a worker does not name itself
    assert {one.keyid for one in record.shards} <= {"", *makers} - {record.origin.keyid}
    assert len(record.shards) == 2
