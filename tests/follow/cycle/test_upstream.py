"""Cycles that follow a package index which moves, lies, deletes, is slow or down; records that are locked."""

from __future__ import annotations

import contextlib
import gzip
import io
import socket
import sqlite3
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.follow.watch.conftest import catalog_of, component, release, request_of
from tests.sources.conftest import Index
from tests.sources.conftest import index as index

from rocbase.errors import OutOfDiskError
from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import PlainProgress
from rocwright.follow.cycle.model import RowTold
from rocwright.follow.cycle.run import CycleConfig, cycle
from rocwright.follow.watch.bump import LockCandidate
from rocwright.follow.watch.projects import newest
from rocwright.home import Home
from rocwright.plan.resolve.files import read_lock
from rocwright.plan.resolve.model import Lock
from rocwright.plan.resolve.settings import Channel, WatchSettings
from rocwright.project import Project, project_of
from rocwright.records import faults
from rocwright.records.opening import open_records
from rocwright.records.read import Records
from rocwright.store.local import LocalStore
from rocwright.store.model import records

CHANNELS = (Channel(name="nightly", said="built"),)


@dataclass
class Field:
    """A row that follows one project of an index."""

    index: Index
    home: Home
    folder: Path
    rows: dict[str, bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = self.index.files.setdefault("hello", {})
        self.publish("1.0.0")

    def publish(self, version: str) -> None:
        """A release of it, honestly listed."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            data = f"{version}\n".encode()
            member = tarfile.TarInfo(f"hello-{version}/hello.txt")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        self.rows[f"hello-{version}.tar.gz"] = gzip.compress(packed.getvalue(), mtime=0)

    def turn(self, seconds: float = 20) -> RowTold:
        place = {"sdist": "hello", "version": "1.0.0"}
        catalog = catalog_of(component("hello", release("1.0.0", place), kind="file"))
        settings, progress = WatchSettings(cool_down=0, seconds=seconds), PlainProgress()

        def follow(project: Project, lock: Lock) -> LockCandidate:
            return newest(project, lock, settings, progress.say)

        like = project_of(request_of(), self.folder, self.home)
        like = Project(
            request=like.request,
            lock_path=like.lock_path,
            output=like.output,
            home=self.home,
            catalog=catalog,
        )
        wheel = CycleConfig(follow=follow, channels=CHANNELS, options=BuildOptions(jobs=1), progress=progress)
        [row] = cycle(self.folder, [request_of()], like, wheel).rows
        return row

    @property
    def nightly(self) -> str:
        """The version that the channel holds."""
        [lock] = [read_lock(path) for path in self.folder.glob("locks/*/nightly.lock")]
        return lock.components[0].version


@pytest.fixture
def row(index: Index, home: Home, tmp_path: Path) -> Field:
    (tmp_path / "project").mkdir()
    return Field(index, home, tmp_path / "project")


def test_an_index_that_moves_lies_and_deletes(row: Field) -> None:
    assert row.turn().promoted == ("nightly",)
    assert row.nightly == "1.0.0"
    row.publish("1.0.1")
    moved = row.turn()
    assert (moved.state, row.nightly) == ("promoted", "1.0.1"), moved
    assert any("hello 1.0.0 -> 1.0.1" in line for line in moved.changes)

    honest = row.rows["hello-1.0.1.tar.gz"]
    row.rows["hello-1.0.1.tar.gz"] = b"another under the same name"
    lying = row.turn()
    assert lying.state == "not tried"
    assert "no candidate lock was written" in lying.why
    row.rows["hello-1.0.1.tar.gz"] = honest

    row.publish("1.0.2")
    row.index.wrong = b"not what the page says it is"
    assert row.turn().state == "not tried"
    assert row.nightly == "1.0.1"
    row.index.wrong = None
    assert row.turn().state == "promoted"
    assert row.nightly == "1.0.2"

    # deleted upstream: the copy that is kept is what it is built from
    del row.rows["hello-1.0.2.tar.gz"], row.rows["hello-1.0.1.tar.gz"]
    assert row.turn().state == "unchanged"
    store = LocalStore(row.home.store)
    built = [one for one in records(store) if one.step == "file/hello"]
    assert built
    for one in built:
        store.local.remove("record", one.key)
    again = row.turn()
    assert (again.state, again.why) == ("unchanged", ""), again
    assert {one.key for one in records(store)} & {one.key for one in built}
    assert row.nightly == "1.0.2"


def test_an_index_that_is_slow_or_down_is_told_and_the_next_cycle_goes_on(
    row: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    row.turn()
    told = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # it takes the call and never says a word
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        told.append(row.turn(seconds=0.5))
    told.append(row.turn())
    for one in told:
        assert one.state == "not tried", one
        assert any("hello" in line for line in one.silent)
    monkeypatch.setenv("PIP_INDEX_URL", f"{row.index.url}/simple")
    assert row.turn().state == "unchanged"


def test_records_that_are_locked_or_full_or_of_another_version_lose_nothing(
    row: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OutOfDiskError("the disk of the records is full")

    row.turn()
    row.publish("1.0.1")
    with contextlib.closing(sqlite3.connect(row.home.records, isolation_level=None)) as other:
        with monkeypatch.context() as patched:
            patched.setattr(faults, "WAIT", 0.05)
            other.execute("BEGIN IMMEDIATE")
            locked = row.turn()
            other.execute("ROLLBACK")
        (version,) = other.execute("SELECT version_num FROM alembic_version").fetchone()
        other.execute("UPDATE alembic_version SET version_num = '9999'")
        newer = row.turn()
        other.execute("UPDATE alembic_version SET version_num = ?", (version,))
    assert (locked.promoted, newer.state, row.nightly) == ((), "not tried", "1.0.0")
    assert "written by another version of rocwright" in newer.why
    with monkeypatch.context() as patched:
        patched.setattr(Records, "promote", full)
        held = row.turn()
    assert (held.state, held.promoted) == ("not tried", ())
    assert "is full" in held.why
    assert row.turn().promoted == ("nightly",)
    assert row.nightly == "1.0.1"
    with open_records(row.home) as records:
        newest, first = (records.lock(one.lock) for one in records.promotions())
        assert newest is not None and '"version":"1.0.1"' in newest
        assert first is not None and '"version":"1.0.0"' in first
