"""Events go from many threads to one."""

from __future__ import annotations

from threading import Thread, Timer

from rocwright.farm.mailbox import Mailbox


def putting(box: Mailbox[tuple[int, int]], who: int, count: int) -> Thread:
    def put() -> None:
        for number in range(count):
            box.put((who, number))

    thread = Thread(target=put)
    thread.start()
    return thread


def test_everything_arrives_in_the_order_of_each_and_never_more_than_there_is_room_for() -> None:
    box: Mailbox[tuple[int, int]] = Mailbox(10)
    threads = [putting(box, who, 500) for who in range(4)]
    found: list[tuple[int, int]] = []
    most = 0
    while any(one.is_alive() for one in threads) or len(box):
        some = box.take(0.1)
        most = max(most, len(some))
        found += some
    for who in range(4):
        assert [number for one, number in found if one == who] == [*range(500)]
    # each thread may have seen the last place free
    assert most <= 10 + len(threads)


def test_one_who_takes_waits_for_what_comes() -> None:
    box: Mailbox[str] = Mailbox(10)
    thread = Timer(0.3, box.put, ("late",))
    thread.start()
    assert box.take(30) == ["late"]
    assert box.take(0) == []
    thread.join()


def test_nobody_waits_for_room_in_one_that_is_closed() -> None:
    box: Mailbox[tuple[int, int]] = Mailbox(1)
    thread = putting(box, 0, 1000)
    box.close()
    thread.join(20)
    assert not thread.is_alive()


def test_nobody_waits_for_room_while_the_one_who_takes_waits_for_them() -> None:
    box: Mailbox[tuple[int, int]] = Mailbox(1)
    with box.overflowing():
        thread = putting(box, 0, 1000)
        thread.join(20)
        assert not thread.is_alive()
    assert len(box.take(0)) == 1000
