"""Errors as they are printed."""

from __future__ import annotations

import pytest

from rocwheel.cli.tell import tell_any
from rocwheel.errors import CheckError, FetchError, RocwheelError


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (CheckError("not a valid kpack archive", subject="x/.kpack/x.kpack"), "x/.kpack/x.kpack"),
        (CheckError("a bundle is damaged", subject="x/\x1b[2Ja.so"), "x/\N{REPLACEMENT CHARACTER}[2Ja.so"),
        (CheckError("a.so is damaged", subject="x/a.so"), ""),
        (CheckError("it is damaged", detail="x/a.so: line 3", subject="x/a.so"), ""),
        (CheckError("it is damaged"), ""),
        (FetchError("it does not answer", subject="x/a.so"), ""),
    ],
)
def test_a_damaged_file_is_named_once(
    error: RocwheelError, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tell_any(error)
    told = [line.split()[1] for line in capsys.readouterr().err.splitlines() if line.startswith("  in ")]
    assert told == ([named] if named else [])
