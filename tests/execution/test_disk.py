"""A build stops in order before a disk is full."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.execution.conftest import Workshop
from tests.execution.test_scheduler import log, outcomes, processes

from rocbase.errors import FailureClass, OutOfDiskError
from rocwheel_samples.tables import each
from rocwright.diagnosis.facts import host_facts
from rocwright.execution.disk import DiskWatch, Volume, check_room, how_to_free, places, storage_of, volumes
from rocwright.execution.options import BuildOptions
from rocwright.execution.outcome import StepsOutcome
from rocwright.execution.progress import PlainProgress
from rocwright.execution.workspace import Workspace
from rocwright.farm.executors import run_steps
from rocwright.home import Home
from rocwright.model.steps import Plan, Resources, Step, TreeAction
from rocwright.plan.decide import Decision, State, decide
from rocwright.sandbox import ENGINES
from rocwright.store.gc import check_whole

pytestmark = pytest.mark.timing

MIB = 2**20
GIB = 1024**3
FILL = "i=0; while :; do i=$((i+1)); head -c 500K /dev/zero > $OUT/$i; sleep 0.05; done"


@pytest.fixture
def small_home(home: Home) -> Iterator[Home]:
    """A home on a file system of 300 MiB, 6 MiB of which are its reserve."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", home.path], check=False)
    if done.returncode != 0:
        pytest.skip("this machine does not let root mount")
    yield home
    subprocess.run(["umount", "--lazy", home.path], check=True)


def build(workshop: Workshop, *steps: Step, keep: bool = False) -> StepsOutcome:
    plan = Plan(
        steps=(workshop.root, *workshop.trees.values(), *steps), artifacts=tuple(one.name for one in steps)
    )
    return run_steps(
        decide(plan, workshop.store),
        workshop.store,
        workshop.home,
        BuildOptions(jobs=2, engine=workshop.engine, keep_stopped=keep),
        workshop.home.runs / "run",
        {},
        PlainProgress(),
    )


def fill(home: Home, left: int) -> None:
    """Leave `left` bytes free beyond the reserve."""
    home.path.mkdir(exist_ok=True)
    [found] = volumes({"home": home.path})
    with (home.path / "filler").open("ab") as file:
        file.write(b"x" * (found.free - found.reserve - left))


