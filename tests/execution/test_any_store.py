"""Steps run with any store: this one is a bucket, with none of a local store's folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bucket import BucketStore
from tests.execution.conftest import Workshop, put_root

from rocbase.errors import InputError
from rocwright.execution.exec_step import execute
from rocwright.home import Home
from rocwright.model.steps import Plan
from rocwright.plan.decide import State, decide


@pytest.fixture
def workshop(home: Home, engine: str, tiny_root: Path, tmp_path: Path) -> Workshop:
    store = BucketStore(tmp_path / "cache")
    return Workshop(home, store, engine, tmp_path, put_root(store, tiny_root))


def test_a_step_runs_with_what_a_bucket_has_and_gives_it_its_outputs(workshop: Workshop) -> None:
    first = workshop.step("tr a-z A-Z < file > $OUT/result")
    second = workshop.step("cat $IN/other/result > $OUT/result", name="second", inputs={"other": first})
    assert workshop.text(workshop.run(first)) == "TEXT\n"
    record = workshop.run(second)
    assert workshop.text(record) == "TEXT\n"
    assert workshop.store.record(second.key) == record
    assert not workshop.home.store.exists()


def test_a_step_that_a_bucket_has_is_not_run_again(workshop: Workshop) -> None:
    step = workshop.step("echo run >> $OUT/result")
    record = workshop.run(step)
    assert workshop.run(step) == record
    assert workshop.lines[-1] == "hello: already in the store"
    plan = Plan(steps=(step,), artifacts=(step.name,))
    assert [one.state for one in decide(plan, workshop.store)] == [State.CACHED]


def test_a_step_with_the_same_inputs_under_another_key_is_reused(workshop: Workshop) -> None:
    first, second = (workshop.tree(name, file="same\n") for name in ("one", "two"))
    record = workshop.run(workshop.step("cp file $OUT/result", tree=first))
    assert workshop.run(workshop.step("cp file $OUT/result", tree=second)).reused == record.content_key


def test_what_a_bucket_has_not_is_told_with_where_it_is(workshop: Workshop) -> None:
    with pytest.raises(InputError, match="the store at memory://bucket has no step 0123"):
        execute("0123" * 16, workshop.store, workshop.home, print)
