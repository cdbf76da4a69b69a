"""Two logs of a step, in their files."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocwright.diagnosis import compare as comparing
from rocwright.diagnosis.compare import compare


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_of_a_long_log_the_end_is_looked_at_and_lines_keep_their_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "MOST_READ", 1000)
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
