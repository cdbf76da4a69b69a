"""Which processor this machine has, asked in one place."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocwright.model.architecture import Architecture, architecture_named, described, host, host_architecture

SOURCE = Path(__file__).parents[2] / "src/rocwright"
ASKS = re.compile(r"platform\.machine|from platform import|uname\(\)\.machine|uname\(\)\[4\]")


def test_this_machine_is_what_its_kernel_says() -> None:
    told = subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True).stdout.strip()
    assert host_architecture() == told
    assert described() == f"{told} Linux {platform.release()}"


def test_a_machine_that_nothing_is_built_for_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert host() is None
    with pytest.raises(InputError, match="riscv64") as caught:
        host_architecture()
    assert all(one in caught.value.cause for one in Architecture)
    assert "--arch x86_64" in caught.value.next_step


def test_a_name_is_that_architecture_none_is_this_machines_and_others_are_refused() -> None:
    assert [architecture_named(one) for one in ("x86_64", "aarch64")] == list(Architecture)
    assert architecture_named("") is host_architecture()
    with pytest.raises(InputError, match="'sparc' is not an architecture") as caught:
        architecture_named("sparc")
    assert "x86_64, aarch64" in caught.value.cause


def test_nothing_else_asks_which_processor_this_machine_has() -> None:
    asking = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if ASKS.search(path.read_text())}
    assert asking == {"model/architecture.py"}
