"""What others built is taken only as trusted keys signed it, and nothing of it harms a build."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.sharers import Machine, other

from rocbase.errors import NetworkError, OutOfDiskError
from rocwright.store.blobs import blob_name
from rocwright.store.bucket import Bucket
from rocwright.store.local import LocalStore
from rocwright.store.model import Record, Shard, chunks, records_of, verified
from rocwright.store.push import read_mark
from rocwright.store.seal import seal
from rocwright.store.shared import published_lock, word_name
from rocwright.store.signed import Said, envelope_of
from rocwright.store.trust import Trust, untrusted


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    return Bucket((tmp_path / "bucket").as_uri())


@pytest.fixture
def lab(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "lab", "lab")


@pytest.fixture
def mine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "mine", "me")


@pytest.fixture
def made(lab: Machine, bucket: Bucket) -> Record:
    record = lab.make()
    lab.push(bucket, record)
    return record


def overwrite(bucket: Bucket, name: str, data: bytes) -> None:
    """What somebody with the bucket's credentials can do."""
    bucket.replace(name, data)


def record_name(record: Record, machine: Machine) -> str:
    return word_name("record", record.key, machine.key.keyid)


def test_what_a_trusted_machine_built_is_offered_fetched_and_kept(
    bucket: Bucket, lab: Machine, mine: Machine, made: Record
) -> None:
    store = mine.behind(bucket, lab.key)
    offered = store.record(made.key)
    assert offered is not None
    assert str(offered.origin).startswith("from lab, built by lab, 20")
    [output] = offered.outputs
    assert store.has(output.sha256, output.size)
    assert not mine.store.has(output.sha256), "nothing is fetched before it is needed"
    assert store.bring(made.key)
    # without the bucket it is here now, with where it came from
    kept = LocalStore(mine.store.path).record(made.key)
    assert kept == offered
    assert verified(mine.store, output.sha256).read_bytes() == b"what was built"
    assert mine.store.step(made.key) == lab.store.step(made.key)
    assert mine.said == []


def test_a_file_is_fetched_when_it_is_first_read(
    bucket: Bucket, lab: Machine, mine: Machine, made: Record
) -> None:
    store = mine.behind(bucket, lab.key)
    assert store.record(made.key)
    [output] = made.outputs
    assert b"".join(chunks(store, output.sha256)) == b"what was built"


def test_what_was_built_here_is_asked_of_nobody(bucket: Bucket, lab: Machine, mine: Machine) -> None:
    own = mine.make(b"mine")
    lab.push(bucket, lab.make(b"the lab's"))
    store = mine.behind(bucket, lab.key)
    found = store.record(own.key)
    assert found is not None
    assert found.origin is None
    assert found.outputs == own.outputs


def test_a_machine_that_is_not_trusted_offers_nothing(bucket: Bucket, mine: Machine, made: Record) -> None:
    assert mine.behind(bucket, mine.key).record(made.key) is None
    assert mine.said == []


def test_a_forged_record_is_refused_and_named(
    bucket: Bucket, lab: Machine, mine: Machine, made: Record
) -> None:
    """Somebody with the bucket's credentials signs with a key of their own, under the lab's name."""
    text = seal(made.model_copy(update={"engine": "evil"})).decode()
    overwrite(bucket, record_name(made, lab), envelope_of("record", made.key, text, mine.signer))
    assert mine.behind(bucket, lab.key).record(made.key) is None
    assert mine.said == [
        f"lab: the record {made.key[:12]} by lab was refused: the signature is not by that key: "
        "it was forged, or damaged"
    ]


def test_a_record_in_the_place_of_another_is_refused(
    bucket: Bucket, lab: Machine, mine: Machine, made: Record
) -> None:
    old = lab.make(b"a version with a hole", "old")
    lab.push(bucket, old)
    signed = bucket.get(record_name(old, lab), 10**6)
    assert signed is not None
    overwrite(bucket, record_name(made, lab), signed)
    assert mine.behind(bucket, lab.key).record(made.key) is None
    assert "in the place of another" in mine.said[0]


