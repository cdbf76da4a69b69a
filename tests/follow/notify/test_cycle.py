"""A row that is followed for real: a change of its state is one message, a night without one is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from samples.world import World
from tests.follow.notify.receiving import Receiver

from rocwright.config import config
from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import PlainProgress
from rocwright.follow.cycle.run import CycleConfig, cycle, last_cycles
from rocwright.follow.notify.look import LookOrder, look
from rocwright.follow.watch.bump import LockCandidate
from rocwright.home import Home
from rocwright.plan.resolve.difference import LockDifference
from rocwright.plan.resolve.model import Lock
from rocwright.plan.resolve.settings import Channel
from rocwright.project import Project

ROW = "tiny_gfx1151_debian-sid"


@pytest.fixture
def world(tmp_path: Path, here: Home, engine: str, tiny_root: Path, receiver: Receiver) -> World:
    text = f'[[notify]]\nname = "room"\nurl = "{receiver.url}"\n[cycle.ping]\nurl = "http://127.0.0.1:'
    (here.path / "config.toml").write_text(f'{text}{receiver.port}/ping"\n')
    look(here, config(), LookOrder(note=True))
    return World(tmp_path / "world", here.path, engine, tiny_root, ("one",))


def night(world: World) -> None:
    """A cycle that takes the newest commit of each repository, and looks after each row, as the command."""
    home = Home(world.home)

    def follow(_: Project, lock: Lock) -> LockCandidate:
        newest = world.lock({}).model_copy(update={"created": lock.created})
        return LockCandidate(lock=newest, difference=LockDifference(), ages={}, again=(), left=())

    wheel = CycleConfig(
        follow=follow,
        channels=(Channel(name="nightly", said="built"),),
        options=BuildOptions(jobs=2, engine=world.engine),
        progress=PlainProgress(),
        row_ended=lambda: look(home, config(), LookOrder()),
    )
    first = world.folder / f"locks/{ROW}/nightly.lock"
    if not first.exists():
        first.parent.mkdir(parents=True)
        (first.parent / "trying.lock").write_bytes((world.folder / "rocwright.lock").read_bytes())
    cycle(world.folder, [world.project.request], replace(world.project, catalog=world.catalog), wheel)
    look(home, config(), LookOrder())


def test_each_change_of_a_row_is_one_message(world: World, receiver: Receiver) -> None:
    night(world)
    night(world)
    assert receiver.titles == [f"rocwright: promoted to nightly: {ROW}"]
    assert receiver.paths == ["/ping"] * 2
    world.commits("one", "broken")
    night(world)
    night(world)
    assert receiver.titles[1:] == [f"rocwright: broken: {ROW}"]
    assert receiver.paths == ["/ping"] * 2
    world.commits("one", "fine")
    night(world)
    night(world)
    assert receiver.titles[2:] == ["rocwright: 1 passing again, 1 promoted"]
    assert len(receiver.paths) == 4
    [told] = last_cycles(Home(world.home))
    assert told.folder == str(world.folder.resolve())
