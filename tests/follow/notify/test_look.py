"""One message for each change of state, whatever happens between the looks; none is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.follow.notify.conftest import Machine

from rocwright.follow.cycle.model import CycleTold, RowTold
from rocwright.follow.notify import deliver as delivering
from rocwright.follow.notify.ledger import read, write
from rocwright.follow.notify.look import FIRST_WAIT, LONGEST_WAIT
from rocwright.follow.notify.model import DeliveryState
from rocwright.follow.notify.tell import start
from rocwright.follow.watch.kept import keep
from rocwright.follow.watch.model import Alarm, WatchReport
from rocwright.plan.resolve.model import Request
from rocwright.records.opening import open_records

ROW = "tiny_gfx803_sid"


def told(machine: Machine) -> DeliveryState:
    found = read(machine.home)
    assert found is not None
    return found.told["room"]


def later(machine: Machine) -> None:
    """The time until the next try is over."""
    found = read(machine.home)
    assert found is not None
    soon = {name: one.model_copy(update={"again": ""}) for name, one in found.told.items()}
    write(
        machine.home,
        found.model_copy(update={"told": soon, "ping": found.ping.model_copy(update={"again": ""})}),
    )


def cycled(machine: Machine, *rows: RowTold, hours_ago: float = 0, ident: str = "one") -> Path:
    """A cycle of the project `work` that ended then."""
    folder = machine.home.path.parent / "work"
    folder.mkdir(exist_ok=True)
    at = (datetime.now(UTC) - timedelta(hours=hours_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = CycleTold(id=ident, started=at, seconds=0, rows=rows, folder=str(folder))
    machine.home.cycles.mkdir(exist_ok=True)
    (machine.home.cycles / "work.json").write_text(told.model_dump_json())
    return folder


def row(**more: object) -> RowTold:
    request = Request(stack="tiny", gpu=("gfx803",), base="sid")
    return RowTold.model_validate({"request": request, "state": "unchanged"} | more)


# rows


def test_a_row_that_breaks_is_told_once_with_what_failed(machine: Machine) -> None:
    run = machine.run("failed")
    machine.look()
    [post] = machine.receiver.posts
    assert post["title"] == f"rocwright: broken: {ROW}"
    assert "build, alpha: it does not compile" in post["message"]
    assert "a header is missing" in post["message"]
    assert f"rocwright history {run}" in post["message"]
    assert post["type"] == "failure"


def test_a_row_that_stays_broken_for_twenty_runs_is_told_once(machine: Machine) -> None:
    for _ in range(20):
        machine.run("failed")
        machine.look()
    assert len(machine.receiver.posts) == 1


def test_a_row_that_breaks_in_another_way_is_still_broken(machine: Machine) -> None:
    for command in ("build", "verify", "build"):
        machine.run("failed", command)
        machine.look()
    assert len(machine.receiver.posts) == 1


def test_a_row_that_passes_again_is_told_once(machine: Machine) -> None:
    machine.run("failed")
    machine.look()
    for _ in range(3):
        machine.run("built")
        machine.look()
    assert machine.receiver.titles[1:] == [f"rocwright: passes again: {ROW}"]
    assert machine.receiver.posts[1]["type"] == "success"


def test_what_stood_before_anybody_was_to_be_told_is_not_told(machine: Machine) -> None:
    machine.home.notices.unlink()
    machine.promote("nightly", machine.run("failed"))
    machine.look(note=True)
    machine.look()
    assert machine.receiver.posts == []
    machine.run("built")
    machine.look()
    assert machine.receiver.titles == [f"rocwright: passes again: {ROW}"]


def test_a_new_row_is_told_where_it_breaks_at_once_and_not_where_it_passes(machine: Machine) -> None:
    machine.run("built", stack="good")
    machine.run("failed", stack="bad")
    machine.look()
    assert machine.receiver.titles == ["rocwright: broken: bad_gfx803_sid"]


@pytest.mark.parametrize(
    "more", [{"outcome": "killed"}, {"outcome": "stopped"}, {"outcome": "failed", "failure": "network"}]
)
def test_a_run_that_says_nothing_of_its_row_changes_nothing(machine: Machine, more: dict[str, str]) -> None:
    machine.run("failed")
    machine.look()
    machine.run(**more)
    machine.look()
    machine.run("failed")
    machine.look()
    assert len(machine.receiver.posts) == 1


def test_a_build_alone_does_not_mend_what_a_check_found(machine: Machine) -> None:
    machine.run("failed", "verify", failure="check")
    machine.look()
    machine.run("built")
    machine.look()
    machine.run("failed", "verify", failure="check")
    machine.look()
    assert len(machine.receiver.posts) == 1
    machine.run("verified", "verify")
    machine.look()
    assert machine.receiver.titles[1:] == [f"rocwright: passes again: {ROW}"]


def test_a_row_under_way_is_looked_at_when_it_has_ended(machine: Machine) -> None:
    machine.run("failed")
    going = machine.run("", "verify", state="running")
    machine.look()
    assert machine.receiver.posts == []
    with open_records(machine.home) as records:
        run = records.run(going)
        assert run is not None
        records.put(run.model_copy(update={"state": "ended", "outcome": "stopped"}))
    machine.look()
    assert machine.receiver.titles == [f"rocwright: broken: {ROW}"]


def test_a_promotion_is_told_with_its_channel_and_its_versions(machine: Machine) -> None:
    run = machine.run("built", versions={"torch": "2.6.0"})
    machine.promote("nightly", run)
    machine.look()
    machine.look()
    [post] = machine.receiver.posts
    assert post["title"] == f"rocwright: promoted to nightly: {ROW}"
    assert "torch 2.6.0" in post["message"]
    machine.promote("nightly", machine.run("built"))
    machine.look()
    assert len(machine.receiver.posts) == 2


def test_several_changes_of_one_look_are_one_message(machine: Machine) -> None:
    for stack in ("a", "b", "c", "d"):
        machine.run("failed", stack=stack)
    machine.promote("nightly", machine.run("built"))
    machine.look()
    [post] = machine.receiver.posts
    assert post["title"] == "rocwright: 4 broken, 1 promoted"
    assert all(f"broken: {stack}_gfx803_sid" in post["message"] for stack in "abcd")


# who wants to know what


def test_a_destination_is_told_only_what_it_asks_for(machine: Machine) -> None:
    table = f'[[notify]]\nurl = "{machine.receiver.url}"\n'
    machine.settings(
        f'{table}name = "mended"\non = ["mended"]\n'
        f'{table}name = "rows"\nrows = ["torch_*"]\n'
        f'{table}name = "good"\non = ["promoted"]\nchannels = ["known-good"]\n'
    )
    machine.look(note=True)
    machine.run("failed")
    run = machine.run("failed", stack="torch")
    machine.look()
    assert machine.receiver.titles == ["rocwright: broken: torch_gfx803_sid"]
    machine.promote("nightly", run)
    machine.promote("known-good", run)
    machine.run("built")
    machine.look()
    assert sorted(machine.receiver.titles[1:]) == [
        f"rocwright: passes again: {ROW}",
        f"rocwright: promoted to known-good: {ROW}",
    ]


# what needs a person


def test_an_alarm_of_upstream_is_told_once_for_as_long_as_it_stands(machine: Machine) -> None:
    label = "tiny \u00b7 gfx803 \u00b7 sid"
    moved = Alarm(lock=label, name="torch", what="the tag v1 has moved", had="a", now="b", kept="whole")
    for _ in range(3):
        keep(WatchReport(asked=1, seconds=1, alarms=(moved,)), [label], machine.home, "2026-01-01T00:00:00Z")
        machine.look()
    [post] = machine.receiver.posts
    assert post["title"] == f"rocwright: a person must decide: {ROW}"
    assert "torch: the tag v1 has moved" in post["message"]
    assert "the lock has a, upstream has b" in post["message"]
    keep(WatchReport(asked=1, seconds=1), [label], machine.home, "2026-01-02T00:00:00Z")
    machine.look()
    keep(WatchReport(asked=1, seconds=1, alarms=(moved,)), [label], machine.home, "2026-01-03T00:00:00Z")
    machine.look()
    assert len(machine.receiver.posts) == 2


def test_a_row_that_a_cycle_cannot_try_is_told_once_whatever_its_numbers(machine: Machine) -> None:
    for left in (3, 2, 1):
        why = f"the disk is full: {left} GiB are free in /home/{left}"
        cycled(machine, row(state="not tried", why=why, failure="out of disk"), ident=str(left))
        machine.look()
    [post] = machine.receiver.posts
    assert "the disk is full: 3 GiB are free" in post["message"]
    cycled(machine, row(), ident="good")
    machine.look()
    cycled(machine, row(state="not tried", why="no", failure="out of disk"), ident="bad")
    machine.look()
    assert len(machine.receiver.posts) == 2


def test_no_answer_from_upstream_asks_for_nobody(machine: Machine) -> None:
    cycled(machine, row(state="not tried", why="no network", failure="network"))
    machine.look()
    cycled(machine, row(state="not tried", silent=("index",)))
    machine.look()
    assert machine.receiver.posts == []


def test_a_run_that_fails_for_want_of_memory_asks_for_a_person_and_the_row_is_not_broken(
    machine: Machine,
) -> None:
    for _ in range(3):
        machine.run("failed", failure="out of memory")
        machine.look()
    assert machine.receiver.titles == [f"rocwright: a person must decide: {ROW}"]


# cycles


def test_cycles_that_stop_are_told_once_and_that_they_run_again(machine: Machine) -> None:
    folder = cycled(machine, row(), hours_ago=49)
    text = f'[cycle]\nevery = 24\n[[notify]]\nname = "room"\nurl = "{machine.receiver.url}"\nrows = ["x"]\n'
    machine.settings(text)
    for _ in range(3):
        machine.look()
    [post] = machine.receiver.posts
    assert post["title"] == f"rocwright: cycles are overdue: {folder}"
    assert "48 h are allowed" in post["message"]
    cycled(machine, row(), ident="two")
    machine.look()
    assert machine.receiver.titles[1:] == [f"rocwright: cycles run again: {folder}"]


@pytest.mark.parametrize(("hours", "every", "overdue"), [(47, 24, 0), (49, 24, 50), (9999, 0, 0)])
def test_cycles_that_come_as_expected_are_not_overdue(
    machine: Machine, hours: int, every: int, overdue: int
) -> None:
    cycled(machine, row(), hours_ago=hours)
    table = f'[[notify]]\nname = "room"\nurl = "{machine.receiver.url}"\n'
    machine.settings(f"{table}[cycle]\nevery = {every}\noverdue = {overdue}\n")
    machine.look()
    assert machine.receiver.posts == []


def test_cycles_that_never_began_are_overdue_for_who_expects_them(machine: Machine, tmp_path: Path) -> None:
    machine.look(folder=str(tmp_path), every=24, since="2026-01-01T00:00:00Z")
    assert machine.receiver.titles == [f"rocwright: cycles are overdue: {tmp_path}"]
    assert "none has ended since 2026-01-01" in machine.receiver.messages[0]


def test_a_good_cycle_is_reported_once_and_a_bad_one_never(machine: Machine) -> None:
    address = f"http://127.0.0.1:{machine.receiver.port}/ping"
    machine.settings(f'[cycle.ping]\nurl = "{address}"\n')
    cycled(machine, row(), ident="good")
    machine.look()
    machine.look()
    assert machine.receiver.paths == ["/ping"]
    cycled(machine, row(state="failed"), ident="bad")
    machine.look()
    cycled(machine, row(), ident="better")
    machine.receiver.status = 500
    machine.look()
    assert machine.receiver.paths == ["/ping", "/ping"]
    machine.receiver.status = 200
    machine.look()
    assert len(machine.receiver.paths) == 2, "it waits before it tries again"
    later(machine)
    machine.look()
    machine.look()
    assert len(machine.receiver.paths) == 3


def test_who_expects_no_cycles_says_nothing_of_those_that_another_expects(
    machine: Machine, tmp_path: Path
) -> None:
    """A server with --cycle knows how often they come; a build beside it does not."""
    folder = str(cycled(machine, row(), hours_ago=9))
    machine.look(folder=folder, every=4)
    machine.look()
    machine.look(folder=folder, every=4)
    assert machine.receiver.titles == [f"rocwright: cycles are overdue: {folder}"]
    cycled(machine, row(), ident="two")
    machine.look()
    machine.look()
    assert machine.receiver.titles[1:] == [f"rocwright: cycles run again: {folder}"]


def test_cycles_that_stand_still_are_told_at_the_first_look_too(machine: Machine, tmp_path: Path) -> None:
    machine.home.notices.unlink()
    machine.look(folder=str(tmp_path), every=1, since="2026-01-01T00:00:00Z")
    assert machine.receiver.titles == [f"rocwright: cycles are overdue: {tmp_path}"]


# deliveries that fail


def test_a_delivery_that_fails_is_tried_again_later_and_nothing_is_lost(machine: Machine) -> None:
    machine.receiver.status = 503
    machine.run("failed")
    machine.look()
    assert (told(machine).tries, told(machine).error) == (1, "it answered 503")
    machine.run("built")
    machine.look()
    assert len(machine.receiver.posts) == 1, "it waits before it tries again"
    machine.receiver.status = 200
    later(machine)
    machine.look()
    machine.look()
    assert machine.receiver.titles[1:] == ["rocwright: 1 broken, 1 passing again"]
    assert (told(machine).waiting, told(machine).tries, told(machine).error) == ((), 0, "")


def test_each_failure_makes_the_wait_longer_up_to_a_bound(machine: Machine) -> None:
    machine.receiver.status = 500
    machine.run("failed")
    waits = []
    for _ in range(11):
        before = datetime.now(UTC)
        machine.look()
        waits.append(datetime.fromisoformat(told(machine).again) - before)
        later(machine)
    close = timedelta(seconds=20)
    assert abs(waits[0] - FIRST_WAIT) < close
    assert abs(waits[1] - 2 * FIRST_WAIT) < close
    assert abs(waits[10] - LONGEST_WAIT) < close


def test_one_destination_that_fails_keeps_nothing_from_another(machine: Machine) -> None:
    machine.settings(
        f'[[notify]]\nname = "room"\nurl = "{machine.receiver.url}"\n'
        '[[notify]]\nname = "dead"\nurl = "json://127.0.0.1:1/"\n'
    )
    machine.run("failed")
    machine.look()
    assert len(machine.receiver.posts) == 1
    known = read(machine.home)
    assert known is not None
    assert known.told["dead"].error == "it cannot be reached"


@pytest.mark.parametrize("how", ["wait", "drip"])
def test_a_receiver_that_never_ends_its_answer_is_left(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(delivering, "LIMIT", 2.0)
    machine.receiver.wait, machine.receiver.drip = (600, False) if how == "wait" else (0, True)
    machine.run("failed")
    begun = time.monotonic()
    machine.look()
    assert time.monotonic() - begun < 60
    assert told(machine).error == "no answer in time"
    # one that answers is waited for, however busy the machine is
    monkeypatch.setattr(delivering, "LIMIT", 60.0)
    machine.receiver.wait, machine.receiver.drip = 0, False
    machine.receiver.posts.clear()
    later(machine)
    machine.look()
    assert machine.receiver.messages[0].startswith("This may have been told before")


# kills


def test_who_asks_for_a_look_may_be_killed_during_the_delivery(machine: Machine) -> None:
    """The look goes on without it: told once, and known to be told."""
    machine.receiver.wait = 2
    machine.run("failed")
    code = "from rocwright.follow.notify.tell import start; start().wait()"
    asking = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    assert machine.receiver.asked.wait(30)
    os.killpg(asking.pid, signal.SIGKILL)
    asking.wait()
    assert start().wait(60) == 0
    assert len(machine.receiver.posts) == 1
    assert (told(machine).waiting, told(machine).sending) == ((), False)


def test_a_look_that_is_killed_before_it_could_deliver_loses_nothing(machine: Machine) -> None:
    machine.run("failed")
    machine.receiver.wait = 60
    looking = start()
    assert machine.receiver.asked.wait(30)
    os.killpg(looking.pid, signal.SIGKILL)
    looking.wait()
    machine.receiver.wait = 0
    machine.receiver.posts.clear()
    machine.look()
    machine.look()
    [message] = machine.receiver.messages
    assert message.startswith("This may have been told before")
    assert f"broken: {ROW}" in message


def test_a_run_that_was_recorded_by_a_killed_process_is_told_by_the_next(machine: Machine) -> None:
    machine.run("failed")
    assert start().wait(60) == 0
    assert start().wait(60) == 0
    assert len(machine.receiver.posts) == 1


def test_many_looks_at_once_tell_once(machine: Machine) -> None:
    machine.run("failed")
    looks = [start() for _ in range(4)]
    assert [one.wait(120) for one in looks] == [0] * 4
    assert len(machine.receiver.posts) == 1


def test_the_ledger_is_its_owners_alone(machine: Machine) -> None:
    machine.run("failed")
    machine.look()
    assert machine.home.notices.stat().st_mode & 0o777 == 0o600
    assert json.loads(machine.home.notices.read_text())["told"]["room"]["last_at"]
