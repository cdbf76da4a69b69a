"""Every error that a user can meet says its likely cause and a next step, where it is made."""

from __future__ import annotations

import ast
from pathlib import Path

import rocbase
import rocwheel
from rocwheel_samples.messages import faults, parsed
from rocwheel_samples.tables import each


def test_each_error_says_its_cause_and_a_next_step() -> None:
    modules = parsed(Path(rocbase.__file__ or "").parent) | parsed(Path(rocwheel.__file__).parent)
    assert {"rocbase/errors.py", "rocbase/cli/run.py", "rocwheel/wheels/elf.py"} <= set(modules)
    assert faults(modules) == []


BASE = "class ExplainedError(Exception): ...\nclass InputError(ExplainedError): ...\nOurError = InputError\n"


@each(
    "call",
    [
        'InputError("x", cause="c")',
        'InputError("x", next_step="n")',
        'OurError("x", cause="c")',
        'errors.InputError("x", cause="", next_step="n")',
        'InputError("x", cause=next(lines, "see the end of the log"), next_step="n")',
        'InputError("x", cause=said or "", next_step="n")',
        'InputError("x", cause="c", next_step="Report it." if odd else "n")',
    ],
)
def test_an_error_that_lacks_one_is_found(call: str) -> None:
    told = {"x.py": ast.parse(f"def f():\n    raise {call}\n")}
    assert len(faults(told, [ast.parse(BASE)])) == 1


@each(
    "call",
    [
        'InputError("x", cause="c", next_step="n")',
        'InputError("x", cause=str(error), next_step=next_step)',
        'InputError("x", cause=said or "no message", next_step="a" if odd else "b")',
        'ValueError("x")',
    ],
)
def test_an_error_with_both_passes(call: str) -> None:
    assert faults({"x.py": ast.parse(f"{BASE}def f():\n    raise {call}\n")}) == []
