"""The same tree, packed by machines with different versions of libzstd: here, with different levels."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.making import digest, record_of
from tests.store.sharers import Machine

from rocbase.errors import InputError
from rocwright.model.steps import FetchAction, Step
from rocwright.store import packed
from rocwright.store.blobs import blob_name
from rocwright.store.bucket import Bucket
from rocwright.store.local import LocalStore
from rocwright.store.model import Output, Record, chunks, verified
from rocwright.store.packed import content_of, packing
from rocwright.store.sharing import WorkingStore

TREE = b"a tree, as a tar " * 1000
EVIL = b"another tree, in its place " * 1000


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    return Bucket((tmp_path / "bucket").as_uri())


@pytest.fixture
def one(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "one", "one")


@pytest.fixture
def two(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "two", "two")


@pytest.fixture
def mine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "mine", "me")


def pack(
    machine: Machine, level: int, data: bytes = TREE, says: str | None = None, name: str = "tree/x"
) -> Record:
    """A tree step that ran on a machine whose libzstd is known by its level; `says` is the content that it
    says the tree has, where that is not the truth."""
    path = machine.path / "packed"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "LEVEL", level)
        with packing(path) as writing:
            writing.write(data)
    step = Step(name=name, component="x", action=FetchAction(pending=name))
    machine.store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    sha256, size = machine.store.put_file(path, move=True)
    content = writing.content if says is None else says
    output = Output(name="tree", filename="tree.tar.zst", sha256=sha256, size=size, content=content)
    machine.store.write_record(record_of(step, output))
    return record_of(step, output)


def truth(data: bytes = TREE) -> str:
    return digest(data.decode())


def bytes_of(*records: Record) -> set[str]:
    return {output.sha256 for record in records for output in record.outputs}


# who agrees


def test_two_owners_agree_on_a_tree_that_each_packed_otherwise(
    bucket: Bucket, one: Machine, two: Machine, mine: Machine
) -> None:
    first, second = pack(one, 1), pack(two, 19)
    assert len(bytes_of(first, second)) == 2
    one.push(bucket, first)
    two.push(bucket, second)
    store = mine.behind(bucket, one.key, two.key, agree=2)
    found = store.record(first.key)
    assert found is not None
    assert store.bring(first.key)
    assert verified(store, found.outputs[0].sha256).stat().st_size == found.outputs[0].size
    assert mine.said == []


def test_either_file_will_do(bucket: Bucket, one: Machine, two: Machine, mine: Machine) -> None:
    one.push(bucket, pack(one, 1))
    second = pack(two, 19)
    two.push(bucket, second)
    store = mine.behind(bucket, two.key, one.key, agree=2)
    assert store.record(second.key) is not None
    assert store.bring(second.key)
    assert {file.name for file in store.local.files()} < bytes_of(pack(one, 1), second)


def test_other_content_is_not_reproducible_and_not_agreed_on(
    bucket: Bucket, one: Machine, two: Machine, mine: Machine
) -> None:
    first = pack(one, 3)
    one.push(bucket, first)
    two.push(bucket, pack(two, 3, EVIL))
    assert mine.behind(bucket, one.key, two.key).record(first.key) is None
    assert "is not reproducible: 2 different outputs" in mine.said[0]


def test_who_says_no_content_is_compared_by_bytes(
    bucket: Bucket, one: Machine, two: Machine, mine: Machine, tmp_path: Path
) -> None:
    """A record without contents agrees with one of the same bytes, and brings others along."""
    bare, full = pack(one, 3, says=""), pack(two, 3)
    one.push(bucket, bare)
    two.push(bucket, full)
    assert mine.behind(bucket, one.key, two.key, agree=2).record(bare.key) is not None
    third = Machine(tmp_path / "third", "third")
    third.push(bucket, pack(third, 19))
    # the bare record and the third cannot be compared; the second is like both
    found = mine.behind(bucket, one.key, third.key, two.key, agree=3).record(bare.key)
    assert found is not None
    assert found.outputs == full.outputs
    assert mine.said == []
    assert mine.behind(bucket, one.key, third.key).record(bare.key) is None
    assert "not reproducible" in mine.said[0]


# who lies


def test_a_false_content_is_found_before_the_tree_is_used_and_its_signer_named(
    bucket: Bucket, one: Machine, two: Machine, mine: Machine
) -> None:
    """Two agree on a content; the bytes of one of them are something else."""
    honest = pack(one, 3)
    one.push(bucket, honest)
    two.push(bucket, pack(two, 3, EVIL, says=truth()))
    store = mine.behind(bucket, two.key, one.key, agree=2)
    assert store.record(honest.key) is not None
    assert not store.bring(honest.key)
    assert "two signed a false digest of the content of tree.tar.zst of tree/x" in mine.said[0]
    assert store.record(honest.key) is None
    assert LocalStore(mine.store.path).record(honest.key) is None


def test_a_false_content_is_found_where_the_file_is_read_without_being_brought(
    bucket: Bucket, two: Machine, mine: Machine
) -> None:
    forged = pack(two, 3, EVIL, says=truth())
    two.push(bucket, forged)
    store = mine.behind(bucket, two.key)
    assert store.record(forged.key) is not None
    [output] = forged.outputs
    for _ in range(2):  # the second time, the file is here
        with pytest.raises(InputError, match="two signed a false digest"):
            verified(store, output.sha256)
        with pytest.raises(InputError, match="two signed a false digest"):
            list(chunks(store, output.sha256))


def test_a_false_content_is_found_where_the_file_was_here_before(
    bucket: Bucket, two: Machine, mine: Machine
) -> None:
    known = pack(mine, 3, EVIL, name="tree/mine")
    forged = pack(two, 3, EVIL, says=truth())
    two.push(bucket, forged)
    assert bytes_of(known) == bytes_of(forged)
    store = mine.behind(bucket, two.key)
    assert store.record(forged.key) is not None
    assert not store.bring(forged.key)
    assert "two signed a false digest" in mine.said[0]
    assert mine.store.record(known.key) is not None
    assert verified(store, known.outputs[0].sha256).is_file()


def test_a_content_of_what_is_no_tar_is_refused(bucket: Bucket, two: Machine, mine: Machine) -> None:
    made = two.make(b"a wheel")
    [output] = made.outputs
    two.store.write_record(
        made.model_copy(update={"outputs": (output.model_copy(update={"content": truth()}),)})
    )
    two.push(bucket, made)
    store = mine.behind(bucket, two.key)
    assert store.record(made.key) is not None
    assert not store.bring(made.key)
    assert "no tar that can be unpacked" in mine.said[0]


def test_two_contents_of_one_file_are_not_both_believed(
    bucket: Bucket, one: Machine, two: Machine, mine: Machine
) -> None:
    """Else the check of the first would stand for the second."""
    honest = pack(one, 3, EVIL, name="tree/evil")
    forged = pack(two, 3, EVIL, says=truth())
    one.push(bucket, honest)
    two.push(bucket, forged)
    store = mine.behind(bucket, one.key, two.key)
    assert store.record(honest.key) is not None
    assert store.record(forged.key) is None
    assert "was refused: two signed that its content is" in mine.said[0]
    assert store.bring(honest.key)


def test_a_content_counts_where_another_record_names_the_file_without_one(
    bucket: Bucket, one: Machine, two: Machine, mine: Machine
) -> None:
    old = pack(one, 3, EVIL, says="", name="tree/evil")
    forged = pack(two, 3, EVIL, says=truth())
    one.push(bucket, old)
    two.push(bucket, forged)
    store = mine.behind(bucket, one.key, two.key)
    assert store.record(old.key) is not None
    assert store.record(forged.key) is not None
    with pytest.raises(InputError, match="two signed a false digest"):
        verified(store, forged.outputs[0].sha256)


def test_who_builds_in_a_bucket_signs_no_false_content_of_another(
    bucket: Bucket, two: Machine, mine: Machine
) -> None:
    """A step whose inputs are those of an earlier run takes its outputs, and its record is signed anew."""
    forged = pack(two, 3, EVIL, says=truth())
    two.push(bucket, forged)
    working = WorkingStore(mine.store, mine.behind(bucket, mine.key, two.key).shared, mine.signer, "lab")
    taken = working.record(forged.key)
    assert taken is not None
    with pytest.raises(InputError, match="two signed a false digest"):
        working.put_record(taken.model_copy(update={"key": digest("a later step"), "reused": forged.key}))
    assert mine.store.record(digest("a later step")) is None


# what is pushed


def test_a_tree_that_was_packed_otherwise_since_is_there_already(bucket: Bucket, one: Machine) -> None:
    first = pack(one, 1)
    one.push(bucket, first)
    again = pack(one, 19)
    assert bytes_of(first).isdisjoint(bytes_of(again))
    one.store.local.remove("file", first.outputs[0].sha256)
    done = one.pusher(bucket).records([first.key])
    assert (done.left_out, done.there, done.records, done.files) == ([], 1, 0, 0)
    assert bucket.size(blob_name(again.outputs[0].sha256)) is None


def test_another_tree_since_is_told(bucket: Bucket, one: Machine) -> None:
    one.push(bucket, pack(one, 3))
    again = pack(one, 3, EVIL)
    assert "other bytes were pushed before" in one.pusher(bucket).records([again.key]).left_out[0]


def test_what_was_pushed_without_a_content_is_compared_by_bytes(bucket: Bucket, one: Machine) -> None:
    one.push(bucket, pack(one, 3, says=""))
    assert one.pusher(bucket).records([pack(one, 3).key]).left_out == []
    assert "other bytes" in one.pusher(bucket).records([pack(one, 19).key]).left_out[0]


def test_what_is_brought_keeps_its_content(bucket: Bucket, one: Machine, mine: Machine) -> None:
    made = pack(one, 3)
    one.push(bucket, made)
    store = mine.behind(bucket, one.key)
    assert store.record(made.key) is not None
    assert store.bring(made.key)
    kept = LocalStore(mine.store.path).record(made.key)
    assert kept is not None
    assert kept.outputs == made.outputs
    assert content_of(verified(store, made.outputs[0].sha256)) == truth()
