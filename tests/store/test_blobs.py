"""Large files in a shared store: an upload that was cut goes on, and what was found damaged is put anew."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.farm.proxy import Proxy, proxied
from tests.making import digest
from tests.store.servers import reach, s3
from tests.store.sharers import Machine

from rocbase.errors import NetworkError
from rocwright.store import blobs
from rocwright.store.blobs import Blobs, Damage, blob_name, parts_of
from rocwright.store.bucket import Bucket
from rocwright.store.contents import YOUNG, clean
from rocwright.store.model import verified
from rocwright.store.shared_check import check

SMALL = 256 * 1024
WHOLE = bytes(range(256)) * (5 * SMALL // 256) + b"the end"


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    monkeypatch.setattr(blobs, "LARGE", SMALL)
    with s3() as url, proxied(int(url.rpartition(":")[2])) as proxy:
        reach(monkeypatch, proxy.url)
        yield proxy


@pytest.fixture
def bucket(network: Proxy, tmp_path: Path) -> Bucket:
    return Bucket(f"s3://lab/{tmp_path.name}", seconds=5, tries=0)


@pytest.fixture
def lab(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "lab", "lab")


@pytest.fixture
def mine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "mine", "mine")


def parts(bucket: Bucket, sha256: str) -> list[str]:
    return [one.name for one in bucket.list(blob_name(sha256))]


def test_a_push_that_was_cut_goes_on_where_it_stood(
    network: Proxy, bucket: Bucket, lab: Machine, mine: Machine
) -> None:
    made = lab.make(WHOLE)
    [output] = made.outputs
    lab.pusher(bucket).open("lab")
    sent: list[int] = []

    def cut(size: int) -> None:
        sent.append(size)
        if len(sent) == 3:
            network.mood = "cut"

    with pytest.raises(NetworkError):
        lab.pusher(bucket, cut).records([made.key])
    assert mine.behind(bucket, lab.key).record(made.key) is None
    network.mood = "well"
    assert len(parts(bucket, output.sha256)) == 3
    assert check(bucket).wrong == (), "nothing is said of an upload that goes on"
    done = lab.pusher(bucket).records([made.key])
    assert (sum(sent), done.files, done.size) == (3 * SMALL, 1, len(WHOLE) - 3 * SMALL)
    assert len(parts(bucket, output.sha256)) == 6
    store = mine.behind(bucket, lab.key)
    assert store.record(made.key) and store.bring(made.key)
    assert verified(mine.store, output.sha256).read_bytes() == WHOLE
    assert check(bucket).wrong == ()
    assert lab.pusher(bucket).records([made.key]).files == 0, "it is there"


def test_a_part_that_is_cut_short_is_sent_again(bucket: Bucket, lab: Machine) -> None:
    made = lab.make(WHOLE)
    lab.push(bucket, made)
    [output] = made.outputs
    bucket.replace(parts(bucket, output.sha256)[1], b"cut")
    assert not Blobs(bucket).has(output.sha256, output.size)
    assert lab.pusher(bucket).records([made.key]).size == SMALL
    assert Blobs(bucket).has(output.sha256, output.size)


def test_a_fetch_that_was_cut_within_a_part_goes_on_there(
    bucket: Bucket, lab: Machine, mine: Machine
) -> None:
    made = lab.make(WHOLE)
    lab.push(bucket, made)
    [output] = made.outputs
    store = mine.behind(bucket, lab.key)
    assert store.record(made.key)
    part = mine.store.path / "tmp" / f"fetch-{output.sha256}.part"
    part.write_bytes(WHOLE[: 2 * SMALL + 100])
    counted: list[int] = []
    assert store.bring(made.key, counted.append)
    assert sum(counted) == len(WHOLE) - 2 * SMALL - 100
    assert verified(mine.store, output.sha256).read_bytes() == WHOLE


def test_a_file_that_lies_there_whole_is_read_and_not_sent_again(
    bucket: Bucket, lab: Machine, mine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As stores have them that were filled before."""
    made = lab.make(WHOLE)
    with monkeypatch.context() as before:
        before.setattr(blobs, "LARGE", 2 * len(WHOLE))
        lab.push(bucket, made)
    [output] = made.outputs
    assert bucket.size(blob_name(output.sha256)) == len(WHOLE)
    assert lab.pusher(bucket).records([made.key]).files == 0
    store = mine.behind(bucket, lab.key)
    assert store.record(made.key) and store.bring(made.key)
    # one that is cut short there is written over, and hides no parts
    bucket.replace(blob_name(output.sha256), b"cut")
    assert lab.pusher(bucket).records([made.key]).files == 1
    assert b"".join(Blobs(bucket).chunks(output.sha256, output.size)) == WHOLE


