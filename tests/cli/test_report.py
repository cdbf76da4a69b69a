"""The summary of a build."""

from __future__ import annotations

import pytest

from rocwright.cli.report import check_row
from rocwright.records.model import Finding


@pytest.mark.parametrize(
    ("ok", "absent", "word"), [(True, False, "ok"), (True, True, "absent"), (False, False, "FAILED")]
)
def test_what_was_not_there_to_be_tried_is_no_pass(ok: bool, absent: bool, word: str) -> None:
    found = Finding(component="llama", check="runs", name="devices", ok=ok, absent=absent, detail="none")
    assert check_row(found) == ("llama: devices", word, "-", "none")
