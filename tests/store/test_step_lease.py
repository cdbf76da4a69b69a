"""One of many machines runs a step."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from tests.store.servers import reach, s3

from rocbase.errors import InternalError, NetworkError
from rocwright.store.bucket import Bucket
from rocwright.store.leases import GIVE_UP, RENEW, VOID, Times, step_lease

pytestmark = pytest.mark.timing

KEY = "ab" * 32


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3() as url:
        yield url


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Bucket:
    reach(monkeypatch, server)
    return Bucket(f"s3://lab/{request.node.name}")


@dataclass
class Clock:
    """Time that passes when somebody waits, or is told to."""

    now: float = 1000.0
    waits: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.now += seconds
        self.waits.append(seconds)
        return event.wait(0.01)

    @property
    def times(self) -> Times:
        return Times(clock=self, wait=self.wait)


def test_two_do_not_hold_the_same_step_and_each_gets_its_turn(bucket: Bucket) -> None:
    holding, most, turns = 0, 0, []
    lock = threading.Lock()

    def work(number: int) -> None:
        nonlocal holding, most
        with step_lease(bucket, KEY, times=Times(wait=lambda event, _: event.wait(0.02))):
            with lock:
                holding += 1
                most = max(most, holding)
            time.sleep(0.1)
            with lock:
                holding -= 1
                turns.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (most, sorted(turns)) == (1, list(range(6)))
    assert list(bucket.list("leases")) == []


def test_a_lease_that_nobody_renews_is_void_after_a_while_and_not_before(bucket: Bucket) -> None:
    assert bucket.add(f"leases/step-{KEY}", b"of a machine that is gone")
    clock, told = Clock(), []
    begun = clock.now
    with step_lease(bucket, KEY, times=clock.times, on_wait=lambda: told.append("waits")):
        assert VOID <= clock.now - begun <= VOID + RENEW + 5
        assert told == ["waits"]
    assert list(bucket.list("leases")) == []


def test_a_lease_that_is_renewed_is_waited_for_however_long(bucket: Bucket) -> None:
    name = f"leases/step-{KEY}"
    assert bucket.add(name, b"0")
    clock, count = Clock(), 0

    def wait(event: threading.Event, seconds: float) -> bool:
        nonlocal count
        if seconds == RENEW:
            return event.wait(60)
        count += 1
        if count % 20 == 0 and count <= 200:
            bucket.replace(name, str(count).encode())
        if count == 210:
            bucket.remove(name)
        return clock.wait(event, seconds)

    begun = clock.now
    with step_lease(bucket, KEY, times=Times(clock=clock, wait=wait)):
        assert clock.now - begun > 3 * VOID


def test_who_finds_the_lease_taken_ends_the_work_and_says_so(bucket: Bucket) -> None:
    lost = threading.Event()
    with (
        pytest.raises(NetworkError, match="was lost") as raised,
        step_lease(bucket, KEY, times=Clock().times, on_lost=lost.set),
    ):
        bucket.replace(f"leases/step-{KEY}", b"of another")
        assert lost.wait(30)
        raise KeyboardInterrupt
    assert raised.value.cause == "another machine took it"
    # the other's lease stays
    assert bucket.get(f"leases/step-{KEY}", 64) == b"of another"


def test_a_lease_that_another_takes_right_after_a_renewal_is_lost(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, update = threading.Event(), Bucket.update

    def update_and_lose(bucket: Bucket, name: str, data: bytes, tag: str) -> str | None:
        updated = update(bucket, name, data, tag)
        if updated:
            bucket.replace(name, b"of another")
        return updated

    monkeypatch.setattr(Bucket, "update", update_and_lose)
    with (
        pytest.raises(NetworkError, match="was lost"),
        step_lease(bucket, KEY, times=Clock().times, on_lost=lost.set),
    ):
        assert lost.wait(30)
        raise KeyboardInterrupt
    assert bucket.get(f"leases/step-{KEY}", 64) == b"of another"


def test_who_cannot_renew_ends_before_others_take_the_lease_for_void(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, lost = Clock(), threading.Event()
    begun = clock.now

    def cut(*_: object) -> bool:
        raise NetworkError("no answer", cause="cut", next_step="wait")

    # before the lease is taken: a renewal that succeeded first would put the end off
    monkeypatch.setattr(Bucket, "update", cut)
    with (
        pytest.raises(NetworkError, match="was lost") as raised,
        step_lease(bucket, KEY, times=clock.times, on_lost=lost.set),
    ):
        assert lost.wait(30)
        assert GIVE_UP <= clock.now - begun < VOID
        raise InternalError("ended", cause="", next_step="")
    assert "no answer" in raised.value.cause


def test_a_step_that_fails_by_itself_tells_its_own_failure_and_gives_the_lease_back(bucket: Bucket) -> None:
    with pytest.raises(InternalError, match="its own"), step_lease(bucket, KEY, times=Times()):
        raise InternalError("its own", cause="", next_step="")
    assert list(bucket.list("leases")) == []
