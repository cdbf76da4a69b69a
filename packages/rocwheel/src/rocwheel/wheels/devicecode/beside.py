"""Large members of a wheel read in several processes at once: inflating holds one processor each.

The processes are copies of this one (fork), which read what it would read and hand over what they found. What
one of them cannot read, or does not come to, the caller reads itself, and meets the same error: nothing but
the time depends on them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from rocbase.errors import CheckError
from rocwheel.wheels.members import Member
from rocwheel.wheels.source import ByteSource

T = TypeVar("T")

LARGE = 2 * 1024**2
"""Bytes of a member, packed, from which on another process is worth starting."""

MOST_PROCESSES = 4
"""Processes, this one included: each holds a part of the memory that reading takes."""

_UNPACKED_SHARE = 16
"""So many unpacked bytes take as long as one packed byte where they are the same over and over."""


class _Reader(NamedTuple):
    """A process that reads members by their numbers, and the end of a pipe on which it tells of them."""

    pid: int
    pipe: int


def read_beside(members: Sequence[Member], read: Callable[[ByteSource], T]) -> dict[int, T]:
    """What `read` gives of the large members of a wheel, by their numbers among `members`.

    Empty where it would gain nothing: fewer than two large ones, one processor, other threads (a copy of this
    process would have none of them), or a system without fork. Members that raise are left out.
    """
    large = [
        number
        for number, member in enumerate(members)
        if member.packed and member.packed.packed_size >= LARGE
    ]
    count = min(len(large), MOST_PROCESSES, _processors())
    if count < 2 or threading.active_count() > 1:
        return {}
    mine, *shares = _shared_out(large, [_cost(members[number]) for number in large], count)
    started: list[_Reader] = []
    results: dict[int, T] = {}
    try:
        # where no more processes may be started, this one reads what they would have
        with contextlib.suppress(OSError):
            started += (_start(members, numbers, read) for numbers in shares)
        for number in mine:
            with contextlib.suppress(CheckError):
                results[number] = read(members[number].open())
        for child in started:
            for number, (result, spent) in _results_of(child).items():
                with contextlib.suppress(CheckError):
                    members[number].open().budget.spend(spent)
                    results[number] = result
    finally:
        for child in started:
            _end(child)
    return results


def _cost(member: Member) -> int:
    packed = member.packed.packed_size if member.packed else 0
    return packed + member.size // _UNPACKED_SHARE


def _shared_out(numbers: Sequence[int], costs: Sequence[int], count: int) -> list[list[int]]:
    """Numbers for each of `count` processes, the costliest first and to whom has least."""
    shares: list[tuple[int, list[int]]] = [(0, []) for _ in range(count)]
    for cost, number in sorted(zip(costs, numbers, strict=True), reverse=True):
        lightest = min(range(count), key=lambda index: shares[index][0])
        shares[lightest] = shares[lightest][0] + cost, [*shares[lightest][1], number]
    return [sorted(share) for _, share in shares]


def _start(members: Sequence[Member], numbers: Sequence[int], read: Callable[[ByteSource], T]) -> _Reader:
    import pickle  # small files do without, and a copy of this process has it then

    ours, its = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(ours)
        os.close(its)
        raise
    if pid:
        os.close(its)
        return _Reader(pid, ours)
    try:
        # it says nothing and cleans up nothing: both are its parent's
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.close(ours)
        results: dict[int, tuple[T, int]] = {}
        for number in numbers:
            with contextlib.suppress(CheckError):
                source = members[number].open()
                budget = source.budget.left
                results[number] = read(source), budget - source.budget.left
        with open(its, "wb") as pipe:  # noqa: PTH123  a number, no path
            pickle.dump(results, pipe, pickle.HIGHEST_PROTOCOL)
    finally:
        os._exit(0)


def _results_of(child: _Reader) -> dict[int, tuple[Any, int]]:
    """What a process found; nothing where it ended early."""
    import pickle

    with open(child.pipe, "rb", closefd=False) as pipe:
        data = pipe.read()
    try:
        results: dict[int, tuple[Any, int]] = pickle.loads(data)  # noqa: S301  of our own process
    except (EOFError, pickle.UnpicklingError):
        return {}
    return results


def _end(child: _Reader) -> None:
    os.close(child.pipe)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGKILL)
    os.waitpid(child.pid, 0)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") and hasattr(os, "fork") else 1
