"""Rows that move, break and heal: built for real, in a tiny root."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from samples.world import World

from rocbase.errors import InputError
from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import PlainProgress
from rocwright.follow.cycle.model import RowTold
from rocwright.follow.cycle.run import CycleConfig, cycle, last_cycle, look
from rocwright.follow.cycle.tell import tell
from rocwright.follow.watch.bump import LockCandidate
from rocwright.home import Home
from rocwright.plan.make import make_plan
from rocwright.plan.resolve import aliases
from rocwright.plan.resolve.difference import LockDifference
from rocwright.plan.resolve.files import read_lock, write_lock
from rocwright.plan.resolve.model import Lock
from rocwright.plan.resolve.settings import Channel
from rocwright.project import Project, kept_keys
from rocwright.records.opening import open_records

CHANNELS = (
    Channel(name="nightly", said="built"),
    Channel(name="candidate", said="built"),
    Channel(name="known-good", said="checked without a GPU"),
)


@pytest.fixture
def world(tmp_path: Path, home: Home, engine: str, tiny_root: Path) -> World:
    return World(tmp_path / "world", home.path, engine, tiny_root, ("one", "two"))


def candidate(lock: Lock, *silent: str) -> LockCandidate:
    return LockCandidate(lock=lock, difference=LockDifference(), ages={}, again=(), left=(), silent=silent)


def turn(world: World, *, bisect: bool = False) -> RowTold:
    """A cycle whose upstream is the newest commit of each repository."""

    def follow(project: Project, lock: Lock) -> LockCandidate:
        return candidate(world.lock({}).model_copy(update={"created": lock.created}))

    options = BuildOptions(jobs=2, engine=world.engine)
    wheel = CycleConfig(
        follow=follow, channels=CHANNELS, options=options, progress=PlainProgress(), bisect=bisect
    )
    like = replace(world.project, catalog=world.catalog)
    first = world.folder / "locks/tiny_gfx1151_debian-sid/nightly.lock"
    if not first.exists():
        # the first lock is the one that the machine has
        (world.folder / "locks/tiny_gfx1151_debian-sid").mkdir(parents=True)
        (first.parent / "trying.lock").write_bytes((world.folder / "rocwright.lock").read_bytes())
    [row] = cycle(world.folder, [world.project.request], like, wheel).rows
    return row


def test_a_row_moves_breaks_and_heals(world: World) -> None:
    first = turn(world)
    assert (first.state, first.promoted) == ("promoted", ("nightly", "candidate")), first
    # a stack without checks is verified by nothing
    assert "the channel needs 'checked without a GPU'" in first.waits["known-good"]
    assert turn(world).state == "unchanged"

    world.commits("one", "better")
    moved = turn(world)
    assert moved.promoted == ("nightly", "candidate")
    assert any(line.startswith("one ") for line in moved.changes), moved.changes

    world.commits("two", "fine", "broken")
    failed = turn(world, bisect=True)
    assert failed.state == "failed"
    assert failed.culprit is not None
    assert any("two: the first bad commit" in line for line in failed.culprit.says), failed.culprit
    assert Path(failed.culprit.report).exists()
    kept = read_lock(world.folder / "locks" / failed.name / "nightly.lock")
    assert {one.name: one.commit for one in kept.components} == {
        one.name: one.commit
        for one in read_lock(world.folder / "locks" / failed.name / "candidate.lock").components
    }
    plan = make_plan(kept, world.catalog)
    assert {step.key for step in plan.steps} <= kept_keys(Home(world.home)), "a clean-up would take it"
    again = turn(world)
    assert again.state == "failed"
    assert again.why == "the same candidate failed before"

    world.commits("two", "mended")
    healed = turn(world)
    assert healed.promoted == ("nightly", "candidate")
    with open_records(Home(world.home)) as records:
        [cell] = records.matrix()
        assert set(cell.channels) == {"nightly", "candidate"}
        assert cell.said == "built"
        assert len(records.promotions(channel="nightly")) == 3


def test_rows_that_differ_only_in_their_pins_stand_apart(world: World) -> None:
    rows = [world.project.request.model_copy(update={"versions": pins}) for pins in ({}, {"one": "1"})]
    for row in rows:
        (world.folder / "locks" / row.name).mkdir(parents=True)
        lock = world.lock({}).model_copy(update={"request": row})
        write_lock(world.folder / "locks" / row.name / "trying.lock", lock)
    options = BuildOptions(jobs=2, engine=world.engine)
    like = replace(world.project, catalog=world.catalog)
    wheel = CycleConfig(
        # upstream has a newer one: what the lock asks for goes on from what the row does
        follow=lambda _, lock: candidate(
            lock.model_copy(update={"request": lock.request.model_copy(update={"versions": {"two": "2"}})})
        ),
        channels=CHANNELS,
        options=options,
        progress=PlainProgress(),
    )
    plain, pinned = cycle(world.folder, rows, like, wheel).rows
    assert (plain.name, pinned.name) == ("tiny_gfx1151_debian-sid", "tiny_gfx1151_debian-sid_one=1")
    assert [one.promoted for one in (plain, pinned)] == [("nightly", "candidate")] * 2
    cycle(world.folder, rows, like, wheel)
    for one in (plain, pinned):
        assert (world.folder / "locks" / one.name / "nightly.lock").exists()
        assert (world.folder / "rocwright-out" / one.name / "tiny/product.txt").exists()
    with open_records(Home(world.home)) as records:
        cells = records.matrix()
        assert [(one.variant, sorted(one.channels)) for one in cells] == [
            ("", ["candidate", "nightly"]),
            ("one=1", ["candidate", "nightly"]),
        ]
        assert {one.variant for one in records.runs()} == {"", "one=1"}
        # the second row came from the store whole, and has its artifacts on record all the same
        assert all(records.artifacts(run=one.run) for one in (plain, pinned))


def test_what_no_source_saw_on_its_rocm_enters_no_channel(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is built and on record; nothing of this world needs ROCm, which would be refused."""
    monkeypatch.setattr(aliases, "_untested", lambda request, components: [])
    row = world.project.request.model_copy(update={"allow_untested": True})
    (world.folder / "locks" / row.name).mkdir(parents=True)
    lock = world.lock({}).model_copy(update={"request": row})
    write_lock(world.folder / "locks" / row.name / "trying.lock", lock)
    wheel = CycleConfig(
        follow=lambda _, lock: candidate(lock),
        channels=CHANNELS,
        options=BuildOptions(jobs=2, engine=world.engine),
        progress=PlainProgress(),
    )
    [told] = cycle(world.folder, [row], replace(world.project, catalog=world.catalog), wheel).rows
    assert told.promoted == ()
    assert told.waits["nightly"] == "it was never seen on this ROCm"