def test_a_lock_is_no_record(bucket: Bucket, lab: Machine, mine: Machine, made: Record) -> None:
    envelope = envelope_of("lock", made.key, seal(made).decode(), lab.signer)
    overwrite(bucket, record_name(made, lab), envelope)
    assert mine.behind(bucket, lab.key).record(made.key) is None
    assert "it is the lock" in mine.said[0]


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff\x00", b"[" * 100_000])
def test_a_damaged_record_is_refused_and_named(
    bucket: Bucket, lab: Machine, mine: Machine, made: Record, data: bytes
) -> None:
    overwrite(bucket, record_name(made, lab), data)
    assert mine.behind(bucket, lab.key).record(made.key) is None
    assert [one.split(" was ")[1].split(":")[0] for one in mine.said] == ["refused"]


def test_what_a_newer_rocwright_signed_is_passed_over_and_left(
    bucket: Bucket, lab: Machine, mine: Machine, made: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Said.model_fields["schema_version"], "default", 2)
    Said.model_rebuild(force=True)
    envelope = envelope_of("record", made.key, "{}", lab.signer)
    monkeypatch.undo()
    Said.model_rebuild(force=True)
    overwrite(bucket, record_name(made, lab), envelope)
    assert mine.behind(bucket, lab.key).record(made.key) is None
    assert "passed over: a newer rocwright signed it" in mine.said[0]
    assert bucket.get(record_name(made, lab), 10**6) == envelope


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"what was BUILT", "has other bytes than its record says"),
        (b"what was built, and more", "more than it should be"),
        (b"what was", "has other bytes than its record says"),
    ],
)
def test_a_replaced_file_is_refused_and_the_step_is_built(
    bucket: Bucket, lab: Machine, mine: Machine, made: Record, data: bytes, why: str
) -> None:
    [output] = made.outputs
    overwrite(bucket, blob_name(output.sha256), data)
    store = mine.behind(bucket, lab.key)
    assert store.record(made.key)
    assert not store.bring(made.key)
    assert why in mine.said[0]
    assert store.record(made.key) is None
    assert not store.has(output.sha256)
    assert [*mine.store.local.files()] == []
    assert not [*(mine.store.path / "tmp").iterdir()], "nothing is left of it"


def test_a_file_that_is_gone_from_the_bucket_is_built(
    bucket: Bucket, lab: Machine, mine: Machine, made: Record
) -> None:
    bucket.remove(blob_name(made.outputs[0].sha256))
    store = mine.behind(bucket, lab.key)
    assert store.record(made.key)
    assert not store.bring(made.key)
    assert "the file is gone from it" in mine.said[0]
    assert store.record(made.key) is None


