"""A look at a whole shared store finds what was forged, replaced, lost or put under another name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.store.sharers import Machine

from rocbase.errors import InputError
from rocbase.model import sealed
from rocwright.store.blobs import blob_name
from rocwright.store.bucket import Bucket
from rocwright.store.contents import by_signer, by_step, read_contents
from rocwright.store.model import Record
from rocwright.store.seal import seal
from rocwright.store.shared import word_name
from rocwright.store.shared_check import check, check_lines
from rocwright.store.signed import envelope_of


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    return Bucket((tmp_path / "bucket").as_uri())


@pytest.fixture
def lab(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "lab", "lab")


@pytest.fixture
def made(lab: Machine, bucket: Bucket) -> Record:
    record = lab.make()
    lab.push(bucket, record)
    return record


def name_of(record: Record, machine: Machine) -> str:
    return word_name("record", record.key, machine.key.keyid)


def test_what_was_pushed_is_whole(bucket: Bucket, lab: Machine, made: Record) -> None:
    seen: list[int] = []
    lab.pusher(bucket).lock("d" * 64, "a lock")
    found = check(bucket, on_bytes=seen.append)
    assert (found.words, found.files, found.size, found.wrong) == (3, 1, made.outputs[0].size, ())
    assert found.signers == (lab.key.keyid,)
    assert sum(seen) == made.outputs[0].size
    assert check_lines(found)[0].startswith("3 signed objects by 1 key, 1 file")


def test_a_place_without_a_store_is_told(bucket: Bucket) -> None:
    with pytest.raises(InputError, match="there is no store"):
        check(bucket)
    with pytest.raises(InputError, match="there is no store"):
        read_contents(bucket)


def test_a_replaced_file_is_found_by_its_bytes_and_a_lost_one_at_a_quick_look(
    bucket: Bucket, lab: Machine, made: Record
) -> None:
    blob = blob_name(made.outputs[0].sha256)
    bucket.replace(blob, b"X" * made.outputs[0].size)
    assert check(bucket, read=False).wrong == ()
    assert check(bucket).wrong == ((blob, "other bytes than its name says"),)
    bucket.replace(blob, b"short")
    assert "another size" in dict(check(bucket, read=False).wrong)[name_of(made, lab)]
    bucket.remove(blob)
    assert "is not there" in dict(check(bucket, read=False).wrong)[name_of(made, lab)]


def test_a_forged_a_moved_and_a_damaged_record_are_found(
    bucket: Bucket, lab: Machine, made: Record, tmp_path: Path
) -> None:
    stranger = Machine(tmp_path / "stranger", "stranger")
    name = name_of(made, lab)
    good = bucket.get(name, 99999) or b""
    bucket.replace(name, envelope_of("record", made.key, seal(made).decode(), stranger.signer))
    assert "not by that key" in dict(check(bucket).wrong)[name]
    other = word_name("record", "e" * 64, lab.key.keyid)
    bucket.replace(name, good)
    bucket.replace(other, good)
    assert "in the place of another" in dict(check(bucket).wrong)[other]
    bucket.replace(other, b"\0damaged")
    assert "it is damaged" in dict(check(bucket).wrong)[other]
    bucket.remove(other)
    unknown = word_name("record", made.key, "f" * 64)
    bucket.replace(unknown, good)
    assert "nobody can check it" in dict(check(bucket).wrong)[unknown]
    bucket.remove(unknown)
    bucket.replace("records/of/no/such/name", b"")
    assert "no such" in check(bucket).wrong[0][1] or "nothing of a store" in check(bucket).wrong[0][1]


def test_a_key_under_another_id_and_a_definition_under_another_key_are_found(
    bucket: Bucket, lab: Machine, made: Record, tmp_path: Path
) -> None:
    stranger = Machine(tmp_path / "stranger", "stranger")
    bucket.replace(f"keys/{'a' * 64}", stranger.key.pem.encode())
    bucket.replace(f"keys/{'b' * 64}", b"no key")
    definition = (lab.store.step(made.key) or b"").decode()
    names = [word_name("step", name * 64, lab.key.keyid) for name in "cd"]
    bucket.replace(names[0], envelope_of("step", "c" * 64, definition, lab.signer))
    bucket.replace(names[1], definition.encode())
    wrong = dict(check(bucket).wrong)
    assert wrong[f"keys/{'a' * 64}"] == "it is the key of another id"
    assert "not a public key" in wrong[f"keys/{'b' * 64}"]
    assert "not the definition of that step" in wrong[names[0]]
    assert "damaged" in wrong[names[1]]


def test_a_record_of_a_newer_rocwright_is_left_alone_and_not_called_wrong(
    bucket: Bucket, lab: Machine, made: Record
) -> None:
    newer = json.dumps(sealed(made.model_dump(mode="json") | {"schema_version": 99, "more": 1}))
    name = word_name("record", "e" * 64, lab.key.keyid)
    bucket.replace(name, envelope_of("record", "e" * 64, newer, lab.signer))
    found = check(bucket)
    assert found.newer == (name,)
    assert found.wrong == ()
    assert "left alone" in check_lines(found)[-1]


def test_usage_counts_each_file_once_and_what_nobody_names(
    bucket: Bucket, lab: Machine, made: Record, tmp_path: Path
) -> None:
    friend = Machine(tmp_path / "friend", "friend")
    same = friend.make()
    friend.push(bucket, same, friend.make(b"more than the other", "other"))
    bucket.add("blobs/aa/" + "a" * 64, b"nobody's")
    found = read_contents(bucket)
    assert [(one.name, one.records, one.files, one.size) for one in by_step(found)] == [
        ("other", 1, 1, 19),
        ("engine", 2, 1, 14),
    ]
    assert {one.name: one.records for one in by_signer(found)} == {lab.key.keyid: 1, friend.key.keyid: 2}
    assert sum(one.size for one in by_signer(found)) == 33
    assert [one.size for one in found.nobodys] == [8]