def test_what_failed_is_in_no_output_and_is_tried_again_when_its_recipe_is_mended(world: World) -> None:
    assert turn(world).state == "promoted"
    laid = world.folder / "rocwright-out/tiny_gfx1151_debian-sid/tiny/product.txt"
    first = laid.read_bytes()
    world.commits("one", "broken")
    assert turn(world).state == "failed"
    assert turn(world).why == "the same candidate failed before"
    assert laid.read_bytes() == first
    world.mend("another-word")
    mended = turn(world)
    assert mended.state == "promoted", mended
    assert "it failed before, but is built differently now" in mended.changes
    assert b"broken" in laid.read_bytes()


def test_upstream_that_is_silent_is_not_unchanged_and_looking_does_nothing(world: World) -> None:
    turn(world)
    kept = world.lock({}).model_copy(update={"created": "2026-01-01T00:00:00Z"})
    options = BuildOptions(jobs=1, engine=world.engine)

    def wheel(*silent: str) -> CycleConfig:
        return CycleConfig(
            follow=lambda _, lock: candidate(kept, *silent),
            channels=CHANNELS,
            options=options,
            progress=PlainProgress(),
        )

    like = replace(world.project, catalog=world.catalog)
    [row] = cycle(world.folder, [world.project.request], like, wheel("git x: no answer")).rows
    assert (row.state, row.silent) == ("not tried", ("git x: no answer",))
    told = last_cycle(world.folder, like.home)
    assert told is not None
    assert "  no answer: git x: no answer" in tell(told)

    world.commits("one", "better")
    kept = world.lock({})
    before = sorted(path.stat().st_mtime_ns for path in world.folder.rglob("locks/**/*"))
    [row] = look(world.folder, [world.project.request], like, wheel()).rows
    assert row.state == "to try"
    assert row.changes[-1] == "4 steps would run: source/one, tree/one, one, product"
    assert sorted(path.stat().st_mtime_ns for path in world.folder.rglob("locks/**/*")) == before


def test_two_cycles_at_once_are_refused(world: World) -> None:
    def inside(project: Project, lock: Lock) -> LockCandidate:
        with pytest.raises(InputError, match="running already"):
            turn(world)
        return candidate(lock)

    turn(world)
    options = BuildOptions(jobs=1, engine=world.engine)
    wheel = CycleConfig(follow=inside, channels=CHANNELS, options=options, progress=PlainProgress())
    told = cycle(world.folder, [world.project.request], world.project, wheel)
    assert told.rows[0].state == "unchanged"
    assert last_cycle(world.folder, world.project.home) == told
