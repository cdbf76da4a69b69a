"""Records carry the sha256 of what they say: what was changed on disk is found, and is as good as none."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.making import digest, put_output, small_plan

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwright.plan.decide import State, decide
from rocwright.sources.bases.roots import remove_tree
from rocwright.store.gc import check_whole, remove, rubbish
from rocwright.store.local import LocalStore
from rocwright.store.model import RECORD_SCHEMA, Output, Record, records


@pytest.fixture
def record(store: LocalStore, tmp_path: Path) -> Record:
    """A record whose output is in the store."""
    step = small_plan().steps[-1]
    put_output(store, step, "out", b"the right bytes", tmp_path)
    found = store.record(step.key)
    assert found is not None
    return found


def file_of(store: LocalStore, record: Record) -> Path:
    return store.path / "records" / record.key[:2] / f"{record.key}.json"


def change(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def aside(store: LocalStore) -> list[str]:
    return [path.name.split("-")[0] for path in (store.path / "damaged").iterdir()]


def test_an_output_that_was_exchanged_in_a_record_is_found_by_verify(
    store: LocalStore, record: Record, tmp_path: Path
) -> None:
    (tmp_path / "bad").write_bytes(b"the wrong bytes")
    sha256, size = store.put_file(tmp_path / "bad")
    bad = record.outputs[0].model_copy(update={"sha256": sha256, "size": size})
    change(file_of(store, record), outputs=[bad.model_dump()])
    found = check_whole(store)
    assert found.records == (record.key,)
    assert aside(store) == [record.key]
    assert check_whole(store).records == ()


def test_a_build_takes_no_changed_record_and_says_why_the_step_runs(
    store: LocalStore, record: Record
) -> None:
    plan = small_plan()
    change(file_of(store, record), outputs=[])
    (decision,) = [one for one in decide(plan, store) if one.step.key == record.key]
    assert decision.state is State.RUN
    assert decision.reasons == ("its record was damaged and has been moved aside",)
    assert store.put_record(record) == record == store.record(record.key)


def test_every_flipped_byte_of_a_record_is_noticed_or_changes_nothing_of_what_it_says(
    store: LocalStore, record: Record
) -> None:
    path, draw = file_of(store, record), random.Random(7)
    whole = path.read_bytes()
    noticed = 0
    for at in sorted(draw.sample(range(len(whole)), 200)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << draw.randrange(8))]) + whole[at + 1 :])
        try:
            found = store.record(record.key)
        except InputError:
            found = None
        assert found in (None, record), at
        noticed += found is None
    assert noticed > 150, "only the spaces between may be anything"


def test_a_record_under_the_key_of_another_is_damaged(store: LocalStore, record: Record) -> None:
    another = record.model_copy(update={"key": digest("another")})
    file_of(store, another).parent.mkdir(exist_ok=True)
    file_of(store, another).write_bytes(file_of(store, record).read_bytes())
    assert store.record(another.key) is None
    assert aside(store) == [another.key]


def test_a_record_without_a_sha256_is_damaged(store: LocalStore, record: Record) -> None:
    file_of(store, record).write_text(record.model_dump_json())
    assert store.record(record.key) is None
    assert aside(store) == [record.key]


def test_signatures_may_be_added_without_another_form(store: LocalStore, record: Record) -> None:
    change(file_of(store, record), signatures=[{"keyid": "a", "sig": "b"}, {"keyid": "c", "sig": "d"}])
    assert store.record(record.key) == record


# a newer rocwright's


def test_a_record_of_a_newer_schema_is_told_and_stays_where_it_is(store: LocalStore, record: Record) -> None:
    path = file_of(store, record)
    change(path, schema_version=RECORD_SCHEMA + 1, something="new", sha256=digest("of all that"))
    before = path.read_bytes()
    with pytest.raises(InputError, match=f"schema {RECORD_SCHEMA + 1}") as caught:
        store.record(record.key)
    assert "upgrade rocwright" in caught.value.next_step
    assert records(store) == []
    with pytest.raises(InputError):
        store.put_record(record)
    assert check_whole(store).unknown == (record.key,)
    assert (path.read_bytes(), aside(store)) == (before, [])


def test_a_damaged_schema_number_is_no_newer_rocwright(store: LocalStore, record: Record) -> None:
    change(file_of(store, record), schema_version=RECORD_SCHEMA + 1)
    assert store.record(record.key) is None
    assert aside(store) == [record.key]


def test_a_clean_up_removes_no_file_that_a_newer_record_may_need(store: LocalStore, record: Record) -> None:
    path = file_of(store, record)
    change(path, schema_version=RECORD_SCHEMA + 1, sha256=digest("of all that"))
    found = rubbish(store, set(), -1, [])
    remove(store, found, remove_tree)
    assert store.has(record.outputs[0].sha256)
    assert path.exists()


def test_a_store_of_now_is_opened_without_a_lock(store: LocalStore) -> None:
    LocalStore(store.path)
    assert list((store.path / "locks").iterdir()) == []


@each("name", ["../x", "a/b", "/etc/passwd", "..", "", "a\nb", "\x1b[2J"])
def test_an_output_whose_name_leads_elsewhere_is_no_output(name: str) -> None:
    with pytest.raises(ValidationError, match="is not the name of a file"):
        Output(name="x", filename=name, sha256=digest("x"), size=1)
