"""Every error that a user can meet says its likely cause and a next step, where it is made.

How that is read stands in rocwheel's samples, and is tried in its tests.
"""

from __future__ import annotations

from pathlib import Path

import rocbase
import rocwright
from rocwheel_samples.messages import faults, parsed

IN_STEPS = "rocwright/catalog/data/"
"""What runs in steps, without rocwright."""


def test_each_error_says_its_cause_and_a_next_step() -> None:
    modules = {
        name: module
        for name, module in parsed(Path(rocwright.__file__).parent).items()
        if not name.startswith(IN_STEPS)
    }
    assert faults(modules, parsed(Path(rocbase.__file__ or "").parent).values()) == []
