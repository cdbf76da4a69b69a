"""The fifo and what becomes of the tokens in it, with real clients that misbehave."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwright.execution.jobs.tokens import NAME, PATIENCE, Circulation, Lasting, Tokens

pytestmark = pytest.mark.timing


@pytest.fixture
def tokens(tmp_path: Path) -> Iterator[Tokens]:
    made = Tokens.create(tmp_path)
    yield made
    made.close()


@pytest.fixture
def client(tokens: Tokens) -> Iterator[int]:
    descriptor = os.open(tokens.path, os.O_RDWR | os.O_NONBLOCK)
    yield descriptor
    os.close(descriptor)


def test_tokens_go_in_and_come_out_and_nothing_waits(tokens: Tokens) -> None:
    assert (tokens.held(), tokens.take(3)) == (0, 0)
    assert tokens.put(5) == 5
    assert tokens.held() == 5
    assert (tokens.take(3), tokens.take(9), tokens.take(1)) == (3, 2, 0)


def test_no_tokens_or_fewer_are_none(tokens: Tokens) -> None:
    tokens.put(1)
    assert [tokens.put(0), tokens.put(-2), tokens.take(0), tokens.take(-2)] == [0, 0, 0, 0]
    assert tokens.held() == 1


def test_who_may_have_no_real_time_priority_drains_all_the_same(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    tokens.put(3)
    tokens.drain(2)
    end = time.monotonic() + 60
    while tokens.held() > 1 and time.monotonic() < end:
        time.sleep(0.01)
    assert (tokens.held(), tokens.drained()) == (1, 2)


def test_any_user_of_the_sandbox_can_open_it_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("left over")
    tokens = Tokens.create(tmp_path)
    mode = tokens.path.stat().st_mode
    assert stat.S_ISFIFO(mode)
    assert stat.S_IMODE(mode) == 0o666
    tokens.close()
    assert not tokens.path.exists()


def test_a_fifo_whose_folder_went_is_closed_all_the_same(tmp_path: Path) -> None:
    made = Tokens.create(tmp_path)
    made.path.unlink()
    made.close()
    assert list(tmp_path.iterdir()) == []


def test_a_full_fifo_takes_no_more_and_does_not_wait(tokens: Tokens) -> None:
    assert 1000 <= tokens.put(10**6) < 10**5
    assert tokens.put(1) == 0


def test_whoever_gives_a_token_back_never_waits_for_a_reader(tokens: Tokens, client: int) -> None:
    """A pipe of one page would be full once as many bytes have gone through it, with few in it."""
    tokens.put(3)
    for _ in range(3 * 65536 // 3):
        os.write(client, os.read(client, 1))
    assert tokens.held() == 3


def test_what_is_wanted_is_there_or_out(tokens: Tokens, client: int) -> None:
    circulation = Circulation(tokens)
    circulation.settle(7)
    assert (len(os.read(client, 3)), circulation.out()) == (3, 3)
    circulation.settle(2)
    assert (tokens.held(), circulation.out()) == (0, 3)
    os.write(client, b"+++")
    circulation.out()
    circulation.settle(2)
    assert (tokens.held(), circulation.out()) == (2, 0)
    circulation.settle(-3)
    assert tokens.held() == 0


COMES_BACK = """
import os, sys, time
fifo = os.open(sys.argv[1], os.O_RDWR)
token = os.read(fifo, 1)
print(end=".", flush=True)
while True:
    time.sleep(0.01)
    os.write(fifo, token)
    token = os.read(fifo, 1)
