"""The last good log of a step, from the records."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.web.serving import a_run, a_step, write_log

from rocwright import api
from rocwright.execution.good_log import last_good
from rocwright.home import Home
from rocwright.records.opening import open_records
from rocwright.records.read import Records


@pytest.fixture
def records(home: Home) -> Iterator[Records]:
    with open_records(home) as opened:
        yield opened


def test_the_same_gpu_goes_before_another_and_a_later_run_is_none(home: Home, records: Records) -> None:
    told: dict[str, dict[str, object]] = {
        "1": {},
        "2": {"gpu": ("gfx803",)},
        "3": {"base": "debian:trixie"},
        "4": {"steps": (a_step(outcome="failed"),), "outcome": "failed"},
    }
    for ident, more in told.items():
        records.put(a_run(f"20260101T00000{ident}.000000Z-000001", **more))
    for ident in "1234":
        write_log(home, a_run(f"20260101T00000{ident}.000000Z-000001"), f"log {ident}\n")
    failed = records.run("20260101T000004.000000Z-000001")
    assert failed is not None
    records.put(a_run("20260101T000005.000000Z-000001"))
    good = last_good(records, home.runs, failed, "alpha")
    assert good is not None and good.read_text() == "log 1\n"
    good.unlink()
    good.symlink_to("/etc/passwd")
    good = last_good(records, home.runs, failed, "alpha")
    assert good is not None and good.read_text() == "log 2\n"
    found = api.new_lines(failed.id, "alpha", home=home.path)
    assert found is not None and found.count == 0
    assert api.new_lines(failed.id, "beta", home=home.path) is None
    assert api.new_lines("none", "alpha", home=home.path) is None
