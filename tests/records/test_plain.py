"""What a build writes without SQLAlchemy is what SQLAlchemy reads, and what it would have written."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from tests.records.test_faults import build
from tests.records.test_records import run as a_run

from rocwright.execution.estimate import took
from rocwright.execution.runs import UnderWay
from rocwright.home import Home
from rocwright.plan.resolve.model import Request
from rocwright.records import schema, write
from rocwright.records.model import Artifact, Run, Sample, StepRun
from rocwright.records.opening import open_records, read_records
from rocwright.records.plain import open_plain

BUILD = """
import sys
from pathlib import Path
from types import SimpleNamespace
from rocwright.execution.runs import UnderWay
from rocwright.execution.estimate import took
from rocwright.home import Home
from rocwright.provenance.sidecars import _logs
from rocwright.records.model import StepRun
from rocwright.plan.resolve.model import Request

home, said = Home(Path(sys.argv[1])), []
assert len(list(took(home))) == int(sys.argv[2])
with UnderWay("build", Request(stack="s", gpu=("g",), base="b"), home, said.append) as under_way:
    under_way.note(StepRun(name="torch", key="k", outcome="built", log="torch.log", seconds=3))
    under_way.folder.mkdir(parents=True, exist_ok=True)
    (under_way.folder / "torch.log").touch()
    under_way.ended("built")
assert not said, said
step = SimpleNamespace(name="torch", key="k")
assert [run for run, _, _ in _logs(SimpleNamespace(home=home), [step])] == [under_way.id]
assert "sqlalchemy" not in sys.modules
"""


def test_a_build_loads_no_sqlalchemy_in_a_new_home_nor_in_an_old_one(home: Home) -> None:
    for known in (0, 1):
        subprocess.run([sys.executable, "-c", BUILD, str(home.path), str(known)], check=True, timeout=60)
    with read_records(home) as records:
        assert [one.outcome for one in records.runs()] == ["built", "built"]
        assert [one.steps[0].name for one in records.runs()] == ["torch", "torch"]


def said_by(path: Path) -> set[str]:
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
        return {" ".join(row[0].replace("(", " ( ").replace(")", " ) ").split()) for row in rows}


def test_the_tables_of_a_new_file_are_those_of_the_schema(home: Home, tmp_path: Path) -> None:
    made = open_plain(home, make=True)
    assert made is not None
    made.close()
    other = Home(tmp_path / "other")
    open_records(other).close()
    assert said_by(home.records) == said_by(other.records)
    assert home.records.stat().st_mode & 0o777 == 0o600


def test_the_columns_are_those_of_the_schema() -> None:
    assert set(write.OF_RUN) == {*schema.runs.c.keys()} - {"number"}
    assert {*write.OF_STEP, "run", "place", "figures"} == {*schema.steps.c.keys()}


def rows(path: Path) -> list[str]:
    """All that is in it, but for the name that each database has for itself."""
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE about SET name = ''")
        return [line for line in connection.iterdump() if line.startswith("INSERT")]


def test_both_ways_of_writing_leave_the_same(home: Home, tmp_path: Path) -> None:
    other = Home(tmp_path / "other")
    plain = open_plain(home, make=True)
    assert plain is not None
    step = StepRun(
        name="torch",
        key="k",
        outcome="built",
        log="torch.log",
        seconds=3,
        error={"cause": "é"},
        needs=("a",),
    )
    made = [Artifact(component="torch", step="torch", filename="t.whl", sha256="a" * 64, size=3)]
    samples = [Sample(step="torch", at=1.5, memory=3, processes=2)]
    with open_records(other) as records:
        for number in range(3):
            told: Run = a_run(number).model_copy(update={"steps": (step,)})
            for one in (plain, records):
                one.put(told, None, (), made, samples, "{}" if told.lock else "")
        assert plain.times() == records.times() != []
        assert plain.built("torch", "k") == records.built("torch", "k") != []
        assert plain.built("torch", "other") == records.built("torch", "other") == []
    plain.close()
    assert rows(home.records) == rows(other.records)


def test_what_needs_more_first_is_left_to_what_does_it(home: Home) -> None:
    assert open_plain(home) is None
    run, _ = build(home)
    with open_records(home):
        pass
    ready = open_plain(home)
    assert ready is not None
    ready.close()
    # a run whose process is gone must be ended
    with sqlite3.connect(home.records) as connection:
        connection.execute("UPDATE runs SET state = 'running'")
        process = connection.execute("SELECT process FROM runs").fetchone()[0]
        gone = process.replace(str(os.getpid()), "999999999", 1)
        connection.execute("UPDATE runs SET process = ?", [gone])
    assert open_plain(home) is None
    with read_records(home) as records:
        assert [(one.id, one.outcome) for one in records.runs()] == [(run.id, "killed")]
    # a run that waits as a file must be taken over
    (home.runs / ".taken-over").unlink(missing_ok=True)
    (home.runs / "x").mkdir(parents=True, exist_ok=True)
    (home.runs / "x" / "run.json").write_text("{}")
    assert open_plain(home) is None
    # another version is refused
    open_records(home).close()
    with sqlite3.connect(home.records) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
    assert open_plain(home) is None


def test_the_times_of_steps_are_found_where_more_is_to_be_done_first(home: Home) -> None:
    build(home)
    (home.runs / ".taken-over").unlink(missing_ok=True)
    (home.runs / "x").mkdir(parents=True, exist_ok=True)
    (home.runs / "x" / "run.json").write_text("{}")
    assert [one.name for one in took(home)] == ["torch"]


def test_a_run_killed_before_its_end_is_on_record_as_killed(home: Home) -> None:
    script = BUILD.replace(
        "    under_way.ended",
        "    import os, time; time.sleep(2); os.kill(os.getpid(), 9)\n    under_way.ended",
    )
    done = subprocess.run([sys.executable, "-c", script, str(home.path), "0"], check=False, timeout=60)
    assert done.returncode == -9
    with read_records(home) as records:
        (one,) = records.runs()
        assert (one.outcome, one.steps[0].outcome) == ("killed", "built")


def test_a_request_goes_on_record_whole(home: Home) -> None:
    said: list[str] = []
    with UnderWay("build", Request(stack="s", gpu=("a", "b"), base="x"), home, said.append) as under_way:
        under_way.note(StepRun(name="torch", key="k", outcome="built"))
        under_way.ended("built")
    with read_records(home) as records:
        (one,) = records.runs()
        assert (one.gpu, one.stack, one.base) == (("a", "b"), "s", "x")
        assert {cell.gpu for cell in records.matrix()} == {"a", "b"}
