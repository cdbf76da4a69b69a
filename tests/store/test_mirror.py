"""A copy of a shared store has what trusted keys signed there, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.store.sharers import Machine

from rocbase.errors import InputError
from rocwright.store.blobs import blob_name
from rocwright.store.bucket import Bucket
from rocwright.store.leases import turn
from rocwright.store.model import verified
from rocwright.store.push import Mirror, Sent, listed_keys, read_mark
from rocwright.store.shared import SharedStore, word_name
from rocwright.store.shared_check import check
from rocwright.store.signed import envelope_of


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    return Bucket((tmp_path / "bucket").as_uri())


@pytest.fixture
def target(tmp_path: Path) -> Bucket:
    return Bucket((tmp_path / "mirror").as_uri())


@pytest.fixture
def lab(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "lab", "lab")


@pytest.fixture
def friend(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "friend", "friend")


def copy(bucket: Bucket, target: Bucket, scratch: Path, *trusted: Machine) -> Sent:
    source = SharedStore(name="lab", bucket=bucket, keys=[one.key for one in trusted], note=lambda text: None)
    return Mirror(source=source, target=target, scratch=scratch).copy("mirror")


def names(bucket: Bucket, folder: str) -> set[str]:
    return {one.name for one in bucket.list(folder)}


def test_a_copy_gives_who_trusts_the_signer_the_same_files(
    bucket: Bucket, target: Bucket, lab: Machine, friend: Machine, tmp_path: Path
) -> None:
    made = lab.make(b"x" * 100_000)
    lab.push(bucket, made)
    lab.pusher(bucket).lock("d" * 64, "a lock")
    done = copy(bucket, target, tmp_path, lab)
    assert (done.records, done.locks, done.there, done.files, done.size) == (1, 1, 0, 1, 100_000)
    assert read_mark(target) == "mirror"
    assert [key.keyid for _, key in listed_keys(target)] == [lab.key.keyid]
    assert check(target).wrong == ()
    store = friend.behind(target, lab.key)
    assert store.record(made.key) is not None
    assert store.bring(made.key)
    assert verified(store, made.outputs[0].sha256).read_bytes() == b"x" * 100_000
    assert store.step(made.key) == lab.store.step(made.key)
    again = copy(bucket, target, tmp_path, lab)
    assert (again.records, again.locks, again.there, again.files) == (0, 0, 1, 0)
    assert not [path for path in tmp_path.iterdir() if path.is_file()], "nothing stays in the scratch folder"


def test_what_nobody_trusted_signed_is_not_copied(
    bucket: Bucket, target: Bucket, lab: Machine, friend: Machine, tmp_path: Path
) -> None:
    lab.push(bucket, lab.make())
    theirs = friend.make(b"another thing", "other")
    friend.push(bucket, theirs)
    done = copy(bucket, target, tmp_path, lab)
    assert done.records == 1
    assert target.size(blob_name(theirs.outputs[0].sha256)) is None
    assert target.size(word_name("record", theirs.key, friend.key.keyid)) is None


def test_other_bytes_than_the_record_says_are_left_out_and_named(
    bucket: Bucket, target: Bucket, lab: Machine, tmp_path: Path
) -> None:
    replaced, longer, gone, good = (
        lab.make(name.encode() * 9, name) for name in ("one", "two", "three", "four")
    )
    lab.push(bucket, replaced, longer, gone, good)
    bucket.replace(blob_name(replaced.outputs[0].sha256), b"evil" * 6 + b"bad")
    bucket.replace(blob_name(longer.outputs[0].sha256), b"evil" * 100)
    bucket.remove(blob_name(gone.outputs[0].sha256))
    done = copy(bucket, target, tmp_path, lab)
    assert done.records == 1
    told = " ".join(done.left_out)
    for key, why in ((replaced, "other bytes"), (longer, "more bytes"), (gone, "is not there")):
        assert f"{key.key[:12]} by lab: made.tar" in told
        assert why in told
        assert target.size(word_name("record", key.key, lab.key.keyid)) is None
    assert names(target, "blobs") == {blob_name(good.outputs[0].sha256)}
    assert check(target).wrong == ()


def test_a_definition_of_another_step_is_not_copied(
    bucket: Bucket, target: Bucket, lab: Machine, tmp_path: Path
) -> None:
    made, other = lab.make(), lab.make(b"else", "other")
    lab.push(bucket, made)
    name = word_name("step", made.key, lab.key.keyid)
    bucket.replace(
        name, envelope_of("step", made.key, (lab.store.step(other.key) or b"").decode(), lab.signer)
    )
    assert copy(bucket, target, tmp_path, lab).records == 1
    assert target.size(name) is None


def test_a_newer_lock_takes_the_place_of_an_older_one_and_never_the_other_way(
    bucket: Bucket, target: Bucket, lab: Machine, tmp_path: Path
) -> None:
    lab.push(bucket, lab.make())
    name = word_name("lock", "d" * 64, lab.key.keyid)

    def lock(text: str, signed: str) -> bytes:
        return envelope_of("lock", "d" * 64, text, lab.signer, signed)

    old, new = lock("old", "2026-11-01T00:00:00Z"), lock("new", "2026-11-02T00:00:00Z")
    bucket.replace(name, old)
    assert copy(bucket, target, tmp_path, lab).locks == 1
    bucket.replace(name, new)
    assert copy(bucket, target, tmp_path, lab).locks == 1
    assert target.get(name, 9999) == new
    bucket.replace(name, old)
    assert copy(bucket, target, tmp_path, lab).locks == 0
    assert target.get(name, 9999) == new
    target.replace(name, b"what somebody put there")
    assert copy(bucket, target, tmp_path, lab).locks == 1
    assert target.get(name, 9999) == old


def test_a_record_that_lies_there_under_the_same_name_is_not_written_over(
    bucket: Bucket, target: Bucket, lab: Machine, tmp_path: Path
) -> None:
    made = lab.make()
    lab.push(bucket, made)
    lab.pusher(target).open("mirror")
    name = word_name("record", made.key, lab.key.keyid)
    target.replace(name, b"another")
    done = copy(bucket, target, tmp_path, lab)
    assert "lies there already" in done.left_out[0]
    assert target.get(name, 99) == b"another"


def test_nothing_is_copied_while_somebody_cleans_up(
    bucket: Bucket, target: Bucket, lab: Machine, tmp_path: Path
) -> None:
    lab.push(bucket, lab.make())
    lab.pusher(target).open("mirror")
    with turn(target, "clean"), pytest.raises(InputError, match="somebody cleans it up"):
        copy(bucket, target, tmp_path, lab)
