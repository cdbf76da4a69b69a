"""A channel that wants several owners takes what each of them built alike, and nothing else."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from samples.project import TinyProject, make_sources, open_project, put_roots
from tests.making import record_of
from tests.store.sharers import Machine

from rocwright.follow.cycle.channels import LockEvidence, missing
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.settings import Channel
from rocwright.project import Project
from rocwright.records.model import OWNER, Finding, now, said_of
from rocwright.store.bucket import Bucket
from rocwright.store.model import Output, Record, Shard
from rocwright.verify.run import owners

CHANNEL = Channel(name="two", said="built", agree=2)


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of whoever runs the tests do not count."""
    monkeypatch.setenv("ROCWRIGHT_HOME", str(tmp_path / "config"))


@pytest.fixture
def tiny(tmp_path: Path, tiny_root: Path) -> TinyProject:
    make_sources(tmp_path / "sources")
    project = open_project(tmp_path / "sources", tmp_path / "home")
    put_roots(project, tiny_root)
    return project


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    return Bucket((tmp_path / "bucket").as_uri())


def built(machine: Machine, project: TinyProject, data: bytes = b"the same", **more: object) -> list[Record]:
    """What each step that runs commands gave on a machine."""
    path = machine.path / "made"
    path.parent.mkdir(parents=True, exist_ok=True)
    found = []
    for step in make_plan(project.locked, project.catalog).steps:
        if step.kind != "run":
            continue
        path.write_bytes(data + step.name.encode())
        sha256, size = machine.store.put_file(path)
        record = record_of(step, Output(name="out", filename="made.tar", sha256=sha256, size=size))
        found.append(machine.store.put_record(record.model_copy(update=more)))
    return found


def found(project: TinyProject, machine: Machine, bucket: Bucket, *trusted: Machine) -> list[Finding]:
    """What is told of owners on a machine that trusts these."""
    here = Project(
        request=project.request,
        lock_path=project.lock_path,
        output=project.output,
        home=project.home,
        catalog=project.catalog,
        at=machine.behind(bucket, *(one.key for one in trusted)),
    )
    return owners(here, make_plan(project.locked, project.catalog))


def lack(findings: list[Finding]) -> str:
    seen = LockEvidence(
        said="built", findings=(Finding(component="a", check="c", name="n", ok=True), *findings)
    )
    missed = missing(CHANNEL, seen, None, False, datetime.now(UTC))
    return missed.why if missed is not None else ""


def test_two_owners_who_built_the_same_are_enough_for_a_channel_that_wants_two(
    tiny: TinyProject, bucket: Bucket, tmp_path: Path
) -> None:
    mine, lab = (Machine(tmp_path / name, name) for name in ("mine", "lab"))
    built(mine, tiny)
    assert found(tiny, mine, bucket, lab) == []
    assert lack([]) == "built by 1 of 2 owners who must agree"
    lab.push(bucket, *built(lab, tiny))
    told = found(tiny, mine, bucket, lab)
    assert [one.name for one in told] == [
        "the same, built on this machine",
        f"the same, signed by {lab.key.keyid[:16]}",
    ]
    assert lack(told) == ""
    # who is not trusted does not count
    assert found(tiny, mine, bucket) == []


def test_what_differs_in_one_step_and_what_a_third_has_compiled_does_not_count(
    tiny: TinyProject, bucket: Bucket, tmp_path: Path
) -> None:
    mine, other, helped = (Machine(tmp_path / name, name) for name in ("mine", "other", "helped"))
    built(mine, tiny)
    records = built(other, tiny)
    other.push(bucket, *records[1:])
    assert found(tiny, mine, bucket, other) == []
    differs = Machine(tmp_path / "differs", "differs")
    differs.push(bucket, *built(differs, tiny, b"something else"))
    shards = (Shard(key="1" * 64, step="s", keyid=other.key.keyid),)
    helped.push(bucket, *built(helped, tiny, shards=shards))
    assert found(tiny, mine, bucket, differs, helped) == []
    other.push(bucket, *records)
    assert len(found(tiny, mine, bucket, other, differs, helped)) == 2


def test_this_machine_does_not_count_twice_nor_where_another_compiled_for_it(
    tiny: TinyProject, bucket: Bucket, tmp_path: Path
) -> None:
    mine, lab = (Machine(tmp_path / name, name) for name in ("mine", "lab"))
    (tmp_path / "config").mkdir()
    for name in ("mine.key", "mine.pub"):
        shutil.copy(tmp_path / "mine" / name, tmp_path / "config" / name.replace("mine", "attest"))
    mine.push(bucket, *built(mine, tiny))
    assert found(tiny, mine, bucket, mine) == []
    lab.push(bucket, *built(lab, tiny))
    assert len(found(tiny, mine, bucket, mine, lab)) == 2
    helped = Machine(tmp_path / "helped", "helped")
    built(helped, tiny, shards=(Shard(key="1" * 64, step="s", keyid=lab.key.keyid),))
    assert found(tiny, helped, bucket, lab) == []


def test_that_owners_agree_is_no_check_of_what_a_thing_does() -> None:
    made = Finding(component="a", check=OWNER, name="n", ok=True, when=now())
    assert said_of("verify", "verified", [made]) == ""
