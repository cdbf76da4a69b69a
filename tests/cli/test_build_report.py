"""The summary of a build."""

from __future__ import annotations

import pytest

from rocbase.errors import CompileError, NetworkError
from rocwheel_samples.tables import each
from rocwright.cli.build_report import check_row, show_failures
from rocwright.records.model import Finding


@each(("ok", "absent", "word"), [(True, False, "ok"), (True, True, "absent"), (False, False, "FAILED")])
def test_what_was_not_there_to_be_tried_is_no_pass(ok: bool, absent: bool, word: str) -> None:
    found = Finding(component="llama", check="runs", name="devices", ok=ok, absent=absent, detail="none")
    assert check_row(found) == ("llama: devices", word, "-", "none")


def test_a_failed_step_is_named_in_what_to_type_next_and_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocwright.cli.place._asked", ["pytorch", "--gpu", "gfx803"])
    bad = CompileError("it ended", next_step="rocwright logs STEP shows it; rocwright shell STEP opens it")
    assert show_failures([("torch", bad), ("audio", NetworkError("no answer", next_step="try again"))]) == 6
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "error[compile] torch: it ended",
        "  next   rocwright logs torch shows it; rocwright shell torch pytorch --gpu gfx803 opens it",
        "error[network] audio: no answer",
        "  next   try again",
        "  look   rocwright logs audio",
    ]
