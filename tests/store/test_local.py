"""The store: written whole or not at all, verified when read, never edited."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.making import digest, record_of, small_plan

from rocbase.errors import DiskError, InputError, InternalError, OutOfDiskError
from rocwheel_samples.durable import watch
from rocwright.store import open_store
from rocwright.store.local import LocalStore
from rocwright.store.model import DamagedBlobError, Output, chunks, records, verified

PUT = """
import sys
from pathlib import Path
from rocwright.store.local import LocalStore
store = LocalStore(Path(sys.argv[1]))
print("begun", flush=True)
print(store.put_file(Path(sys.argv[2]))[0], flush=True)
"""


def a_file(folder: Path, data: bytes = b"some bytes", name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def blob(store: LocalStore, digest: str) -> Path:
    return store.path / "blobs" / digest[:2] / digest


def damage(store: LocalStore, digest: str, data: bytes) -> None:
    path = blob(store, digest)
    path.chmod(0o644)
    path.write_bytes(data)


def test_a_file_put_is_found_under_its_sha256_with_its_size(store: LocalStore, tmp_path: Path) -> None:
    found = store.put_file(a_file(tmp_path))
    assert found == (sha256(b"some bytes").hexdigest(), 10)
    assert store.has(*found)
    assert verified(store, found[0]).read_bytes() == b"some bytes"


def test_a_file_put_by_copy_stays_and_one_put_by_move_is_taken(store: LocalStore, tmp_path: Path) -> None:
    copied, moved = a_file(tmp_path, b"1", "copied"), a_file(tmp_path, b"2", "moved")
    store.put_file(copied)
    store.put_file(moved, move=True)
    assert copied.exists()
    assert not moved.exists()


@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize("move", [False, True], ids=["copied", "moved"])
def test_a_file_is_safe_on_the_disk_before_it_has_its_name_in_the_store(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, move: bool, size: int
) -> None:
    order = watch(monkeypatch)
    sha256, _ = store.put_file(a_file(tmp_path, os.urandom(size)), move=move)
    order.check(blob(store, sha256), folder=True)


def test_a_record_and_a_definition_are_safe_on_the_disk_before_they_have_their_names(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = watch(monkeypatch)
    key = store.put_record(record_of(small_plan().steps[-1])).key
    store.put_step(key, b"definition")
    for kind in ("records", "steps"):
        order.check(store.path / kind / key[:2] / f"{key}.json", folder=False)


def test_what_is_stored_may_not_be_written_to(store: LocalStore, tmp_path: Path) -> None:
    digest, _ = store.put_file(a_file(tmp_path))
    assert blob(store, digest).stat().st_mode & 0o777 == 0o444


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=5000), move=st.booleans())
def test_whatever_is_put_comes_back_bit_for_bit(
    store: LocalStore, tmp_path: Path, data: bytes, move: bool
) -> None:
    digest, size = store.put_file(a_file(tmp_path, data), move=move)
    assert size == len(data)
    assert b"".join(chunks(store, digest)) == data == verified(store, digest).read_bytes()


def test_a_file_of_another_size_than_asked_for_is_not_had(store: LocalStore, tmp_path: Path) -> None:
    digest, size = store.put_file(a_file(tmp_path))
    assert not store.has(digest, size + 1)


def test_a_file_that_was_never_put_is_not_there(store: LocalStore) -> None:
    absent = digest("absent")
    assert not store.has(absent)
    with pytest.raises(KeyError):
        verified(store, absent)
    with pytest.raises(KeyError):
        list(chunks(store, absent))


def test_a_name_that_is_no_sha256_is_refused(store: LocalStore) -> None:
    for name in ("", "../../etc/passwd", "A" * 64, "0" * 63):
        with pytest.raises(InternalError):
            store.has(name)


def test_putting_the_same_bytes_again_changes_nothing(store: LocalStore, tmp_path: Path) -> None:
    digest, _ = store.put_file(a_file(tmp_path))
    inode = blob(store, digest).stat().st_ino
    for move in (False, True):
        assert store.put_file(a_file(tmp_path), move=move)[0] == digest
    assert blob(store, digest).stat().st_ino == inode
    assert len(list(store.local.files())) == 1


@pytest.mark.parametrize("bad", [b"sOme bytes", b"some byt", b"", b"some bytes and more"])
def test_a_damaged_file_is_never_given_out_and_is_moved_aside(
    store: LocalStore, tmp_path: Path, bad: bytes
) -> None:
    digest, _ = store.put_file(a_file(tmp_path))
    damage(store, digest, bad)
    with pytest.raises(DamagedBlobError) as caught:
        verified(store, digest)
    assert caught.value.subject == digest
    assert not store.has(digest)
    assert [path.read_bytes() for path in (store.path / "damaged").iterdir()] == [bad]


def test_a_file_read_in_pieces_tells_of_damage_at_the_end(store: LocalStore, tmp_path: Path) -> None:
    digest, _ = store.put_file(a_file(tmp_path))
    damage(store, digest, b"some bytez")
    with pytest.raises(DamagedBlobError):
        list(chunks(store, digest))
    assert not store.has(digest)


def test_a_damaged_file_that_went_meanwhile_is_told_as_damaged(store: LocalStore, tmp_path: Path) -> None:
    sha256, _ = store.put_file(a_file(tmp_path, b"x" * 3_000_000))
    path = verified(store, sha256)
    path.chmod(0o644)
    path.write_bytes(b"y" * 3_000_000)
    pieces = chunks(store, sha256)
    next(pieces)
    path.unlink()
    with pytest.raises(DamagedBlobError):
        list(pieces)


def test_a_truncated_file_is_replaced_when_the_whole_one_is_put_again(
    store: LocalStore, tmp_path: Path
) -> None:
    digest, _ = store.put_file(a_file(tmp_path))
    damage(store, digest, b"some")
    store.put_file(a_file(tmp_path))
    assert verified(store, digest).read_bytes() == b"some bytes"


def test_after_damage_was_found_the_same_file_can_be_put_again(store: LocalStore, tmp_path: Path) -> None:
    digest, _ = store.put_file(a_file(tmp_path))
    damage(store, digest, b"some bytez")
    with pytest.raises(DamagedBlobError):
        verified(store, digest)
    store.put_file(a_file(tmp_path))
    assert verified(store, digest).read_bytes() == b"some bytes"


# records and steps


def test_a_record_comes_back_as_it_was_put(store: LocalStore) -> None:
    record = record_of(small_plan().steps[-1], notes=("a note",), compiler_cache={"hit": 3})
    assert store.put_record(record) == record
    assert store.record(record.key) == record
    assert list(records(store)) == [record]


def test_the_first_record_of_a_key_is_kept(store: LocalStore) -> None:
    step = small_plan().steps[-1]
    first = store.put_record(record_of(step, seconds=1.0))
    assert store.put_record(record_of(step, seconds=2.0)) == first
    assert store.record(step.key) == first


def test_a_record_whose_output_is_gone_is_replaced(store: LocalStore, tmp_path: Path) -> None:
    step = small_plan().steps[-1]
    gone = Output(name="program", filename="hello", sha256=digest("gone"), size=4)
    store.put_record(record_of(step, gone))
    sha, size = store.put_file(a_file(tmp_path))
    again = record_of(step, Output(name="program", filename="hello", sha256=sha, size=size))
    assert store.put_record(again) == again
    assert store.record(step.key) == again


def test_a_record_whose_output_was_cut_off_is_replaced(store: LocalStore, tmp_path: Path) -> None:
    step = small_plan().steps[-1]
    sha, size = store.put_file(a_file(tmp_path))
    output = Output(name="program", filename="hello", sha256=sha, size=size)
    store.put_record(record_of(step, output, seconds=1.0))
    kept = verified(store, sha)
    kept.chmod(0o644)
    kept.write_bytes(b"some")
    again = record_of(step, output, seconds=2.0)
    assert store.put_record(again) == again == store.record(step.key)


def test_a_record_that_cannot_be_read_is_as_good_as_none(store: LocalStore) -> None:
    record = store.put_record(record_of(small_plan().steps[-1]))
    path = store.path / "records" / record.key[:2] / f"{record.key}.json"
    path.write_text(path.read_text()[:50])
    assert store.record(record.key) is None
    assert store.put_record(record) == record
    assert store.record(record.key) == record


def test_a_record_that_another_moved_aside_first_is_no_trouble(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = small_plan().steps[-1].key
    path = store.layout.record(key)
    path.parent.mkdir()
    path.write_text("{")
    told: list[str] = []
    with monkeypatch.context() as patched:
        # between its read and its move, another moves it
        patched.setattr(Path, "read_bytes", lambda read: read.rename(store.path / "damaged/x").name.encode())
        assert store.record(key, told.append) is None
    assert told == [key]


def test_a_forgotten_record_is_gone(store: LocalStore) -> None:
    record = store.put_record(record_of(small_plan().steps[-1]))
    store.local.remove("record", record.key)
    store.local.remove("record", record.key)
    assert store.record(record.key) is None


def test_a_steps_definition_comes_back_as_put(store: LocalStore) -> None:
    key = digest("key")
    assert store.step(key) is None
    store.put_step(key, b"definition")
    assert store.step(key) == b"definition"


def test_a_definition_damaged_on_disk_is_written_again(store: LocalStore) -> None:
    key = digest("key")
    store.put_step(key, b"definition")
    (store.path / "steps" / key[:2] / f"{key}.json").write_bytes(b"defin")  # codespell:ignore defin
    store.put_step(key, b"definition")
    assert store.step(key) == b"definition"


# who else is there


def test_two_processes_put_the_same_bytes_at_the_same_time(store: LocalStore, tmp_path: Path) -> None:
    path = a_file(tmp_path, os.urandom(4 * 1024 * 1024))
    argv = [sys.executable, "-c", PUT, str(store.path), str(path)]
    running = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    told = {one.communicate()[0] for one in running}
    assert [one.returncode for one in running] == [0, 0, 0]
    expected = sha256(path.read_bytes()).hexdigest()
    assert told == {f"begun\n{expected}\n"}
    assert [file[:2] for file in store.local.files()] == [(expected, path.stat().st_size)]


def test_a_kill_in_the_middle_of_a_put_leaves_the_file_whole_or_absent(
    store: LocalStore, tmp_path: Path
) -> None:
    path = a_file(tmp_path, os.urandom(24 * 1024 * 1024))
    expected = sha256(path.read_bytes()).hexdigest()
    moments = random.Random(2)
    absent = 0
    for _ in range(40):
        child = os.fork()
        if child == 0:
            store.put_file(path)
            os._exit(0)
        time.sleep(moments.uniform(0, 0.06))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if store.has(expected):
            assert verified(store, expected).stat().st_size == path.stat().st_size
            store.local.remove("file", expected)
        else:
            absent += 1
        assert list(store.local.files()) == []
    assert absent, "no kill came in the middle of a put"
    assert store.put_file(path)[0] == expected
    assert verified(store, expected).read_bytes() == path.read_bytes()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], check=False)
    if done.returncode != 0:
        pytest.skip("this machine does not let root mount")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_is_told_as_one_and_leaves_the_store_as_it_was(small_disk: Path, tmp_path: Path) -> None:
    store = LocalStore(small_disk / "store")
    kept, _ = store.put_file(a_file(tmp_path))
    before = sorted(path for path in store.path.rglob("*") if path.is_file())
    with pytest.raises(OutOfDiskError) as caught:
        store.put_file(a_file(tmp_path, os.urandom(3 * 1024 * 1024)))
    assert "rocwright clean" in caught.value.next_step
    assert sorted(path for path in store.path.rglob("*") if path.is_file()) == before
    assert verified(store, kept)
    store.put_file(a_file(tmp_path, b"a small one fits"))


def test_a_record_that_finds_no_room_is_told_as_a_full_disk(small_disk: Path) -> None:
    store = LocalStore(small_disk / "store")
    record = record_of(small_plan().steps[-1], notes=("x" * 3 * 1024 * 1024,))
    with pytest.raises(OutOfDiskError):
        store.put_record(record)
    assert store.record(record.key) is None


# opening


def test_a_new_store_has_a_place_for_all_that_it_keeps(store: LocalStore) -> None:
    folders = {path.name for path in store.path.iterdir() if path.is_dir()}
    assert folders == {"blobs", "records", "steps", "tmp", "damaged", "locks"}


def test_a_store_whose_making_was_killed_is_made_whole(tmp_path: Path) -> None:
    (tmp_path / "store/blobs").mkdir(parents=True)
    sha256, _ = LocalStore(tmp_path / "store").put_file(a_file(tmp_path))
    assert verified(LocalStore(tmp_path / "store"), sha256)


@pytest.mark.parametrize("schema", [1, 99])
def test_a_store_of_another_schema_is_refused_and_left_alone(store: LocalStore, schema: int) -> None:
    marker = store.path / "format.json"
    marker.write_text(json.dumps({"schema": schema}))
    with pytest.raises(InputError, match=f"schema {schema}") as caught:
        LocalStore(store.path)
    assert caught.value.next_step.endswith(f"mv {store.path} {store.path}.{schema}")
    assert json.loads(marker.read_text()) == {"schema": schema}


@pytest.mark.parametrize("text", ["", "not json", "[]", '{"schema": "x"}', "null"])
def test_a_folder_whose_mark_cannot_be_read_is_not_taken_for_a_store(store: LocalStore, text: str) -> None:
    (store.path / "format.json").write_text(text)
    with pytest.raises(InternalError, match=r"format\.json"):
        LocalStore(store.path)


def test_a_store_is_opened_by_path_and_by_url(store: LocalStore, tmp_path: Path) -> None:
    digest, _ = store.put_file(a_file(tmp_path))
    assert open_store(store.url).has(digest)
    assert open_store(str(store.path)).has(digest)


def test_a_store_whose_path_has_spaces_is_opened_by_its_url(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "a store % with é")
    assert str(open_store(store.url)) == str(store.path)


def test_a_store_somewhere_unknown_is_refused_with_what_is_known() -> None:
    with pytest.raises(InputError, match="ftp://") as caught:
        open_store("ftp://host/store")
    assert "file:// and s3://" in caught.value.next_step


def test_a_store_that_may_not_be_written_says_so(small_disk: Path, tmp_path: Path) -> None:
    store = LocalStore(small_disk / "store")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(DiskError, match=f"^{store.path} cannot be read or written") as caught:
        store.put_file(a_file(tmp_path))
    assert caught.value.cause.endswith(f" at {small_disk}")
    assert "ROCWRIGHT_HOME" in caught.value.next_step


@pytest.mark.parametrize("what", ["blobs", "records", "steps"])
def test_what_cannot_be_written_names_the_store(store: LocalStore, tmp_path: Path, what: str) -> None:
    (store.path / what).rmdir()
    (store.path / what).touch()
    step = small_plan().steps[-1]
    put: dict[str, Callable[[], object]] = {
        "blobs": lambda: store.put_file(a_file(tmp_path)),
        "records": lambda: store.write_record(record_of(step)),
        "steps": lambda: store.put_step(step.key, b"{}"),
    }
    with pytest.raises(InputError, match=f"^{store.path} cannot be written"):
        put[what]()


def test_a_full_disk_names_the_store(small_disk: Path, tmp_path: Path) -> None:
    store = LocalStore(small_disk / "store")
    big = a_file(tmp_path, os.urandom(3 * 1024 * 1024))
    notes = ("x" * 3 * 1024 * 1024,)
    step = small_plan().steps[-1]
    puts: list[Callable[[], object]] = [
        lambda: store.put_file(big),
        lambda: store.write_record(record_of(step, notes=notes)),
        lambda: store.put_step(step.key, big.read_bytes()),
    ]
    for put in puts:
        with pytest.raises(OutOfDiskError, match=f"the disk that holds {store.path} is full"):
            put()


def test_a_lock_is_where_every_version_looks_for_it(store: LocalStore) -> None:
    with store.layout.lock("one-name"):
        assert (store.path / "locks" / "one-name.lock").exists()


def test_a_file_is_dropped_once_and_for_all(store: LocalStore, tmp_path: Path) -> None:
    sha256, _ = store.put_file(a_file(tmp_path))
    store.local.remove("file", sha256)
    store.local.remove("file", sha256)
    assert not store.has(sha256)
    assert [*store.local.files()] == []
