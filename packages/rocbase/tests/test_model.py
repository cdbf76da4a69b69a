"""Models cost what is used of them, whoever uses them first."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from threading import Barrier, Thread

import pytest

from rocbase.model import Frozen


@pytest.fixture
def many_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_a_model_that_is_only_imported_makes_no_validator() -> None:
    class Used(Frozen):
        name: str

    class Unused(Frozen):
        name: str

    Used(name="torch")
    assert Used.__pydantic_complete__
    assert not Unused.__pydantic_complete__


class Inner(Frozen):
    number: int = 0


class Outer(Frozen):
    name: str
    inner: tuple[Inner, ...] = ()


def test_threads_may_use_a_model_first_at_the_same_time(many_switches: None) -> None:
    told: list[str] = []
    together = Barrier(8)

    def use() -> None:
        together.wait()
        told.append(Outer.model_validate({"name": "torch", "inner": [{"number": 1}]}).model_dump_json())

    threads = [Thread(target=use) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert told == ['{"name":"torch","inner":[{"number":1}]}'] * 8
