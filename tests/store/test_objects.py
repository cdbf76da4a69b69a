"""Compiled objects in a bucket: whose count, and what is refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from tests.store.sharers import Machine

from rocwheel.errors import InputError, NetworkError
from rocwheel_samples.tables import each
from rocwright.store import objects as stored
from rocwright.store.bucket import Bucket
from rocwright.store.objects import DomainObjects, folder_of, is_object_key
from rocwright.store.signed import envelope_of
from rocwright.store.trust import TrustedKey

A, B = "a" * 64, "b" * 64
KEY = "94569bd597n00ujff703k7jlog59bnu72"
"""As ccache 4.7 names it; 4.14 has digits of base 16 alone."""


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    return Bucket(f"file://{tmp_path / 'bucket'}")


@pytest.fixture
def machines(tmp_path: Path) -> dict[str, Machine]:
    return {name: Machine(tmp_path / name, name) for name in ("one", "two", "six")}


def objects(bucket: Bucket, own: Machine, *trusted: TrustedKey, domain: str = A) -> DomainObjects:
    return DomainObjects(
        bucket=bucket, domain=domain, keys=(*trusted, own.key), signer=own.signer, note=own.said.append
    )


def place(bucket: Bucket, machine: Machine, domain: str = A) -> str:
    return f"{folder_of(domain, KEY)}/{machine.key.keyid}"


def test_what_one_puts_another_gets_that_trusts_it_with_whose_it_is(
    bucket: Bucket, machines: dict[str, Machine]
) -> None:
    one, two, six = machines.values()
    assert objects(bucket, one).get(KEY) is None
    assert objects(bucket, one).put(KEY, b"an\nobject", (six.key.keyid,))
    taken = objects(bucket, two, one.key, six.key).get(KEY)
    assert taken is not None
    assert (taken.data, taken.keyid, taken.others) == (b"an\nobject", one.key.keyid, (six.key.keyid,))
    assert place(bucket, one) == f"objects/{A}/94/{KEY}/{one.key.keyid}"
    assert bucket.size(place(bucket, one)) is not None
    assert two.said == []
    # without trust in one, and in whoever had a part in it
    assert objects(bucket, two).get(KEY) is None
    assert two.said == []
    assert objects(bucket, two, one.key).get(KEY) is None
    assert f"not trusted here had a part in it: {six.key.keyid[:12]}" in two.said[0]


def test_the_first_stands_and_the_own_one_comes_first(bucket: Bucket, machines: dict[str, Machine]) -> None:
    one, two, _ = machines.values()
    assert objects(bucket, one).put(KEY, b"first")
    assert objects(bucket, one).put(KEY, b"second")
    assert objects(bucket, two).put(KEY, b"mine")
    taken = objects(bucket, two, one.key).get(KEY)
    assert taken is not None and taken.data == b"mine"
    taken = objects(bucket, one, two.key).get(KEY)
    assert taken is not None and taken.data == b"first"


def test_no_domain_reads_what_another_wrote_not_even_in_its_place(
    bucket: Bucket, machines: dict[str, Machine]
) -> None:
    one, two, _ = machines.values()
    assert objects(bucket, one).put(KEY, b"of a")
    assert objects(bucket, two, one.key, domain=B).get(KEY) is None
    bucket.add(place(bucket, one, B), bucket.get(place(bucket, one), 10_000) or b"")
    assert objects(bucket, two, one.key, domain=B).get(KEY) is None
    assert "in the place of another" in two.said[0]


def test_a_revoked_key_counts_for_what_it_signed_before(bucket: Bucket, machines: dict[str, Machine]) -> None:
    one, two, six = machines.values()
    objects(bucket, one).put(KEY, b"x")
    for since, counts in (("2999-01-01T00:00:00Z", True), ("2020-01-01T00:00:00Z", False)):
        key = one.key.model_copy(update={"revoked": since})
        assert (objects(bucket, two, key).get(KEY) is not None) is counts
    # nobody knows when it had its part in what another signed
    bucket.remove(place(bucket, one))
    objects(bucket, six).put(KEY, b"x", (one.key.keyid,))
    revoked = one.key.model_copy(update={"revoked": "2999-01-01T00:00:00Z"})
    assert objects(bucket, two, six.key, one.key).get(KEY) is not None
    assert objects(bucket, two, six.key, revoked).get(KEY) is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda data: data[:-1] + b"!", "damaged or replaced"),
        (lambda data: data + b"!", "damaged or replaced"),
        (lambda data: data[:-1], "damaged or replaced"),
        (lambda data: data.partition(b"\n")[2], "it has no signature"),
        (lambda data: b"{" * 3000 + b"\n" + data, "it is damaged"),
        (lambda data: b"\n" + data, "it is damaged"),
        (lambda data: b"", "it has no signature"),
        (lambda data: data.replace(b'payload"', b'Payload"', 1), "it is damaged"),
    ],
)
def test_what_is_not_as_it_was_signed_is_refused_and_told(
    bucket: Bucket, machines: dict[str, Machine], change: object, why: str
) -> None:
    one, two, _ = machines.values()
    objects(bucket, one).put(KEY, b"an object")
    data = bucket.get(place(bucket, one), 10_000) or b""
    bucket.replace(place(bucket, one), change(data))  # type: ignore[operator]
    assert objects(bucket, two, one.key).get(KEY) is None
    assert why in two.said[0]


@pytest.mark.parametrize(
    "content", ["[", "{}", "null", json.dumps({"sha256": "../" * 20, "size": -1}), "[" * 5000]
)
def test_a_signed_content_of_another_form_is_refused(
    bucket: Bucket, machines: dict[str, Machine], content: str
) -> None:
    one, two, _ = machines.values()
    said = envelope_of("object", f"{A}/{KEY}", content, one.signer)
    bucket.add(place(bucket, one), said + b"x")
    assert objects(bucket, two, one.key).get(KEY) is None
    assert "has another form" in two.said[0]


def test_another_s_signature_and_another_kind_of_word_are_refused(
    bucket: Bucket, machines: dict[str, Machine]
) -> None:
    one, two, six = machines.values()
    content = stored._Content(sha256=hashlib.sha256(b"x").hexdigest(), size=1).model_dump_json()
    for what, signer, why in (
        ("object", six.signer, "not by that key"),
        ("record", one.signer, "in the place of another"),
    ):
        said = envelope_of(what, f"{A}/{KEY}", content, signer)  # type: ignore[arg-type]
        bucket.replace(place(bucket, one), said + b"x")
        # not in the place of one, though six is trusted too
        assert objects(bucket, two, one.key, six.key).get(KEY) is None
        assert why in two.said[-1]


def test_too_large_is_neither_put_nor_read(
    bucket: Bucket, machines: dict[str, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, _ = machines.values()
    objects(bucket, one).put(KEY, b"x" * 200_000)
    monkeypatch.setattr(stored, "LARGEST", 100_000)
    assert objects(bucket, two, one.key).get(KEY) is None
    assert "has more than" in two.said[0]
    assert not objects(bucket, two).put(KEY, b"x" * 100_001)


@each("key", ["", "../../etc/passwd", "a" * 15, "w" * 20, "A" * 20, "a/" * 10, "a" * 129])
def test_a_name_that_is_none_of_ccache_s_leads_nowhere(key: str) -> None:
    assert not is_object_key(key)
    with pytest.raises(ValueError, match="not the name"):
        folder_of(A, key)
    with pytest.raises(ValueError, match="not the name"):
        folder_of(f"../{A[3:]}", KEY)


class Broken(Bucket):
    """Does not answer, or refuses; counts how often it was asked."""

    def __init__(self, error: type[NetworkError | InputError]) -> None:
        super().__init__("file:///nowhere")
        self.error, self.asked = error, 0

    def list(self, folder: str) -> object:  # type: ignore[override]
        return self._no(folder)

    def add(self, name: str, data: object) -> bool:
        self._no(name)
        return True

    def _no(self, name: str) -> object:
        self.asked += 1
        raise self.error(f"it could not {name}", cause="x", next_step="x")


def test_a_bucket_that_does_not_answer_is_asked_once_and_told_of_once(machines: dict[str, Machine]) -> None:
    one = machines["one"]
    bucket = Broken(NetworkError)
    found = objects(bucket, one)
    assert [found.get(KEY), found.get(KEY[::-1]), found.put(KEY, b"x")] == [None, None, False]
    assert bucket.asked == 1
    assert len(one.said) == 1


def test_what_a_bucket_refuses_is_told_but_not_without_end(machines: dict[str, Machine]) -> None:
    one = machines["one"]
    found = objects(Broken(InputError), one)
    for number in range(100):
        assert found.get(f"{number:020}") is None
    assert len(one.said) == stored.MOST_NOTES
