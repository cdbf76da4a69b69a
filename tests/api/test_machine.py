"""The facade's doctor and diagnosis: what `rocwright doctor` and `diagnose` do, from Python."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from tests.diagnosis.machine.machines import NVIDIA, STRIX_HALO, machine

from rocbase.errors import InputError
from rocwright import api
from rocwright.doctor.findings.model import DoctorFinding
from rocwright.doctor.lines import lines


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(tmp_path / "home"))


def test_a_bug_report_is_written_with_what_people_read(tmp_path: Path) -> None:
    root = machine(tmp_path / "root", STRIX_HALO)
    report = api.doctor(root=str(root), bundle=str(tmp_path / "report.tar.gz"))
    with tarfile.open(tmp_path / "report.tar.gz") as packed:
        file = packed.extractfile("doctor/report.txt")
        assert file is not None
        told = file.read().decode()
    assert told.splitlines()[0] == next(lines(report))
    assert "\x1b" not in told


def test_the_engines_are_tried_on_this_machine_alone_and_only_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocwright.doctor.doctor.engines_here", lambda home: {"tried": ""})
    assert api.doctor(root=machine(tmp_path / "root", NVIDIA), engines=True).machine.engines is None
    assert api.doctor().machine.engines is None
    assert api.doctor(engines=True).machine.engines == {"tried": ""}


def test_safe_commands_of_a_report_run_where_they_are_wanted_and_never_for_another_machine(
    tmp_path: Path,
) -> None:
    safe = DoctorFinding(name="a", grade="warning", what="a", remedy=f"touch {tmp_path}/ran", safe=True)
    here = api.doctor().model_copy(update={"findings": (safe,)})
    assert [one.status for one in api.apply_remedies(here, lambda one: False)] == [None]
    assert not (tmp_path / "ran").exists()
    assert [one.status for one in api.apply_remedies(here, lambda one: one.name == "a")] == [0]
    assert (tmp_path / "ran").exists()
    with pytest.raises(InputError, match="--root"):
        api.apply_remedies(api.doctor(root=machine(tmp_path / "root", NVIDIA)), lambda one: True)


def test_a_log_may_be_an_open_file_and_a_phase_rules_issues_out() -> None:
    log = b"CMake Error at CMakeLists.txt:1:\n  Compatibility with CMake < 3.5 has been removed from CMake.\n"
    assert api.diagnose(io.BytesIO(log), phase="build").known
    with pytest.raises(InputError, match="'lunch' is not a phase"):
        api.diagnose(io.BytesIO(log), phase="lunch")
