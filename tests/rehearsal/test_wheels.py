"""Wheels that others published: fetched by the hashes of the lock, and read for the row's GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocbase.files.atomic import sha256_file
from rocwheel_samples.fatbin import write_wheel
from rocwheel_samples.gpu_assembly import assemble, kernel_source
from rocwright.catalog.load import builtin_catalog
from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import PlainProgress
from rocwright.home import Home
from rocwright.model.steps import FilePin, IndexOrigin
from rocwright.plan.resolve.model import Lock, LockedComponent
from rocwright.plan.resolve.shipped import shipped_lock
from rocwright.records.model import Which
from rocwright.records.opening import open_records
from rocwright.rehearsal import run
from rocwright.rehearsal.result import RowRehearsed, TrialTally
from rocwright.rehearsal.rows import asked_rows
from rocwright.rehearsal.run import How, Rehearser
from rocwright.store.local import LocalStore
from rocwright.verify.standing import local_evidence

PUBLISHED = "bitsandbytes"


@pytest.fixture
def wheel(tmp_path: Path) -> FilePin:
    """A wheel with code for gfx803, not in the store yet."""
    source = kernel_source(descriptor={}, metadata={"max_flat_workgroup_size": 64})
    path = tmp_path / "x-1-py3-none-any.whl"
    write_wheel(path, {"x/kernels.co": assemble(tmp_path, source, "gfx803").read_bytes()})
    origin = IndexOrigin(project="x", version="1")
    return FilePin(filename=path.name, sha256=sha256_file(path), size=path.stat().st_size, origin=origin)


def of_row(home: Home, gpu: str, monkeypatch: pytest.MonkeyPatch, **told: object) -> RowRehearsed:
    """The row of bitsandbytes, whose lock is for that GPU and has that of its wheels."""
    catalog = builtin_catalog()
    request = asked_rows(catalog, [PUBLISHED])[0]
    lock = shipped_lock(catalog, request)
    assert lock is not None

    def changed(one: LockedComponent) -> LockedComponent:
        return one.model_copy(update=told) if one.name == PUBLISHED else one

    asked = request.model_copy(update={"gpu": (gpu,)})
    components = tuple(map(changed, lock.components))

    def shipped(*_: object) -> Lock:
        return lock.model_copy(update={"components": components, "request": asked})

    monkeypatch.setattr(run, "shipped_lock", shipped)
    return Rehearser(catalog, home, BuildOptions(), How(), PlainProgress()).row(asked)


def parts_of(told: RowRehearsed) -> list[TrialTally]:
    [found] = [one for one in told.components if one.component == PUBLISHED]
    return list(found.parts)


def test_wheels_with_code_for_the_gpu_are_counted_and_are_evidence(
    home: Home, store: LocalStore, wheel: FilePin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put_file(tmp_path / wheel.filename)
    told = of_row(home, "gfx803", monkeypatch, files=(wheel,))
    assert [(one.name, one.tried, one.all, one.failed) for one in parts_of(told)] == [
        ("as the lock has them", 1, 1, ()),
        ("check-gpu", 1, 1, ()),
    ]
    assert told.word == "rehearsed in part (2 of 3)"
    assert ("rehearsed", "gfx803") in [(one.said, *one.gpu) for one in local_evidence(home)]
    with open_records(home) as records:
        assert [one.outcome for one in records.runs(Which())] == ["rehearsed"]


def test_wheels_without_code_for_the_gpu_fail(
    home: Home, store: LocalStore, wheel: FilePin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put_file(tmp_path / wheel.filename)
    [_, read] = parts_of(of_row(home, "gfx1100", monkeypatch, files=(wheel,)))
    assert "without code for gfx1100" in read.failed[0].detail


def test_a_wheel_that_cannot_be_read_fails(
    home: Home, store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "y-1-py3-none-any.whl"
    path.write_bytes(b"no wheel")
    store.put_file(path)
    origin = IndexOrigin(project="y", version="1")
    pin = FilePin(filename=path.name, sha256=sha256_file(path), size=8, origin=origin)
    [_, read] = parts_of(of_row(home, "gfx803", monkeypatch, files=(pin,)))
    assert read.failed


def test_what_cannot_be_fetched_is_told_with_the_reason(
    home: Home, wheel: FilePin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    [fetched, read] = parts_of(of_row(home, "gfx803", monkeypatch, files=(wheel,)))
    assert (fetched.tried, fetched.all, read.tried, read.all) == (0, 1, 0, 1)
    [reason] = fetched.reasons
    assert "the package index does not answer" in reason
    with open_records(home) as records:
        assert [one.outcome for one in records.runs(Which())] == ["not rehearsed"]


def test_wheels_that_the_lock_has_no_hashes_of_are_not_tried(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = of_row(home, "gfx803", monkeypatch, files=(), pending="the sha256 of y 1")
    assert [(one.name, one.tried, one.reasons) for one in parts_of(told)] == [
        ("not locked", 0, ("the lock lacks the sha256 of y 1",))
    ]
    assert told.word == "not rehearsed"
    assert local_evidence(home) == []
    with open_records(home) as records:
        assert list(records.runs(Which())) == []
