"""Planted regressions in real repositories, found by real builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocwright.culprit.report import GOOD_LOCK, page, tell, write_report
from rocwright.culprit.run import bisect
from rocwright.culprit.search import Answer
from rocwright.culprit.trial import Bench
from rocwright.errors import InputError
from rocwright.home import Home
from rocwright.resolve.files import read_lock
from tests.culprit.world import PRODUCT, World

LIBRARIES = ("one", "two", "three", "four")


@pytest.fixture
def world(tmp_path: Path, home: Home, engine: str, tiny_root: Path) -> World:
    return World(tmp_path / "world", home.path, engine, tiny_root, LIBRARIES)


@pytest.fixture
def pair(tmp_path: Path, home: Home, engine: str, tiny_root: Path) -> World:
    """Two words that break the product only together."""
    return World(tmp_path / "world", home.path, engine, tiny_root, LIBRARIES, ("new-interface", "old-habit"))


def moved(world: World, *names: str) -> None:
    """Upstream goes on harmlessly."""
    for name in names:
        world.commits(name, "better")


def test_the_library_and_its_commit_are_named(world: World) -> None:
    good = world.lock({})
    moved(world, "one", "two", "four", PRODUCT)
    ids = world.commits("three", "a", "b", "syntax-error", "c broken", "d broken", "e broken")
    report = bisect(good, world.lock({}), world.bench())
    assert [one.names for block in report.culprits for one in block] == [("three",)]
    assert report.failure.step == PRODUCT
    assert "does not compile" in report.failure.first
    (narrowed,) = report.commits
    # the commit before cannot be built, so either of the two may be the first bad one
    assert [one.commit for one in narrowed.suspects] == [ids[2], ids[3]]
    assert sum(one.answer is Answer.SKIP for one in report.tries) == 1


def test_two_that_break_only_together_are_named_together(pair: World, tmp_path: Path) -> None:
    good = pair.lock({})
    moved(pair, "one", "three")
    new = pair.commits("two", "fine", "new-interface")
    old = pair.commits("four", "old-habit", "old-habit more")
    bad = pair.lock({})
    report = bisect(good, bad, pair.bench())
    assert {one.names[0] for block in report.culprits for one in block} == {"two", "four"}
    assert report.certain
    assert {one.component: one.suspects[0].commit for one in report.commits} == {
        "two": new[1],
        "four": old[0],
    }
    said = "\n".join(tell(report))
    assert "culprits together" in said
    folder = write_report(report, good, bad, tmp_path / "report").parent
    assert read_lock(folder / GOOD_LOCK) == good
    assert "To repeat it" in page(report, good)


def test_a_search_that_was_stopped_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    good = world.lock({})
    moved(world, "one", "three", "four")
    world.commits("two", "broken")
    bad, bench = world.lock({}), world.bench()
    judged: list[tuple[str, ...]] = []
    judge = Bench.judge

    def stop_at_the_third(self: Bench, lock: Lock, failure: Failure, changes: tuple[str, ...]) -> Try:
        if len(judged) == 2:
            raise KeyboardInterrupt
        judged.append(changes)
        return judge(self, lock, failure, changes)

    with monkeypatch.context() as patched:
        patched.setattr(Bench, "judge", stop_at_the_third)
        with pytest.raises(KeyboardInterrupt):
            bisect(good, bad, bench)
    world.said.clear()
    report = bisect(good, bad, bench)
    assert [one.names for block in report.culprits for one in block] == [("two",)]
    assert not any(line.endswith(f": {'; '.join(judged[1])}") for line in world.said)


def test_what_the_failing_step_does_not_see_is_not_tried(world: World) -> None:
    good = world.lock({})
    world.commits("one", "syntax-error")
    moved(world, "two", "three", PRODUCT)
    report = bisect(good, world.lock({}), world.bench())
    assert report.failure.step == "one"
    assert {one.names[0] for one in report.irrelevant} == {"two", "three", PRODUCT}
    assert [one.names for block in report.culprits for one in block] == [("one",)]


def test_locks_that_show_nothing_are_refused(world: World) -> None:
    good = world.lock({})
    with pytest.raises(InputError, match="the same"):
        bisect(good, good, world.bench())
    moved(world, "one")
    with pytest.raises(InputError, match="does not fail"):
        bisect(good, world.lock({}), world.bench())
    world.commits("two", "broken")
    bad = world.lock({})
    moved(world, "three")
    with pytest.raises(InputError, match="good lock fails too"):
        bisect(bad, world.lock({}), world.bench())