def test_before_a_disk_is_full_all_that_writes_there_is_stopped_in_order(
    small_home: Home, workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcomes(build(workshop, workshop.step("touch $OUT/result", name="first"))) == {"first": "built"}
    fill(small_home, 25 * MIB)
    needs = Resources(limit=60, disk=2 * 2**30)
    steps = [
        workshop.step(FILL, name="large", resources=needs),
        workshop.step("echo slow", "sleep 66.6", "touch $OUT/result", name="other"),
    ]
    steps += [workshop.step("touch $OUT/result", name="later", inputs={"x": steps[0]})]
    told = build(workshop, *steps)
    assert outcomes(told) == {"large": "failed", "other": "failed", "later": "skipped"}
    errors = dict(told.failures)
    assert {one.failure for one in errors.values()} == {FailureClass.OUT_OF_DISK}
    assert "stopped before the disk of" in errors["large"].message
    assert "of 300.0 MiB are left" in errors["large"].message
    assert "and was known to need 2.00 GiB; its folder is removed" in errors["large"].cause
    assert errors["large"].cause.startswith("this step had written")
    assert errors["other"].cause.startswith("large had written"), "the one that did not fill it is not blamed"
    assert Path(errors["large"].subject).is_relative_to(small_home.path)
    assert "running steps may need" in capsys.readouterr().err
    # it was the watch, and not the disk, that ended it
    assert not any("No space left" in line for line in log(workshop, "large"))
    assert b"66.6" not in processes()
    assert [*workshop.home.work.iterdir(), *(workshop.home.store / "tmp").iterdir()] == []
    verdict = check_whole(workshop.store)
    assert (verdict.damaged, verdict.incomplete) == ((), ())
    assert volumes(places(small_home))[0].nearly_full == ""


def test_the_folder_of_a_stopped_step_stays_where_a_user_wants_it(
    small_home: Home, workshop: Workshop
) -> None:
    build(workshop, workshop.step("touch $OUT/result", name="first"))
    fill(small_home, 5 * MIB)
    step = workshop.step(FILL, name="large")
    [(_, error)] = build(workshop, step, keep=True).failures
    folder = Workspace.of(small_home, step.key)
    assert f"its folder is kept: {folder.path}" in error.cause
    assert any(folder.out.iterdir())


def test_a_build_does_not_begin_on_a_disk_that_is_nearly_full(home: Home, small_home: Home) -> None:
    step = Step(name="x", component="x", action=TreeAction(), resources=Resources(disk=10 * MIB))
    decisions = [Decision(step=step, state=State.RUN)]
    fill(home, 11 * MIB)
    assert check_room(decisions, home) == 10 * MIB
    fill(Home(home.path / "more"), 9 * MIB)
    with pytest.raises(OutOfDiskError, match=r"needs about 10.0 MiB on the disk of .*; 15.0 MiB are free"):
        check_room(decisions, home)


def test_only_steps_that_run_are_named_as_what_a_build_needs_room_for(home: Home) -> None:
    def decision(name: str, disk: int, state: State) -> Decision:
        step = Step(name=name, component=name, action=TreeAction(), resources=Resources(disk=disk))
        return Decision(step=step, state=state)

    cached = [decision(f"cached-{number}", 2**60, State.CACHED) for number in range(4)]
    with pytest.raises(OutOfDiskError) as caught:
        check_room([*cached, decision("small", 2**50, State.RUN), decision("none", 0, State.RUN)], home)
    assert caught.value.cause == "small 1048576.00 GiB"


def test_what_another_program_wrote_is_not_laid_on_a_step(small_home: Home, workshop: Workshop) -> None:
    build(workshop, workshop.step("touch $OUT/result", name="first"))
    fill(small_home, 40 * MIB)
    step = workshop.step("sleep 66.6", name="honest")

    def fill_beside() -> None:
        # once the step runs, for what its inputs take is its own
        while b"66.6" not in processes():
            time.sleep(0.1)
        fill(small_home, -MIB)

    other = threading.Thread(target=fill_beside)
    other.start()
    [(_, error)] = build(workshop, step).failures
    other.join()
    assert "most of it not to its steps" in error.cause
    assert "another program fills the disk" in error.cause


def test_what_to_do_is_said_of_the_disk_that_is_full(
    home: Home, small_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [mine] = volumes({"build folders": small_home.work})
    assert "rocwright clean" in how_to_free(mine, small_home)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    [other] = volumes({"temporary files": tmp_path})
    assert how_to_free(other, small_home) == (
        f"free some room in {tmp_path}, or set TMPDIR to a folder on another disk"
    )


def volume(**more: int) -> Volume:
    told = {"total": 10**12, "free": 10**11, "inodes": 10**7, "inodes_free": 10**6, "device": 1} | more
    return Volume(what=("all",), path=Path("/"), **told)


@each(
    ("one", "words"),
    [
        (volume(), ""),
        (volume(free=500 * MIB), "500.0 MiB of 931.32 GiB are left"),
        (volume(inodes_free=9_999), "9,999 of 10,000,000 inodes are left"),
        (volume(inodes=1000, inodes_free=21), ""),
        (volume(inodes=0, inodes_free=0), ""),
        (volume(total=100 * MIB, free=3 * MIB), ""),
    ],
    ids=["room", "bytes", "inodes", "few inodes", "inodes as needed", "a small disk"],
)
def test_what_counts_as_nearly_full(one: Volume, words: str) -> None:
    assert one.nearly_full == words


@each(
    ("one", "far"),
    [
        (volume(free=20 * GIB), True),
        (volume(free=16 * GIB), False),
        (volume(inodes_free=999_999), False),
        (volume(inodes=0, inodes_free=0), True),
    ],
    ids=["room", "bytes", "inodes", "inodes as needed"],
)
def test_only_a_file_system_with_much_room_is_looked_at_seldom(one: Volume, far: bool) -> None:
    assert one.far_from_full is far


def test_each_file_system_is_looked_at_once_with_all_that_lies_on_it(home: Home) -> None:
    found = volumes({"one": home.path, "two": home.path / "not" / "there", "three": Path("/proc")})
    assert [one.what for one in found] == [("one", "two"), ("three",)]


def test_what_a_step_has_written_is_not_asked_for_again(home: Home, tmp_path: Path) -> None:
    """The disk has room for what is still to come, so nothing is said."""
    free = volumes({"home": home.path})[0]
    # others on the machine may free some meanwhile
    needs = Resources(disk=free.free - free.reserve + 4 * GIB)
    step = Step(name="x", component="x", action=TreeAction(), resources=needs)
    folder = Workspace.of(home, step.key)
    folder.create()
    said: list[str] = []

    def look() -> list[str]:
        before = len(asked)
        watch = DiskWatch(where=places(home), home=home, running=running, on_full=raise_, say=said.append)
        with watch.watching():
            end = time.monotonic() + 120
            while len(asked) < before + 2 and time.monotonic() < end:
                time.sleep(0.02)
        return said

    asked: list[int] = []

    def running() -> list[Step]:
        asked.append(threading.get_ident())
        return [step]

    def raise_() -> None:
        raise AssertionError

    assert len(look()) == 1
    said.clear()
    # a hole: it takes no room here, and counts as written
    with (folder.out / "large").open("wb") as file:
        file.truncate(free.free)
    assert look() == []


def test_where_an_engine_keeps_no_images_nothing_is_looked_for(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {name for one in host_facts().storage for name in one.engine.split(", ")}
    assert {name for name, engine in ENGINES.items() if engine.keeps_images} == known
    monkeypatch.setattr("rocwright.sandbox.pick", lambda *_: pytest.fail("it was tried"))
    assert storage_of("bubblewrap", home) == {}
