"""Cleaning up a shared store takes what nobody names, and never what somebody is about to name."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.making import record_of
from tests.store.sharers import Machine

from rocbase.errors import InputError
from rocwright.model.steps import About, FetchAction, Step
from rocwright.store import leases
from rocwright.store.blobs import blob_name
from rocwright.store.bucket import Bucket
from rocwright.store.contents import YOUNG, Keep, clean
from rocwright.store.gc import DAY
from rocwright.store.model import Output, Record
from rocwright.store.shared import word_name

RACES = 100


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    return Bucket((tmp_path / "bucket").as_uri())


@pytest.fixture
def lab(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "lab", "lab")


def aged(tmp_path: Path, bucket: Bucket, name: str, seconds: float = YOUNG + 60) -> None:
    """As if an object had been written that long ago."""
    then = time.time() - seconds
    os.utime(tmp_path / "bucket" / name, (then, then))


def test_old_files_that_no_record_names_go_and_all_else_stays(
    bucket: Bucket, lab: Machine, tmp_path: Path
) -> None:
    made = lab.make()
    lab.push(bucket, made)
    named = blob_name(made.outputs[0].sha256)
    for name in ("blobs/aa/" + "a" * 64, "blobs/bb/" + "b" * 64):
        bucket.add(name, b"left by a push that was killed")
    aged(tmp_path, bucket, "blobs/aa/" + "a" * 64)
    aged(tmp_path, bucket, named)
    assert clean(bucket, dry_run=True).files == 1
    assert clean(bucket).files == 1
    assert {one.name for one in bucket.list("blobs")} == {named, "blobs/bb/" + "b" * 64}
    assert [*bucket.list("leases")] == []


def test_a_record_that_cannot_be_read_keeps_everything(bucket: Bucket, lab: Machine, tmp_path: Path) -> None:
    lab.push(bucket, lab.make())
    bucket.add("blobs/aa/" + "a" * 64, b"x")
    aged(tmp_path, bucket, "blobs/aa/" + "a" * 64)
    bucket.add("records/cc/" + "c" * 64 + "/newer", b"of another form")
    cleaned = clean(bucket)
    assert (cleaned.files, len(cleaned.unreadable)) == (0, 1)
    assert bucket.size("blobs/aa/" + "a" * 64) == 1


def test_nobody_cleans_while_somebody_pushes_nor_pushes_while_somebody_cleans(
    bucket: Bucket, lab: Machine
) -> None:
    made = lab.make()
    lab.push(bucket, made)
    pushing = leases.turn(bucket, "push")
    with pushing, leases.turn(bucket, "push"), pytest.raises(InputError, match="somebody pushes to it"):
        clean(bucket)
    with leases.turn(bucket, "clean"), pytest.raises(InputError, match="somebody cleans it up"):
        lab.pusher(bucket).records([made.key])


def test_the_lease_of_a_killed_process_ends(bucket: Bucket, lab: Machine, tmp_path: Path) -> None:
    lab.push(bucket, lab.make())
    bucket.add("leases/push-killed", b"")
    with pytest.raises(InputError, match="is in use"):
        clean(bucket)
    aged(tmp_path, bucket, "leases/push-killed", leases.LIFE + 1)
    assert clean(bucket).files == 0


def test_a_long_push_renews_its_lease(bucket: Bucket, tmp_path: Path) -> None:
    with leases.turn(bucket, "push") as held:
        aged(tmp_path, bucket, held.name, leases.LIFE + 1)
        held.renew(lambda: held.renewed + leases.RENEW_TURN + 1)
        with pytest.raises(InputError, match="is in use"), leases.turn(bucket, "clean"):
            pass


def built(lab: Machine, name: str, number: int, target: str = "gfx803") -> Record:
    """A build of a step for a GPU."""
    action = FetchAction(pending=f"{name} {number} {target}")
    about = About(targets=(target,), base="debian:sid")
    step = Step(name=name, component=name, action=action, about=about)
    path = lab.path / "made"
    path.write_bytes(f"{name} {number} {target}".encode())
    sha256, size = lab.store.put_file(path)
    lab.store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    return lab.store.put_record(record_of(step, Output(name="out", filename="a", sha256=sha256, size=size)))


def test_old_records_of_ones_own_go_but_the_last_of_each_and_those_that_are_needed(
    bucket: Bucket, lab: Machine, tmp_path: Path
) -> None:
    friend = Machine(tmp_path / "friend", "friend")
    own = [built(lab, "engine", number) for number in range(5)]
    own += [built(lab, "wheel", 0, another) for another in ("gfx803", "gfx1103")]
    lab.push(bucket, *own)
    theirs = [built(friend, "engine", number) for number in (0, 9)]
    friend.push(bucket, *theirs)
    names = [word_name("record", one.key, lab.key.keyid) for one in own]
    for days, name in zip((50, 40, 30, 20, 10, 50, 50), names, strict=True):
        aged(tmp_path, bucket, name, days * DAY + 60)
    for blob in list(bucket.list("blobs")):
        aged(tmp_path, bucket, blob.name)

    def kept() -> list[int]:
        return [number for number, name in enumerate(names) if bucket.size(name) is not None]

    def keep(last: int, days: float, *needed: Record) -> Keep:
        keys = frozenset(one.key for one in needed)
        return Keep(keyid=lab.key.keyid, last=last, days=days, keys=keys)

    assert clean(bucket).records == 0
    assert clean(bucket, keep(2, 35, own[0]), dry_run=True).records == 1
    assert kept() == [*range(7)]
    cleaned = clean(bucket, keep(2, 35, own[0]))
    assert (cleaned.records, cleaned.files) == (1, 1)
    assert kept() == [0, 2, 3, 4, 5, 6]
    assert bucket.size(word_name("step", own[1].key, lab.key.keyid)) is None
    # the file of the oldest is named by the friend's record too, as is the definition of its step
    cleaned = clean(bucket, keep(1, 0))
    assert (cleaned.records, cleaned.files) == (3, 2)
    assert kept() == [4, 5, 6]
    assert bucket.size(word_name("step", own[0].key, lab.key.keyid)) is not None
    store = Machine(tmp_path / "reader", "reader").behind(bucket, lab.key, friend.key)
    assert all(store.record(one.key) and store.bring(one.key) for one in (*own[4:], *theirs))


class Turns:
    """Threads that go on one operation of the bucket at a time, in an order that a seed draws."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.ready: dict[str, threading.Event] = {}
        self.lock = threading.Lock()
        self.waiting: set[str] = set()

    def step(self) -> None:
        """Wait until it is this thread's turn."""
        name = threading.current_thread().name
        with self.lock:
            self.waiting.add(name)
            self._next()
        self.ready[name].wait()
        self.ready[name].clear()

    def left(self, name: str) -> None:
        with self.lock:
            del self.ready[name]
            self._next()

    def _next(self) -> None:
        # once all that still run wait, one of them goes on
        if self.ready and self.waiting == set(self.ready):
            name = self.random.choice(sorted(self.waiting))
            self.waiting.discard(name)
            self.ready[name].set()


