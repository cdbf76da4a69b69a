"""The last good log of a step, from the records."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.web.serving import a_run, a_step, write_log

from rocwheel.errors import InputError
from rocwright import api
from rocwright.diagnosis import good_log
from rocwright.diagnosis.good_log import compare, last_good
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


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_of_a_long_log_the_end_is_looked_at_and_lines_keep_their_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(good_log, "MOST_READ", 1000)
    before = "".join(f"a line {n}\n" for n in range(500))
    bad = write(tmp_path / "bad", f"error: too early to be looked at\n{before}error: seen\n")
    found = compare(bad, write(tmp_path / "good", before))
    assert [(one.line, one.text) for one in found.lines] == [(502, "error: seen")]
    assert 0 < found.left_out < bad.stat().st_size - 900


def test_compressed_logs_are_compared_too(tmp_path: Path) -> None:
    bad = tmp_path / "bad.gz"
    bad.write_bytes(gzip.compress(b"fine\nerror: x\n"))
    assert [one.text for one in compare(bad, write(tmp_path / "good", "fine\n")).lines] == ["error: x"]


def test_a_log_that_cannot_be_read_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        compare(tmp_path / "none", write(tmp_path / "good", "fine\n"))
    assert not os.path.lexists(tmp_path / "none")
