"""A database that is locked, full, read-only or damaged; a clock set back; builds that go on all the same."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.records.test_records import run as a_run

from rocbase.errors import ExplainedError, InputError, InternalError, NetworkError
from rocwright.cli import cli
from rocwright.execution.runs import UnderWay
from rocwright.home import Home
from rocwright.plan.resolve.model import Request
from rocwright.records import ended, faults, opening
from rocwright.records.model import Finding, Run, RunOutcome, Sample, StepRun, Which
from rocwright.records.opening import open_records, read_records
from rocwright.records.place import place
from rocwright.records.spool import spool

pytestmark = pytest.mark.timing

REQUEST = Request(stack="s", gpu=("gfx1151",), base="debian:sid")
STEP = StepRun(name="torch", key="k", outcome="built", seconds=3)


def build(home: Home, *steps: StepRun) -> tuple[Run, list[str]]:
    """A run with its record; what it said of it."""
    said: list[str] = []
    with UnderWay("build", REQUEST, home, said.append) as under_way:
        for step in steps or (STEP,):
            under_way.note(step)
        return under_way.ended("built"), said


@pytest.fixture
def locked(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Somebody else writes, and does not end."""
    open_records(home).close()
    monkeypatch.setattr(faults, "WAIT", 0.05)
    holder = sqlite3.connect(home.records, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    yield
    holder.close()


def test_a_build_goes_on_while_the_records_are_locked_and_nothing_is_lost(home: Home, locked: None) -> None:
    findings = [Finding(component="torch", check="wheel", name="canonical form", ok=True, sha256="a" * 64)]
    said: list[str] = []
    with UnderWay("verify", REQUEST, home, said.append) as under_way:
        under_way.note(STEP)
        run = under_way.ended("verified", findings=findings)
    assert run.outcome == "verified"
    (words,) = said
    assert "locked" in words
    assert "Continuing" in words
    with read_records(home) as records:
        assert records.run(run.id) is None


def test_what_could_not_be_written_is_taken_over_by_the_next(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_records(home).close()
    monkeypatch.setattr(faults, "WAIT", 0.05)
    holder = sqlite3.connect(home.records, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    run, said = build(home)
    holder.close()
    assert len(said) == 1
    with read_records(home) as records:
        assert [one.id for one in records.runs()] == [run.id]
        assert [one.run for one in records.matrix()] == [run.id]
    with read_records(home) as records:
        assert records.count() == 1


def test_who_reads_is_not_kept_waiting_by_who_writes(home: Home, locked: None) -> None:
    with open_records(home) as records:
        assert records.runs() == []
        with pytest.raises(InternalError, match="locked"):
            records.put(
                Run(id="x", command="build", started="", seconds=0, stack="", gpu=(), base="", outcome="")
            )


FULL = """
import sys
from pathlib import Path
from rocwright.execution.runs import UnderWay
from rocwright.home import Home
from rocwright.records.model import StepRun
from rocwright.records.opening import open_records
from rocwright.plan.resolve.model import Request

home, disk = Home(Path(sys.argv[1])), Path(sys.argv[1]) / "disk"
open_records(home).close()
(disk / "filling").write_bytes(bytes(1))
try:
    with (disk / "filling").open("ab") as file:
        while True:
            file.write(bytes(4096))
            file.flush()
except OSError:
    pass
said = []
with UnderWay("build", Request(stack="s", gpu=("g",), base="b"), home, said.append) as under_way:
    for number in range(300):
        under_way.note(StepRun(name=f"step {number} " + "x" * 500, key="k", outcome="built"))
    run = under_way.ended("built")
print(run.outcome, said)
"""


def test_a_full_disk_is_told_once_and_the_run_is_kept_beside(home: Home) -> None:
    """The records lie on a small disk of their own, which is full."""
    disk = home.path / "disk"
    disk.mkdir()
    unshared = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    script = f"mount -t tmpfs -o size=400k none {disk} && exec {sys.executable} -c '{FULL}' {home.path}"
    done = subprocess.run(
        [*unshared, "sh", "-c", script],
        env=os.environ | {"ROCWRIGHT_RECORDS": str(disk / "records.sqlite")},
        capture_output=True,
        text=True,
        check=False,
    )
    if "mount" in done.stderr and "denied" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stdout.startswith("built ['not on record: the disk of the records"), done.stdout + done.stderr
    assert done.stdout.count("not on record") == 1
    with read_records(home) as records:
        (told,) = records.runs()
        assert len(told.steps) == 300


def test_read_only_records_can_be_read_and_a_build_says_so_and_goes_on(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, said = build(home)
    assert said == []
    shut(home, monkeypatch)
    with read_records(home) as records:
        assert [one.id for one in records.runs()] == [run.id]
        with pytest.raises(InputError, match="are not writable"):
            records.put(run)
    run, said = build(home)
    assert "are not writable" in said[0]
    assert run.outcome == "built"


def shut(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user without rights sees; root would be let in everywhere."""
    if os.geteuid() == 0:
        allowed = os.access
        shut = {home.records, home.path}
        monkeypatch.setattr(os, "access", lambda path, mode: path not in shut and allowed(path, mode))
    else:
        home.records.chmod(0o400)
        home.path.chmod(0o500)


@pytest.mark.parametrize("harm", ["no database", "a torn page"])
def test_damaged_records_are_told_and_never_thrown_away(home: Home, harm: str) -> None:
    build(home, *(STEP.model_copy(update={"name": f"step {number}"}) for number in range(800)))
    data = bytearray(home.records.read_bytes())
    if harm == "no database":
        data[:100] = b"x" * 100
    else:
        data[4096 : len(data)] = os.urandom(len(data) - 4096)
    home.records.write_bytes(bytes(data))
    run, said = build(home)
    assert "damaged" in said[0]
    assert run.outcome == "built"
    with pytest.raises(ExplainedError, match="damaged") as caught, read_records(home) as records:
        records.runs()
    assert "--repair" in caught.value.next_step
    assert home.records.read_bytes() == bytes(data)


def test_doctor_goes_on_without_records_that_cannot_be_read(home: Home) -> None:
    home.records.write_bytes(b"no database" * 1000)
    done = CliRunner().invoke(cli, ["doctor", "--no-engines", "--json"])
    (told,) = [one for one in json.loads(done.stdout)["findings"] if one["name"] == "records"]
    assert "damaged" in told["what"]


def test_a_clock_that_was_set_back_does_not_turn_the_order_around(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = build(home)
    monkeypatch.setattr("rocwright.execution.runs.now", lambda: "2001-01-01T00:00:00Z")
    monkeypatch.setattr("rocwright.execution.runs.new_run_id", lambda: "20010101T000000.000000Z-aaaaaa")
    later, _ = build(home)
    with read_records(home) as records:
        assert [one.id for one in records.runs()] == [later.id, first.id]
        assert records.matrix()[0].run == later.id


KILLED = """
import os, sys, time
from pathlib import Path
from rocwright.execution.runs import UnderWay
from rocwright.home import Home
from rocwright.records.model import StepRun
from rocwright.records.opening import read_records
from rocwright.plan.resolve.model import Request

home = Home(Path(sys.argv[1]))
under_way = UnderWay("build", Request(stack="s", gpu=("g",), base="b"), home, print)
under_way.note(StepRun(name="torch", key="k", outcome="", state="running"))
under_way.note(StepRun(name="vllm", key="k", outcome="", state="queued"))
while True:
    with read_records(home) as records:
        if any(run.steps for run in records.runs()):
            os.kill(os.getpid(), 9)
    time.sleep(0.01)
"""


def test_a_run_whose_process_was_killed_is_ended_by_the_next_who_looks(home: Home) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(home.path)], check=False)
    with sqlite3.connect(home.records) as raw:
        assert raw.execute("SELECT state FROM runs").fetchall() == [("running",)]
    raw.close()
    with read_records(home) as records:
        (run,) = records.runs()
        assert (run.state, run.outcome) == ("ended", "killed")
        assert {one.name: one.outcome for one in run.steps} == {"torch": "killed", "vllm": "skipped"}


def test_what_was_killed_took_as_long_as_it_was_seen(home: Home) -> None:
    run, _ = build(home)
    done, *_ = run.steps
    step = {"state": "running", "outcome": "", "seconds": 0.0, "started": "2026-11-23T16:12:33Z"}
    gone = {**step, "started": "2026-11-23T16:10:35Z", "process": f"4194305-1-{ended._machine()}"}
    killed = run.model_copy(update={**gone, "steps": (done.model_copy(update=step),)})
    seen = [Sample(step=done.name, at=at, memory=1, processes=1) for at in (123.0, 933.9)]
    with open_records(home) as records:
        records.put(killed, samples=seen)
    with open_records(home) as records:
        (found,) = records.runs()
        assert (found.outcome, found.seconds) == ("killed", 933.9)
        assert found.steps[0].outcome == "killed"
        assert found.steps[0].seconds == pytest.approx(933.9 - 118)


def test_a_run_that_ended_while_somebody_looked_stays_as_it_ended(home: Home) -> None:
    """It was read as running; then it ended, and its process with it."""
    run, _ = build(home)
    with open_records(home) as records:
        records.database.write(partial(opening._end, run=ended.ended_as("killed", run), state="running"))
        assert [one.outcome for one in records.runs()] == ["built"]


def test_what_runs_on_another_machine_of_the_same_name_is_left_alone(home: Home) -> None:
    run, _ = build(home)
    other = {"state": "running", "outcome": "", "process": "1-1-another"}
    with open_records(home) as records:
        records.put(run.model_copy(update=other))
    with open_records(home) as records:
        assert [one.state for one in records.runs()] == ["running"]


MANY = """
import sys
from pathlib import Path
from rocwright.execution.runs import UnderWay
from rocwright.home import Home
from rocwright.records.model import StepRun
from rocwright.plan.resolve.model import Request

home, stack = Home(Path(sys.argv[1])), sys.argv[2]
for number in range(8):
    with UnderWay("build", Request(stack=stack, gpu=("g",), base="b"), home, sys.exit) as under_way:
        for step in range(5):
            for state, outcome in (("running", ""), ("ended", "built")):
                one = StepRun(name=f"s{step}", key="k", state=state, outcome=outcome, seconds=number)
                under_way.note(one)
        under_way.ended("built")
"""


def test_several_builds_and_a_reader_at_once_lose_nothing(home: Home) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", MANY, str(home.path), f"stack-{one}"], stderr=subprocess.PIPE)
        for one in range(3)
    ]
    with open_records(home) as records:
        while any(one.poll() is None for one in writers):
            for run in records.runs(Which(state="ended")):
                assert len(run.steps) == 5
        assert [one.communicate()[1] for one in writers] == [b"", b"", b""]
        assert records.count(Which(state="ended", outcome="built")) == 24
        for cell in records.matrix():
            newest = records.runs(Which(stack=cell.stack), limit=1)[0]
            assert cell.run == cell.seen["built"].run == newest.id
        assert {one.seconds for one in records.times()} == {7}


def test_runs_kept_as_files_are_taken_over_once(home: Home) -> None:
    found = Finding(component="torch", check="smoke", name="mm", ok=True, device="RX 580", sha256="a" * 64)
    for number in (1, 2):
        spool(home, RunOutcome(run=a_run(number), findings=(found,)))
    cut = home.runs / "run-3" / "run.json"
    cut.parent.mkdir()
    cut.write_text("cut sh")
    for _ in range(2):
        with read_records(home) as records:
            assert [one.id for one in records.runs()] == ["run-2", "run-1"]
            assert [one.device for one in records.findings(sha256="a" * 64)] == ["RX 580", "RX 580"]
            assert [one.seconds for one in records.times()] == [2]


def test_a_new_database_takes_the_files_over_again(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    test_runs_kept_as_files_are_taken_over_once(home)
    monkeypatch.setenv("ROCWRIGHT_RECORDS", str(tmp_path / "elsewhere.sqlite"))
    with read_records(home) as records:
        assert records.count() == 2


def test_a_server_that_is_not_there_and_a_place_that_is_none_are_told(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ROCWRIGHT_RECORDS", f"postgresql://me:secret@/x?host={tmp_path}")
    with pytest.raises(NetworkError, match="does not answer") as caught:
        open_records(home)
    assert "secret" not in str(caught.value.as_dict())
    run, said = build(home)
    assert "does not answer" in said[0]
    assert (home.runs / run.id / "run.json").exists()
    monkeypatch.setenv("ROCWRIGHT_RECORDS", "mysql://x/y")
    with pytest.raises(InputError, match="is not a supported URL or path"):
        open_records(home)


def test_the_setting_stands_behind_the_variable(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert place(home) == home.records
    (home.path / "config.toml").write_text(f'records = "{tmp_path}/mine.sqlite"\n')
    assert place(home) == tmp_path / "mine.sqlite"
    monkeypatch.setenv("ROCWRIGHT_RECORDS", "postgresql://h/d")
    assert place(home) == "postgresql://h/d"


def history(*words: str) -> Result:
    return CliRunner().invoke(cli, ["history", *words])


def test_history_is_filtered_and_shows_one_run_in_full(home: Home) -> None:
    assert "nothing has been built" in history().stdout
    run, _ = build(home)
    error = {"class": "compile", "message": "it broke", "issue": "cmake-minimum"}
    with UnderWay("build", REQUEST, home, pytest.fail) as under_way:
        under_way.note(STEP.model_copy(update={"outcome": "failed", "error": error}))
        failed = under_way.ended("failed")
    assert [one["id"] for one in json.loads(history("--json").stdout)] == [failed.id, run.id]
    assert [one["id"] for one in json.loads(history("--failed", "--json").stdout)] == [failed.id]
    assert history("--step", "vllm").stdout == "no run matches\n"
    assert len(history("--since", "1h", "--stack", "s").stdout.splitlines()) == 3
    assert history("--since", "2999-01-01").stdout == "no run matches\n"
    assert history("--since", "soon").exit_code == 2
    assert "compile: cmake-minimum" in history(failed.id).stdout
    assert isinstance(history("never").exception, InputError)


def test_without_sqlite_companions_a_copy_can_be_read_from_a_closed_folder(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = build(home)
    copy = Home(tmp_path / "copy")
    copy.path.mkdir()
    shutil.copy(home.records, copy.records)
    shut(copy, monkeypatch)
    with read_records(copy) as records:
        assert records.runs()[0].id == run.id