def test_a_clean_up_takes_an_upload_that_nobody_goes_on_with(
    bucket: Bucket, lab: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lab.make(WHOLE)
    lab.push(bucket, made)
    left = digest("nobody goes on with it")
    for name, _, length in [*parts_of(left, 3 * SMALL)][:2]:
        bucket.replace(name, b"x" * length)
    assert clean(bucket).files == 0, "it may go on still"
    monkeypatch.setattr("rocwright.store.contents.YOUNG", -YOUNG)
    done = clean(bucket)
    assert (done.files, done.size) == (1, 2 * SMALL)
    assert parts(bucket, left) == []
    assert Blobs(bucket).has(made.outputs[0].sha256, len(WHOLE))


@given(size=st.integers(1, 64), begin=st.integers(0, 64))
def test_a_file_comes_from_any_byte_on(
    tmp_path_factory: pytest.TempPathFactory, size: int, begin: int
) -> None:
    data = os.urandom(size)
    bucket = Bucket(tmp_path_factory.mktemp("bucket").as_uri())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blobs, "LARGE", 7)
        for name, at, length in parts_of("ab", size):
            bucket.add(name if size > 7 else blob_name("ab"), data[at : at + length])
        begin = min(begin, size - 1)
        assert b"".join(Blobs(bucket).chunks("ab", size, begin)) == data[begin:]
        [found] = Blobs(bucket).found().values()
        assert (found.size, found.whole) == (size, True)


def test_the_word_of_a_stranger_of_a_size_costs_no_memory(bucket: Bucket) -> None:
    assert not Blobs(bucket).has("0" * 64, 10**18)
    with pytest.raises(KeyError):
        next(Blobs(bucket).chunks("0" * 64, 10**18))


@pytest.mark.parametrize("data", [b"what was built", WHOLE])
def test_what_a_check_found_damaged_is_put_anew(bucket: Bucket, lab: Machine, data: bytes) -> None:
    made = lab.make(data)
    lab.push(bucket, made)
    [output] = made.outputs
    [name, *_] = parts(bucket, output.sha256) or [blob_name(output.sha256)]
    bucket.replace(name, b"!" * (bucket.size(name) or 0))
    found = check(bucket)
    assert found.wrong == ((blob_name(output.sha256), "other bytes than its name says"),)
    assert found.damaged == (output.sha256,)
    assert lab.pusher(bucket).records([made.key]).files == 0, "without a note nobody looks"
    damage = Damage(lab.store.path)
    damage.note(bucket, output.sha256)
    noting = lab.pusher(bucket, damage=damage)
    assert noting.records([made.key]).size == len(data)
    assert check(bucket).wrong == ()
    assert noting.records([made.key]).files == 0, "once is enough"


def test_what_was_read_damaged_is_put_anew_by_who_builds_it(
    bucket: Bucket, lab: Machine, mine: Machine
) -> None:
    made = lab.make(WHOLE)
    lab.push(bucket, made)
    [output] = made.outputs
    name = parts(bucket, output.sha256)[2]
    bucket.replace(name, b"!" * SMALL)
    store = mine.behind(bucket, lab.key)
    assert store.record(made.key)
    assert not store.bring(made.key)
    assert Damage(mine.store.path).has(bucket, output.sha256)
    mine.make(WHOLE)
    assert mine.pusher(bucket, damage=Damage(mine.store.path)).records([made.key]).files == 1
    assert not Damage(mine.store.path).has(bucket, output.sha256)
    assert check(bucket).damaged == ()
    third = Machine(mine.path.parent / "third", "third")
    there = third.behind(bucket, lab.key)
    assert there.record(made.key) and there.bring(made.key)