def test_a_transfer_that_was_cut_off_goes_on_where_it_stood(
    bucket: Bucket, lab: Machine, mine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = bytes(range(256)) * 100_000
    made = lab.make(whole)
    lab.push(bucket, made)
    read = bucket.chunks
    begins: list[int] = []

    def cut(name: str, begin: int = 0) -> Iterator[bytes]:
        if name.startswith("blobs/"):
            begins.append(begin)
        for number, chunk in enumerate(read(name, begin)):
            if name.startswith("blobs/") and len(begins) == 1 and number == 1:
                raise NetworkError("the line went dead", cause="a test")
            yield chunk

    monkeypatch.setattr(bucket, "chunks", cut)
    first = mine.behind(bucket, lab.key)
    assert first.record(made.key)
    assert not first.bring(made.key)
    counted: list[int] = []
    again = mine.behind(bucket, lab.key)
    assert again.record(made.key)
    assert again.bring(made.key, counted.append)
    assert begins[0] == 0
    assert 0 < begins[1] < len(whole)
    assert sum(counted) == len(whole) - begins[1]
    assert verified(mine.store, made.outputs[0].sha256).read_bytes() == whole


def test_what_a_key_signed_after_it_was_revoked_is_refused(
    bucket: Bucket, lab: Machine, mine: Machine
) -> None:
    records = {year: lab.make(year.encode(), f"of-{year}") for year in ("2025", "2026")}
    for year, record in records.items():
        text = seal(record).decode()
        envelope = envelope_of("record", record.key, text, lab.signer, f"{year}-06-01T00:00:00Z")
        bucket.add(record_name(record, lab), envelope)
    revoked = lab.key.model_copy(update={"revoked": "2026-06-01T00:00:00Z"})
    store = mine.behind(bucket, revoked)
    assert store.record(records["2025"].key) is not None
    assert store.record(records["2026"].key) is None
    assert "the key is revoked since 2026-06-01" in mine.said[0]


def test_two_owners_must_have_made_the_same_bytes_where_two_are_asked_for(
    bucket: Bucket, lab: Machine, mine: Machine, tmp_path: Path
) -> None:
    second = Machine(tmp_path / "second", "second")
    made = lab.make()
    lab.push(bucket, made)
    assert mine.behind(bucket, lab.key, second.key, agree=2).record(made.key) is None
    assert "fewer than 2 signers agree" in mine.said[0]
    second.make()
    second.push(bucket, made)
    assert mine.behind(bucket, lab.key, second.key, agree=2).record(made.key) is not None


def test_a_build_with_shards_of_another_signer_counts_alone_but_not_among_those_that_agree(
    bucket: Bucket, lab: Machine, mine: Machine, tmp_path: Path
) -> None:
    second = Machine(tmp_path / "second", "second")
    made = lab.make()
    lab.push(bucket, made)
    second.make()
    shard = Shard(key=other("shard"), step="shard/engine/1-of-2", keyid=lab.key.keyid)
    second.store.write_record(made.model_copy(update={"shards": (shard,)}))
    second.push(bucket, made)
    assert mine.behind(bucket, lab.key, second.key, agree=2).record(made.key) is None
    assert any("compiled by another signer" in one for one in mine.said)
    taken = mine.behind(bucket, second.key).record(made.key)
    assert taken is not None and taken.shards == (shard,)


def test_a_build_with_a_cache_that_another_signer_filled_counts_alone_but_not_among_those_that_agree(
    bucket: Bucket, lab: Machine, mine: Machine, tmp_path: Path
) -> None:
    second = Machine(tmp_path / "second", "second")
    made = lab.make()
    lab.store.write_record(made.model_copy(update={"cache_signers": (lab.key.keyid,)}))
    lab.push(bucket, made)
    second.make()
    second.store.write_record(made.model_copy(update={"cache_signers": (lab.key.keyid,)}))
    second.push(bucket, made)
    assert mine.behind(bucket, lab.key, second.key, agree=2).record(made.key) is None
    assert any(f"compiled by another signer ({lab.key.keyid[:12]})" in one for one in mine.said)
    found = mine.behind(bucket, second.key).record(made.key)
    assert found is not None and found.cache_signers == (lab.key.keyid,)
    assert found.compiled_by_others() == (lab.key.keyid,)


def test_shards_of_its_own_count_among_those_that_agree(
    bucket: Bucket, lab: Machine, mine: Machine, tmp_path: Path
) -> None:
    second = Machine(tmp_path / "second", "second")
    made = lab.make()
    for machine in (lab, second):
        machine.make()
        shards = (Shard(key=other("a"), step="s"), Shard(key=other("b"), step="s", keyid=machine.key.keyid))
        machine.store.write_record(made.model_copy(update={"shards": shards}))
        machine.push(bucket, made)
    assert mine.behind(bucket, lab.key, second.key, agree=2).record(made.key) is not None


def test_different_bytes_of_two_owners_are_told_and_neither_is_taken(
    bucket: Bucket, lab: Machine, mine: Machine, tmp_path: Path
) -> None:
    second = Machine(tmp_path / "second", "second")
    made = lab.make(b"one")
    lab.push(bucket, made)
    second.push(bucket, second.make(b"two"))
    assert mine.behind(bucket, lab.key, second.key).record(made.key) is None
    assert "is not reproducible: 2 different outputs" in mine.said[0]


def test_a_store_that_does_not_answer_is_told_once_and_asked_no_more(mine: Machine, lab: Machine) -> None:
    store = mine.behind(Bucket("http://127.0.0.1:1"), lab.key)
    keys = [lab.make(name.encode(), name).key for name in "abcdefgh"]
    assert [*records_of(store, keys).values()] == [None] * 8
    assert [store.record(key) for key in keys] == [None] * 8
    assert len(mine.said) == 1
    assert "did not answer" in mine.said[0]


def test_what_others_built_is_not_signed_as_our_own(
    bucket: Bucket, lab: Machine, mine: Machine, made: Record, tmp_path: Path
) -> None:
    store = mine.behind(bucket, lab.key)
    assert store.record(made.key)
    assert store.bring(made.key)
    elsewhere = Bucket((tmp_path / "elsewhere").as_uri())
    pusher = mine.pusher(elsewhere)
    pusher.open("mine")
    done = pusher.records([made.key])
    assert (done.records, done.files) == (0, 0)
    assert done.left_out == ["engine: built by lab, who signs it"]


def test_what_is_there_is_neither_sent_nor_written_again(bucket: Bucket, lab: Machine, made: Record) -> None:
    before = {one.name: bucket.get(one.name, 10**6) for one in bucket.list("records")}
    done = lab.pusher(bucket).records([made.key])
    assert (done.records, done.there, done.files) == (0, 1, 0)
    assert {one.name: bucket.get(one.name, 10**6) for one in bucket.list("records")} == before


def test_other_bytes_of_a_pushed_step_are_not_put_over_the_first(
    bucket: Bucket, lab: Machine, mine: Machine, made: Record
) -> None:
    lab.store.local.remove("record", made.key)
    again = lab.make(b"other bytes")
    done = lab.pusher(bucket).records([again.key])
    assert "other bytes were pushed before" in done.left_out[0]
    offered = mine.behind(bucket, lab.key).record(made.key)
    assert offered is not None
    assert offered.outputs == made.outputs


def test_a_file_that_a_clean_up_took_meanwhile_is_sent_again(
    bucket: Bucket, lab: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file was there when it was looked for, and gone when the record that names it was put."""
    made = lab.make()
    lab.pusher(bucket).open("lab")
    blob = blob_name(made.outputs[0].sha256)
    bucket.add(blob, b"what was built")
    add = bucket.add

    def taken(name: str, data: bytes | Path) -> bool:
        if name.startswith("records/"):
            bucket.remove(blob)
        return add(name, data)

    monkeypatch.setattr(bucket, "add", taken)
    lab.pusher(bucket).records([made.key])
    assert bucket.get(blob, 100) == b"what was built"


def test_a_lock_is_published_and_a_newer_one_takes_its_place(
    bucket: Bucket, lab: Machine, mine: Machine
) -> None:
    name = "a" * 64
    pusher = lab.pusher(bucket)
    pusher.open("lab")
    assert pusher.lock(name, "one")
    assert not pusher.lock(name, "one")
    assert pusher.lock(name, "two")
    offered = published_lock(mine.behind(bucket, lab.key), name)
    assert offered is not None
    assert (offered[0], offered[1].content) == ("lab", "two")
    assert published_lock(mine.behind(bucket, mine.key), name) is None


def test_what_came_from_a_key_that_is_not_trusted_any_more_is_named_with_what_was_made_of_it(
    bucket: Bucket, lab: Machine, mine: Machine, made: Record
) -> None:
    store = mine.behind(bucket, lab.key)
    assert store.record(made.key)
    assert store.bring(made.key)
    built = mine.make(b"on it", "on-it", made)
    last = mine.make(b"on that", "on-that", built)
    mine.make(b"of our own", "apart")
    assert untrusted(mine.store, Trust(key=(lab.key,))) == {}
    found = untrusted(mine.store, Trust())
    assert set(found) == {made.key, built.key, last.key}
    assert "that key is not trusted any more" in found[made.key]
    assert "made of engine" in found[built.key]
    revoked = lab.key.model_copy(update={"revoked": "2020-01-01T00:00:00Z"})
    assert "revoked since 2020" in untrusted(mine.store, Trust(key=(revoked,)))[made.key]


@pytest.mark.parametrize("name", ["../../../etc/cron.d/x", "A" * 64, "", "a" * 63])
def test_a_record_whose_outputs_are_no_hashes_is_refused(
    bucket: Bucket, lab: Machine, mine: Machine, made: Record, name: str
) -> None:
    [output] = made.outputs
    evil = made.model_copy(update={"outputs": (output.model_copy(update={"sha256": name}),)})
    envelope = envelope_of("record", made.key, seal(evil).decode(), lab.signer)
    overwrite(bucket, record_name(made, lab), envelope)
    assert mine.behind(bucket, lab.key).record(made.key) is None
    assert "was refused: it names no files" in mine.said[0]


def test_what_does_not_fit_on_the_disk_is_not_begun(
    bucket: Bucket, lab: Machine, mine: Machine, made: Record
) -> None:
    [output] = made.outputs
    huge = made.model_copy(update={"outputs": (output.model_copy(update={"size": 10**18}),)})
    envelope = envelope_of("record", made.key, seal(huge).decode(), lab.signer)
    overwrite(bucket, record_name(made, lab), envelope)
    store = mine.behind(bucket, lab.key)
    assert store.record(made.key)
    with pytest.raises(OutOfDiskError, match="does not fit"):
        store.bring(made.key)
    assert not [*(mine.store.path / "tmp").iterdir()]


def test_words_of_strangers_do_not_reach_the_terminal_as_they_are(
    bucket: Bucket, lab: Machine, mine: Machine
) -> None:
    made = lab.make(name="engine\x1b[2J")
    lab.push(bucket, made)
    bucket.remove(blob_name(made.outputs[0].sha256))
    store = mine.behind(bucket, lab.key)
    assert store.record(made.key)
    assert not store.bring(made.key)
    assert mine.said
    assert "\x1b" not in mine.said[0]
    overwrite(bucket, "format.json", b'{"schema": 1, "name": "a\\u001b[2Jb/../c"}')
    assert read_mark(bucket) == "a-2Jb-..-c"


def test_records_are_asked_for_at_the_same_time(
    bucket: Bucket, lab: Machine, mine: Machine, made: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan has some thirty steps, and each answer may take a tenth of a second."""
    meet = threading.Barrier(4, timeout=20)
    get = bucket.get

    def slow(name: str, most: int) -> bytes | None:
        meet.wait()
        return get(name, most)

    monkeypatch.setattr(bucket, "get", slow)
    others = [other(name) for name in ("a", "b", "c")]
    found = records_of(mine.behind(bucket, lab.key), [*others, made.key])
    assert [*found] == [*others, made.key]
    assert [record is not None for record in found.values()] == [False, False, False, True]


@pytest.mark.parametrize("forged", ["unsigned", "by a stranger", "of another step", "no definition"])
def test_a_definition_that_no_trusted_key_signed_for_its_step_is_left_out(
    bucket: Bucket, lab: Machine, mine: Machine, made: Record, tmp_path: Path, forged: str
) -> None:
    """Who may write into the bucket could change the trust domain, or where a source is fetched from."""
    honest = lab.store.step(made.key)
    other = lab.store.step(lab.make(name="another").key)
    assert honest is not None and other is not None
    stranger = Machine(tmp_path / "stranger", "stranger")
    data = {
        "unsigned": honest,
        "by a stranger": envelope_of("step", made.key, honest.decode(), stranger.signer),
        "of another step": envelope_of("step", made.key, other.decode(), lab.signer),
        "no definition": envelope_of("step", made.key, "{}", lab.signer),
    }
    overwrite(bucket, word_name("step", made.key, lab.key.keyid), data[forged])
    store = mine.behind(bucket, lab.key)
    assert store.record(made.key)
    assert store.bring(made.key)
    assert mine.store.step(made.key) is None
