"""Planted regressions in real repositories, found by real builds."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples.world import PRODUCT, World
from tests.conftest import Command

from rocbase.errors import InputError
from rocwright.follow.bisection.model import Failure, Try
from rocwright.follow.bisection.report import BAD_LOCK, GOOD_LOCK, tell
from rocwright.follow.bisection.run import bisect
from rocwright.follow.bisection.search import TrialAnswer
from rocwright.follow.bisection.trial import LockTrials
from rocwright.home import Home
from rocwright.plan.resolve.files import read_lock, write_lock, write_request
from rocwright.plan.resolve.model import Lock

pytestmark = pytest.mark.real

LIBRARIES = ("one", "two", "three")


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


@pytest.mark.nightly
def test_the_library_and_its_commit_are_named(world: World) -> None:
    good = world.lock({})
    moved(world, "one", "two", PRODUCT)
    ids = world.commits("three", "a", "syntax-error", "c broken", "d broken")
    report = bisect(good, world.lock({}), world.trials())
    assert [one.name for block in report.culprits for one in block] == ["three"]
    assert report.failure.step == PRODUCT
    assert "does not compile" in report.failure.first
    (narrowed,) = report.commits
    # the commit before cannot be built, so either of the two may be the first bad one
    assert [one.commit for one in narrowed.suspects] == [ids[1], ids[2]]
    assert sum(one.answer is TrialAnswer.SKIP for one in report.tries) == 1


@pytest.mark.nightly
def test_two_that_break_only_together_are_named_together(pair: World) -> None:
    good = pair.lock({})
    moved(pair, "one")
    new = pair.commits("two", "fine", "new-interface")
    old = pair.commits("three", "old-habit", "old-habit more")
    bad = pair.lock({})
    report = bisect(good, bad, pair.trials())
    assert {one.name for block in report.culprits for one in block} == {"two", "three"}
    assert report.certain
    assert {one.component: one.suspects[0].commit for one in report.commits} == {
        "two": new[1],
        "three": old[0],
    }
    assert "culprits together" in "\n".join(tell(report))


@pytest.mark.nightly
def test_a_search_that_was_stopped_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    good = world.lock({})
    moved(world, "one", "three", PRODUCT)
    world.commits("two", "broken")
    bad, trials = world.lock({}), world.trials()
    judged: list[tuple[str, ...]] = []
    judge = LockTrials.judge

    def stop_at_the_third(self: LockTrials, lock: Lock, failure: Failure, changes: tuple[str, ...]) -> Try:
        if len(judged) == 2:
            raise KeyboardInterrupt
        judged.append(changes)
        return judge(self, lock, failure, changes)

    with monkeypatch.context() as patched:
        patched.setattr(LockTrials, "judge", stop_at_the_third)
        with pytest.raises(KeyboardInterrupt):
            bisect(good, bad, trials)
    world.said.clear()
    report = bisect(good, bad, trials)
    assert [one.name for block in report.culprits for one in block] == ["two"]
    assert not any(line.endswith(f": {'; '.join(judged[1])}") for line in world.said)


@pytest.mark.nightly
def test_what_the_failing_step_does_not_see_is_not_tried(world: World) -> None:
    good = world.lock({})
    world.commits("one", "syntax-error")
    moved(world, "two", "three", PRODUCT)
    report = bisect(good, world.lock({}), world.trials())
    assert report.failure.step == "one"
    assert {one.name for one in report.irrelevant} == {"two", "three", PRODUCT}
    assert [one.name for block in report.culprits for one in block] == ["one"]


@pytest.mark.nightly
def test_locks_that_show_nothing_are_refused(world: World) -> None:
    good = world.lock({})
    with pytest.raises(InputError, match="the same"):
        bisect(good, good, world.trials())
    moved(world, "one")
    with pytest.raises(InputError, match="does not fail"):
        bisect(good, world.lock({}), world.trials())
    world.commits("two", "broken")
    bad = world.lock({})
    moved(world, "three")
    with pytest.raises(InputError, match="good lock fails too"):
        bisect(bad, world.lock({}), world.trials())


def test_the_command_writes_a_report_that_repeats_it(
    world: World, rocwright: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = world.lock({})
    moved(world, "one", "three")
    world.commits("two", "fine", "broken")
    folder = tmp_path / "project"
    write_request(folder / "rocwright.toml", good.request)
    write_lock(folder / "rocwright.lock", good)
    write_lock(folder / "rocwright.lock.candidate", world.lock({}))
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(world.folder / "catalog"))
    told = rocwright("bisect", "--no-checks", "--report", "found")
    assert told.returncode == 0, told.stderr
    assert "two: the first bad commit" in told.stdout
    text = (folder / "found/report.md").read_text()
    assert text.startswith("# product fails since two 1.0")
    assert "error: the product does not compile" in text
    assert read_lock(folder / "found" / GOOD_LOCK) == good
    changed = [
        one.name
        for one, other in zip(read_lock(folder / "found" / BAD_LOCK).components, good.components, strict=True)
        if one != other
    ]
    assert changed == ["two"]
