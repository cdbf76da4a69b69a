"""What one sees of a farm over time."""

from __future__ import annotations

from rocbase.errors import NetworkError
from rocwright.farm.handed import Place
from rocwright.farm.view import FRESH, REMEMBERED, View


def place(name: str, cores: int = 2) -> Place:
    return Place(name=name, cores=cores, memory=2**30, disk=2**30)


class Farm:
    """Machines, and a clock; `asked` counts how often somebody looked."""

    def __init__(self, *names: str) -> None:
        self.places = [place(name) for name in names]
        self.now, self.asked, self.silent = 100.0, 0, False

    def ask(self) -> list[Place]:
        self.asked += 1
        if self.silent:
            raise NetworkError("no coordinator answers at tcp://lab", cause="timed out", next_step="")
        return self.places

    def view(self) -> View:
        return View(self.ask, clock=lambda: self.now)


def test_who_went_is_shown_with_since_when_and_forgotten_after_a_while() -> None:
    farm = Farm("one", "two")
    view = farm.view()
    assert [one.name for one in view.look().places] == ["one", "two"]
    farm.places, farm.now = [place("two")], 110.0
    seen = view.look()
    assert [one.name for one in seen.places] == ["two"]
    assert [(one.name, seconds) for one, seconds in seen.gone] == [("one", 10.0)]
    farm.now = 100.0 + REMEMBERED + 1
    assert view.look().gone == ()


def test_who_comes_back_is_not_gone() -> None:
    farm = Farm("one")
    view = farm.view()
    view.look()
    farm.places, farm.now = [], 110.0
    assert len(view.look().gone) == 1
    farm.places, farm.now = [place("one")], 120.0
    assert (len(view.look().places), view.look().gone) == (1, ())


def test_many_who_look_ask_once() -> None:
    farm = Farm("one")
    view = farm.view()
    for _ in range(5):
        view.look()
    assert farm.asked == 1
    farm.now += FRESH
    view.look()
    assert farm.asked == 2


def test_a_coordinator_that_does_not_answer_is_told_and_loses_nothing() -> None:
    farm = Farm("one")
    view = farm.view()
    view.look()
    farm.silent, farm.now = True, 110.0
    assert view.look().silent == "no coordinator answers at tcp://lab: timed out"
    farm.silent, farm.places, farm.now = False, [], 120.0
    assert [one.name for one, _ in view.look().gone] == ["one"]