"""
"""A client that takes a token again at once, as make does that has more to compile."""


def test_a_token_that_is_taken_again_at_once_is_drained_all_the_same(tokens: Tokens) -> None:
    circulation = Circulation(tokens)
    circulation.settle(1)
    client = subprocess.Popen([sys.executable, "-c", COMES_BACK, tokens.path], stdout=subprocess.PIPE)
    try:
        assert client.stdout is not None
        assert client.stdout.read(1) == b"."
        end = time.monotonic() + 60
        # what is out and what lies in the fifo are two looks, between which the client can take it again
        while circulation._there and time.monotonic() < end:
            circulation.settle(0)
            time.sleep(0.05)
        assert client.poll() is None
        assert (circulation.out(), tokens.held()) == (0, 0)
    finally:
        client.kill()
        client.communicate()


def test_no_more_is_drained_than_is_wanted_and_nothing_once_it_is_not(tokens: Tokens, client: int) -> None:
    circulation = Circulation(tokens)
    circulation.settle(5)
    os.read(client, 5)
    circulation.settle(3)
    os.write(client, b"+++")
    end = time.monotonic() + 60
    while tokens.held() != 1 and time.monotonic() < end:
        time.sleep(0.01)
    assert (tokens.held(), circulation.out()) == (1, 2)
    circulation.settle(0)
    circulation.settle(9)
    os.write(client, b"++")
    time.sleep(0.2)
    assert (tokens.held(), circulation.out()) == (9, 0)


def test_a_look_at_a_fifo_that_nobody_floods_does_not_wait(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("rocwright.execution.jobs.tokens.time.sleep", waited.append)
    circulation = Circulation(tokens)
    circulation.settle(3)
    assert (circulation.out(), waited) == (0, [])


NOBODY: frozenset[int] = frozenset()


def test_what_held_before_the_last_seconds_counts_no_more() -> None:
    lasting = Lasting()
    for now, value in ((0.0, 1), (1.0, 5), (1.0 + PATIENCE, 7)):
        lasting.note(now, value)
    assert (lasting.least(), lasting.usual()) == (5, 6)
    lasting.note(1.5 + PATIENCE, 6)
    assert (lasting.least(), lasting.usual()) == (5, 6)


def test_tokens_that_nobody_can_hold_are_put_in_again_after_a_while(tokens: Tokens, client: int) -> None:
    circulation = Circulation(tokens)
    circulation.settle(7)
    os.read(client, 5)
    for now, threads in ((10, 2), (11, 0), (11.9, 1), (10 + PATIENCE, 2)):
        circulation.note(now, out=circulation.out(), threads=threads, surplus=0, started=NOBODY)
        circulation.settle(7)
        assert tokens.held() == (2 if now < 10 + PATIENCE else 5)
    assert circulation.out() == 2


def test_a_token_of_the_last_process_of_a_step_is_not_lost_however_long_it_runs(
    tokens: Tokens, client: int
) -> None:
    circulation = Circulation(tokens)
    circulation.settle(1)
    circulation.note(0, out=circulation.out(), threads=0, surplus=0, started=NOBODY)
    os.read(client, 1)
    circulation.note(1, out=circulation.out(), threads=1, surplus=0, started=frozenset({2, 3}))
    for now in range(2, 60):
        circulation.note(now, out=circulation.out(), threads=0, surplus=0, started=frozenset({3}))
        circulation.settle(1)
        assert tokens.held() == 0
    os.write(client, b"+")
    assert circulation.out() == 0
    assert tokens.held() == 1


def test_a_token_is_lost_once_all_that_could_have_it_have_ended(tokens: Tokens, client: int) -> None:
    circulation = Circulation(tokens)
    circulation.settle(1)
    circulation.note(0, out=circulation.out(), threads=0, surplus=0, started=NOBODY)
    os.read(client, 1)
    for now in range(1, 20):
        circulation.note(now, out=circulation.out(), threads=0, surplus=0, started=frozenset({2 + now // 10}))
        circulation.settle(1)
        assert tokens.held() == (now >= 10)


def test_a_moment_in_which_a_process_is_not_seen_yet_loses_no_token(tokens: Tokens, client: int) -> None:
    circulation = Circulation(tokens)
    circulation.settle(4)
    os.read(client, 4)
    for tick in range(40):
        circulation.note(
            tick / 2, out=circulation.out(), threads=0 if tick % 4 else 4, surplus=0, started=NOBODY
        )
        circulation.settle(4)
    assert tokens.held() == 0


def test_processes_that_took_no_token_leave_less_for_the_others(tokens: Tokens) -> None:
    circulation = Circulation(tokens)
    circulation.settle(7)
    for now in (0, 1, 2.5):
        circulation.note(now, out=circulation.out(), threads=9, surplus=5, started=NOBODY)
    circulation.settle(7)
    assert tokens.held() == 2
    for now in (3, 4, 5.5):
        circulation.note(now, out=circulation.out(), threads=1, surplus=0, started=NOBODY)
    circulation.settle(7)
    assert tokens.held() == 7


def test_ten_million_tokens_of_somebody_elses_are_taken_away(tokens: Tokens) -> None:
    circulation = Circulation(tokens)
    circulation.settle(3)
    with subprocess.Popen(f"exec head -c 10000000 /dev/zero > {tokens.path}", shell=True) as writer:
        end = time.monotonic() + 120
        try:
            while writer.poll() is None and time.monotonic() < end:
                circulation.out()
            ended = writer.poll()
        finally:
            writer.kill()
    assert ended == 0
    circulation.out()
    assert tokens.held() == 3


ACTS = st.lists(
    st.tuples(st.sampled_from(("take", "give", "flood", "settle", "look")), st.integers(0, 12)), max_size=30
)


@settings(max_examples=60)
@given(acts=ACTS)
def test_whatever_clients_do_the_count_comes_right_when_they_are_gone(
    acts: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    tokens = Tokens.create(tmp_path_factory.mktemp("tokens"))
    client = os.open(tokens.path, os.O_RDWR | os.O_NONBLOCK)
    circulation, wanted = Circulation(tokens), 0
    for act, number in acts:
        match act:
            case "take":
                tokens.take(number)
            case "give" | "flood":
                os.write(client, b"+" * (number if act == "give" else 100 * number))
            case "settle":
                wanted = number
                circulation.settle(wanted)
            case _:
                circulation.out()
        assert circulation.out() >= 0
    for now in (100.0, 101.0, 103.0, 103.5):
        circulation.note(now, out=circulation.out(), threads=0, surplus=0, started=NOBODY)
        circulation.settle(wanted)
    assert tokens.held() == wanted
    os.close(client)
    tokens.close()
