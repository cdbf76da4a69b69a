"""Machines that build in one bucket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.making import record_of
from tests.store.servers import reach, s3
from tests.store.sharers import Machine

from rocbase.errors import InputError
from rocwright.execution.exec_step import execute
from rocwright.home import Home
from rocwright.model.steps import FetchAction, Step
from rocwright.store import open_store
from rocwright.store.blobs import Damage, blob_name
from rocwright.store.bucket import Bucket
from rocwright.store.leases import abandon, cleaning, lease_name, locked
from rocwright.store.model import Output, Record, finished, verified
from rocwright.store.shared import signers, word_name
from rocwright.store.sharing import WorkingStore
from rocwright.store.signing.keys import make_key

Opens = Callable[..., WorkingStore]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3() as url:
        yield url


@pytest.fixture
def bucket(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    reach(monkeypatch, server)
    return Bucket(f"s3://lab/{tmp_path.name}")


@pytest.fixture
def machines(tmp_path: Path) -> dict[str, Machine]:
    return {name: Machine(tmp_path / name, name) for name in ("one", "two")}


@pytest.fixture
def opens(bucket: Bucket, machines: dict[str, Machine]) -> Opens:
    """The store of a machine that trusts those named."""

    def opened(name: str, *trusted: str) -> WorkingStore:
        own = machines[name]
        shared = own.behind(bucket, *(machines[one].key for one in (name, *trusted))).shared
        return WorkingStore(own.store, shared, own.signer, "lab")

    return opened


def build(store: WorkingStore, folder: Path, data: bytes = b"made", name: str = "engine") -> Record:
    step = Step(name=name, component=name, action=FetchAction(pending=name))
    store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    path = folder / "file"
    path.write_bytes(data)
    sha256, size = store.put_file(path)
    return store.put_record(record_of(step, Output(name="out", filename="f", sha256=sha256, size=size)))


def test_what_one_makes_the_other_has_at_once(opens: Opens, bucket: Bucket, tmp_path: Path) -> None:
    two = opens("two", "one")
    record = build(opens("one"), tmp_path)
    found = two.record(record.key)
    assert found is not None and found.origin is not None
    assert (found.origin.by, found.outputs) == ("one", record.outputs)
    assert verified(two, record.outputs[0].sha256).read_bytes() == b"made"
    assert two.step(record.key) is not None
    assert bucket.get(word_name("step", record.key, opens("one").keyid), 10_000) is not None


def test_what_was_not_there_is_asked_for_again(opens: Opens, tmp_path: Path) -> None:
    two = opens("two", "one")
    step = Step(name="engine", component="engine", action=FetchAction(pending="engine"))
    assert two.record(step.key) is None
    build(opens("one"), tmp_path)
    assert two.record(step.key) is not None


def test_who_is_not_trusted_is_not_heard(opens: Opens, tmp_path: Path) -> None:
    record = build(opens("one"), tmp_path)
    assert opens("two").record(record.key) is None


def test_a_file_that_went_from_the_bucket_is_made_again_and_sent_again(
    opens: Opens, bucket: Bucket, tmp_path: Path
) -> None:
    record = build(opens("one"), tmp_path)
    bucket.remove(blob_name(record.outputs[0].sha256))
    two = opens("two", "one")
    assert two.record(record.key) is not None
    assert not two.bring(record.key)
    # it is not offered again and again: whoever plans would never end
    assert [two.record(record.key) for _ in range(3)] == [None] * 3
    build(two, tmp_path)
    assert bucket.size(blob_name(record.outputs[0].sha256)) == len(b"made")
    assert two.record(record.key) is not None


def test_what_lies_here_alone_is_lent_where_others_need_it(
    opens: Opens, machines: dict[str, Machine]
) -> None:
    record = machines["one"].make()
    two = opens("two", "one")
    assert two.record(record.key) is None
    assert opens("one").bring(record.key, here=False)
    assert two.record(record.key) is not None
    assert two.bring(record.key)
    assert machines["two"].store.has(record.outputs[0].sha256)


def test_what_was_made_here_before_a_kill_is_put_when_it_is_asked_for(
    opens: Opens, machines: dict[str, Machine], tmp_path: Path
) -> None:
    """The record lay here, and the process was killed before it lay in the bucket."""
    made = machines["one"].make()
    assert opens("two", "one").record(made.key) is None
    execute(made.key, opens("one"), Home(tmp_path / "home"), print)
    assert opens("two", "one").record(made.key) is not None


def test_what_another_took_back_is_made_again(
    opens: Opens, machines: dict[str, Machine], bucket: Bucket, tmp_path: Path
) -> None:
    made = build(opens("one"), tmp_path)
    two = opens("two", "one")
    assert two.record(made.key) is not None
    assert two.bring(made.key)
    bucket.remove(word_name("record", made.key, machines["one"].key.keyid))
    again = opens("two", "one")
    assert not again.bring(made.key, here=False)
    assert again.record(made.key) is None


@pytest.mark.parametrize("has", [True, False])
def test_a_file_that_was_cut_short_in_the_bucket_is_put_again_or_made_again(
    opens: Opens, machines: dict[str, Machine], bucket: Bucket, tmp_path: Path, has: bool
) -> None:
    made = build(opens("one"), tmp_path)
    blob = blob_name(made.outputs[0].sha256)
    bucket.replace(blob, b"ma")
    if has:
        assert opens("one").bring(made.key, here=False)
        assert bucket.get(blob, 99) == b"made"
        return
    machines["one"].store.local.remove("file", made.outputs[0].sha256)
    for name, other in (("one", "two"), ("two", "one")):
        store = opens(name, other)
        assert store.record(made.key) is not None, "the record says that it is there"
        assert not store.bring(made.key, here=False)
        assert finished(store, made.key) is None
    again = build(opens("two", "one"), tmp_path)
    assert again.outputs == made.outputs
    assert bucket.get(blob, 99) == b"made"


def test_a_file_that_was_damaged_in_the_bucket_is_put_anew_by_who_found_it(
    opens: Opens, machines: dict[str, Machine], bucket: Bucket, tmp_path: Path
) -> None:
    made = build(opens("one"), tmp_path)
    blob = blob_name(made.outputs[0].sha256)
    bucket.replace(blob, b"MADE")
    two = opens("two", "one")
    assert two.record(made.key) is not None
    assert not two.bring(made.key)
    build(opens("two", "one"), tmp_path)
    assert bucket.get(blob, 99) == b"made"
    # and by who has it still, once a check has found it
    bucket.replace(blob, b"MADE")
    Damage(machines["one"].store.path).note(bucket, made.outputs[0].sha256)
    assert opens("one").bring(made.key, here=False)
    assert bucket.get(blob, 99) == b"made"


def test_the_outputs_of_an_equal_step_are_vouched_for_by_name(
    opens: Opens, machines: dict[str, Machine], bucket: Bucket, tmp_path: Path
) -> None:
    first = build(opens("one"), tmp_path)
    two = opens("two", "one")
    found = two.record(first.key)
    assert found is not None
    other = Step(name="other", component="other", action=FetchAction(pending="other"))
    kept = two.put_record(found.model_copy(update={"key": other.key, "reused": first.key}))
    assert kept.origin is None
    [note] = kept.notes
    assert note.startswith(f"the outputs of {first.key[:12]}, from lab, built by one")
    # who signs it has not built it: where two must agree, that is not one of them
    assert kept.ran_by == machines["one"].key.keyid
    assert kept.compiled_by_others(machines["two"].key.keyid) == (machines["one"].key.keyid,)
    # it is whole, and made by one: channels take it
    assert kept.compiled_by_others() == ()
    reader = Machine(tmp_path / "reader", "reader").behind(bucket, machines["two"].key, machines["one"].key)
    assert signers(reader, kept) == {machines["one"].key.keyid}
    assert bucket.size(word_name("record", other.key, machines["two"].key.keyid)) is not None


def test_two_machines_do_not_hold_one_step_and_an_abandoned_one_is_free(opens: Opens, bucket: Bucket) -> None:
    key = "ab" * 32
    with locked(opens("one"), key):
        assert bucket.size(lease_name(key)) is not None
        abandon(opens("two"), key)
        assert bucket.size(lease_name(key)) is None
        with locked(opens("two"), key):
            pass
    # a clean-up is of this machine's own part
    with cleaning(opens("one")):
        assert list(bucket.list("leases")) == []


def test_it_opens_by_its_url_with_the_key_and_the_trust_of_this_machine(
    bucket: Bucket,
    machines: dict[str, Machine],
    opens: Opens,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("ROCWRIGHT_HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    with pytest.raises(InputError, match="no key to sign with") as caught:
        open_store(bucket.url)
    assert caught.value.next_step == "rocwright attest key makes one"
    make_key(home / "attest.key")
    store = open_store(bucket.url)
    assert (store.url, str(store)) == (bucket.url, bucket.url)
    record = build(opens("one"), tmp_path)
    assert store.record(record.key) is None
    assert isinstance(store, WorkingStore)
    mine = build(store, tmp_path, b"mine", "mine")
    assert Home(home).store.is_dir()
    again = open_store(bucket.url).record(mine.key)
    assert again is not None and again.outputs == mine.outputs
