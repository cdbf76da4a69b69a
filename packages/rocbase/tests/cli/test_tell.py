"""Errors and JSON as they are printed."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocbase.cli.tell import print_json, tell_any
from rocbase.errors import CheckError, ExplainedError, FetchError


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
    error: ExplainedError, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tell_any(error)
    told = [line.split()[1] for line in capsys.readouterr().err.splitlines() if line.startswith("  in ")]
    assert told == ([named] if named else [])


NAMES = st.text() | st.integers() | st.booleans() | st.none()
VALUES = st.recursive(
    NAMES | st.floats() | st.binary().map(lambda one: PurePosixPath(one.hex())),
    lambda of: st.lists(of) | st.lists(of).map(tuple) | st.dictionaries(NAMES, of),
    max_leaves=30,
)


@given(VALUES)
def test_json_is_that_of_the_standard_library_with_an_indent(data: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr("click.echo", lambda text="\n", nl=True: printed.append(text))
        print_json(data)
    assert "".join(printed) == json.dumps(data, indent=2, default=str) + "\n"