class Slow(Bucket):
    """A bucket whose operations come one at a time."""

    order: Turns

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name in ("add", "replace", "remove", "size", "get", "list"):
            super().__getattribute__("order").step()
        return found


@pytest.mark.parametrize("seed", range(RACES))
def test_no_race_of_a_clean_up_and_a_push_leaves_a_record_without_its_file(
    seed: int, lab: Machine, tmp_path: Path
) -> None:
    bucket = Bucket((tmp_path / "bucket").as_uri())
    made = lab.make()
    lab.pusher(bucket).open("lab")
    # the file is there already, old, and named by nobody: a clean-up takes it, and a push does not send it
    blob = blob_name(made.outputs[0].sha256)
    bucket.add(blob, b"what was built")
    aged(tmp_path, bucket, blob)
    slow = Slow(bucket.url)
    Slow.order = order = Turns(seed)
    refused: list[str] = []

    def run(name: str, act: Callable[[], object]) -> None:
        try:
            act()
        except InputError as error:
            refused.append(error.message)
        finally:
            order.left(name)

    acts = {"push": lambda: lab.pusher(slow).records([made.key]), "clean": lambda: clean(slow)}
    order.ready = {name: threading.Event() for name in acts}
    threads = [threading.Thread(target=run, name=name, args=(name, act)) for name, act in acts.items()]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
        assert not one.is_alive()
    records = [*bucket.list("records")]
    assert not records or bucket.size(blob) == len(b"what was built")
    assert len(refused) < 2 or not records
    assert all("is in use" in one for one in refused)
