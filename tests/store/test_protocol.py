"""What every store does, and that others ask no more of one: the same tests for a folder and for a bucket."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import obstore
import pytest
from tests.bucket import BucketStore
from tests.making import digest, put_output, record_of, small_plan
from tests.store.servers import reach, s3
from tests.store.sharers import Machine

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwright.execution.cleanup.room import look
from rocwright.home import Home
from rocwright.plan.decide import decide
from rocwright.sources.bases.roots import remove_tree
from rocwright.store import SCHEMES, open_store
from rocwright.store.bucket import Bucket
from rocwright.store.gc import check_whole, remove, usage
from rocwright.store.leases import locked
from rocwright.store.local import LocalStore
from rocwright.store.model import DamagedBlobError, Output, Record, Store, chunks, records, verified
from rocwright.store.sharing import SharingStore, WorkingStore

KEY = digest("a step")
SOURCE = Path(__file__).parents[2] / "src/rocwright"


@dataclass(frozen=True)
class Subject:
    """A store, and how somebody else writes into it: what of ("file", "record"), its name, its bytes."""

    store: Store
    overwrite: Callable[[str, str, bytes], None]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3() as url:
        yield url


@pytest.fixture(params=["folder", "sharing", "working", "bucket"])
def subject(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Subject:
    if request.param != "bucket":
        store = LocalStore(tmp_path / "folder")

        def into_folder(what: str, name: str, data: bytes) -> None:
            place = {"file": f"blobs/{name[:2]}/{name}", "record": f"records/{name[:2]}/{name}.json"}[what]
            (store.path / place).chmod(0o644)
            (store.path / place).write_bytes(data)

        if request.param == "working":
            reach(monkeypatch, request.getfixturevalue("server"))
            one = Machine(tmp_path, "lab")
            shared = one.behind(Bucket(f"s3://lab/{tmp_path.name}"), one.key).shared
            return Subject(WorkingStore(store, shared, one.signer, "lab"), into_folder)
        return Subject(store if request.param == "folder" else SharingStore(store, ()), into_folder)
    bucket = BucketStore(tmp_path / "cache")

    def into_bucket(what: str, name: str, data: bytes) -> None:
        folder = {"file": "files", "record": "made"}[what]
        obstore.put(bucket.bucket, f"{folder}/{name}", data)

    return Subject(bucket, into_bucket)


def gone(record: Record | None) -> bool:
    """Whether a store has no record of its own any more; one that is shared may have it still."""
    return record is None or record.origin is not None


@pytest.fixture
def any_store(subject: Subject) -> Store:
    return subject.store


def a_file(folder: Path, data: bytes = b"some bytes") -> Path:
    path = folder / "file"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("move", [False, True], ids=["copied", "moved"])
def test_a_file_is_read_as_it_was_put(any_store: Store, tmp_path: Path, move: bool) -> None:
    path = a_file(tmp_path)
    sha256, size = any_store.put_file(path, move=move)
    assert path.exists() is not move
    assert any_store.has(sha256, size)
    assert not any_store.has(sha256, size + 1)
    assert verified(any_store, sha256).read_bytes() == b"some bytes"
    assert b"".join(chunks(any_store, sha256)) == b"some bytes"
    with any_store.opened(sha256) as file:
        file.seek(0)
        assert file.read() == b"some bytes"
    assert [file[:2] for file in any_store.local.files()] == [(sha256, size)]


def test_a_file_that_is_not_there_is_a_key_error(any_store: Store) -> None:
    readers: list[Callable[[], object]] = [
        lambda: verified(any_store, digest("x")),
        lambda: any_store.opened(digest("x")),
        lambda: list(chunks(any_store, digest("x"))),
    ]
    for read in readers:
        with pytest.raises(KeyError):
            read()


def test_a_damaged_file_is_never_used_and_gone_then(subject: Subject, tmp_path: Path) -> None:
    store = subject.store
    for read in (
        lambda each: verified(store, each),
        lambda each: list(chunks(store, each)),
        store.opened,
    ):
        sha256, size = store.put_file(a_file(tmp_path))
        subject.overwrite("file", sha256, b"SOME bytes")
        with pytest.raises(DamagedBlobError):
            read(sha256)
        assert not store.has(sha256, size)


def test_a_file_is_removed_once_and_for_all(any_store: Store, tmp_path: Path) -> None:
    sha256, _ = any_store.put_file(a_file(tmp_path))
    any_store.local.remove("file", sha256)
    any_store.local.remove("file", sha256)
    assert not any_store.has(sha256)


def test_the_first_record_of_a_key_is_kept(any_store: Store, tmp_path: Path) -> None:
    step = small_plan().steps[-1]
    sha256, size = any_store.put_file(a_file(tmp_path))
    first = record_of(step, Output(name="out", filename="file", sha256=sha256, size=size))
    assert any_store.put_record(first) == first
    assert any_store.put_record(first.model_copy(update={"seconds": 99.0})) == first
    assert any_store.record(step.key) == first
    [entry] = any_store.local.records()
    assert records(any_store) == [first]
    assert (entry.key, entry.record, entry.problem) == (step.key, first, "")
    assert entry.written == pytest.approx(time.time(), abs=60)
    any_store.local.remove("record", step.key)
    assert gone(any_store.record(step.key))


def test_a_record_whose_files_are_gone_gives_way(any_store: Store) -> None:
    step = small_plan().steps[-1]
    gone = record_of(step, Output(name="out", filename="file", sha256=digest("gone"), size=1))
    any_store.put_record(gone)
    later = gone.model_copy(update={"seconds": 99.0})
    assert any_store.put_record(later) == later == any_store.record(step.key)


def test_a_damaged_record_is_none_and_told(subject: Subject) -> None:
    record = subject.store.put_record(record_of(small_plan().steps[-1]))
    told: list[str] = []
    assert subject.store.record(record.key, told.append) == record
    assert told == []
    subject.overwrite("record", record.key, b'{"key": 1}')
    assert gone(subject.store.record(record.key, told.append))
    assert told == [record.key]
    assert gone(subject.store.record(record.key, told.append))
    assert told == [record.key] * 2
    assert records(subject.store) == []


def test_a_newer_rocwrights_record_is_refused_and_left_alone(subject: Subject) -> None:
    record = subject.store.put_record(record_of(small_plan().steps[-1]))
    newer = record.model_dump(mode="json") | {"schema_version": 99}
    subject.overwrite("record", record.key, json.dumps(newer).encode())
    with pytest.raises(InputError, match="has schema 99"):
        subject.store.record(record.key)
    [entry] = subject.store.local.records()
    assert (entry.key, entry.record, entry.problem) == (record.key, None, "newer")
    assert records(subject.store) == []


def test_a_definition_comes_back_as_put(any_store: Store) -> None:
    key = digest("key")
    assert any_store.step(key) is None
    any_store.put_step(key, b"definition")
    assert any_store.step(key) == b"definition"


def test_a_lock_is_one_holders_at_a_time(any_store: Store) -> None:
    order: list[str] = []
    asked = threading.Event()

    def other() -> None:
        asked.set()
        with locked(any_store, KEY):
            order.append("second")

    thread = threading.Thread(target=other)
    with locked(any_store, KEY):
        thread.start()
        asked.wait()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


# what others do with a store


def test_verify_finds_what_is_damaged_in_any_store(subject: Subject, tmp_path: Path) -> None:
    store, [*_, first, second, third] = subject.store, small_plan().steps
    whole, spoilt = (put_output(store, step, "out", step.key.encode(), tmp_path) for step in (first, second))
    subject.overwrite("file", spoilt.sha256, b"x" * spoilt.size)
    store.put_record(record_of(third))
    subject.overwrite("record", third.key, b"{}")
    found = check_whole(store)
    assert (found.files, found.damaged, found.records) == (2, (spoilt.sha256,), (third.key,))
    assert found.incomplete == (f"{second.name} {second.key[:12]}",)
    assert [(one.kind, one.size) for one in usage(store)] == [(first.kind, whole.size)]


def test_a_plan_is_decided_with_any_store(any_store: Store, tmp_path: Path) -> None:
    plan = small_plan()
    for step in plan.steps[:-1]:
        put_output(any_store, step, "out", step.key.encode(), tmp_path)
    assert [one.state.value for one in decide(plan, any_store)] == ["in store"] * (len(plan.steps) - 1) + [
        "run"
    ]


def test_a_clean_up_takes_from_any_store_what_is_old_and_nobody_needs(
    any_store: Store, home: Home, tmp_path: Path
) -> None:
    [*_, kept, old] = small_plan().steps
    outputs = [put_output(any_store, step, "out", step.key.encode(), tmp_path) for step in (kept, old)]
    found = look(home, any_store, {kept.key}, 0, ("artifacts",)).rubbish
    assert (found.records, found.blobs) == ((old.key,), (outputs[1].sha256,))
    remove(any_store, found, remove_tree)
    assert [record.key for record in records(any_store)] == [kept.key]
    assert [file.name for file in any_store.local.files()] == [outputs[0].sha256]


# where a store is


@pytest.mark.parametrize("form", [str, Path, Path.as_uri], ids=["text", "path", "url"])
def test_a_folder_is_opened_by_its_path_and_by_its_url(
    tmp_path: Path, form: Callable[[Path], str | Path]
) -> None:
    folder = tmp_path / "a store, 100 %?#"
    store = open_store(form(folder))
    assert (store.url, str(store)) == (folder.as_uri(), str(folder))
    assert (folder / "format.json").exists()


@each("url", ["s3://[", "http://[1.2]/x", "gs://here:port/x", "az://here:70000/x", "file://["])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="is not an address"):
        open_store(url)


def test_a_scheme_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(InputError) as caught:
        open_store("ftp://host/store")
    assert caught.value.message == "unsupported store URL: ftp://"
    assert "file://" in caught.value.cause
    assert "file://" in caught.value.next_step


def test_another_scheme_is_one_more_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("rocwright.store.SCHEMES", {**SCHEMES, "memory": lambda url: BucketStore(tmp_path)})
    assert open_store("memory://bucket").url == "memory://bucket"
    with pytest.raises(InputError, match="ftp://") as caught:
        open_store("ftp://host/store")
    assert "memory://" in caught.value.next_step


def test_nobody_but_the_store_names_the_class_of_a_local_one() -> None:
    """That nobody imports it is held by `make lint`; this is for annotations and texts too."""
    named = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if not path.is_relative_to(SOURCE / "store") and re.search(r"\bLocalStore\b", path.read_text())
    ]
    assert not named
