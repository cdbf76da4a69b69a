"""Failure classes: a closed set, each with an exit code of its own."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from rocbase import errors
from rocbase.errors import (
    DiskError,
    ExplainedError,
    FailureClass,
    InputError,
    InternalError,
    OutOfDiskError,
    as_known,
    from_dict,
)
from rocwheel_samples.tables import each

KINDS = ExplainedError.__subclasses__()


def test_every_class_has_an_exit_code_of_its_own() -> None:
    codes = [one.exit_code for one in FailureClass]
    assert len(set(codes)) == len(codes)
    assert all(0 < code < 256 for code in codes)


def test_every_class_has_an_error() -> None:
    named = {
        kind.failure
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, ExplainedError)
    }
    assert named == set(FailureClass)


@each("failure", FailureClass)
def test_an_error_comes_back_from_another_process_as_it_was(failure: FailureClass) -> None:
    data = {"class": failure.value, "message": "w", "cause": "c", "next": "n", "detail": "d", "subject": "s"}
    error = from_dict(data)
    assert error.failure is failure
    told = error.as_dict()
    assert data.items() <= told.items()
    assert from_dict(told).as_dict() == told


@each("data", [{}, {"class": "unheard of"}, {"message": "x"}])
def test_an_error_that_cannot_be_read_is_a_fault_of_the_program(data: dict[str, str]) -> None:
    assert isinstance(from_dict(data), InternalError)


@each("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_known_by_its_number(number: int) -> None:
    assert isinstance(as_known(OSError(number, os.strerror(number)), "rocwheel"), OutOfDiskError)


def test_a_user_without_a_home_is_told_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", str)
    with pytest.raises(RuntimeError) as caught:
        Path.home()
    told = as_known(caught.value, "rocwheel")
    assert isinstance(told, InputError)
    assert told.next_step.startswith("set HOME to a folder")


@each("number", [errno.EIO, errno.EROFS, errno.ESTALE, errno.ENXIO, errno.ENODEV, errno.EUCLEAN])
def test_a_disk_that_fails_is_named_with_its_device_and_path(number: int) -> None:
    told = as_known(OSError(number, os.strerror(number), "/proc/self/file"), "rocwheel")
    assert isinstance(told, DiskError)
    assert told.message.startswith("/proc/self/file ")
    assert told.cause == f"{os.strerror(number)}, on proc at /proc"


def test_a_folder_that_is_read_only_is_left_for_another() -> None:
    """It said to set ROCWRIGHT_HOME, of a file in the folder of the project."""
    told = as_known(OSError(errno.EROFS, "Read-only file system", "rocwright.toml"), "rocwright")
    assert told.next_step.startswith("run it in a folder that you can write to")


def test_what_nobody_foresaw_is_told_as_a_fault_of_the_program() -> None:
    told = as_known(ZeroDivisionError("division by zero"), "rocwheel")
    assert isinstance(told, InternalError)
    assert "ZeroDivisionError" in told.message
    assert "rocwheel --debug" in told.next_step


def test_rocwright_knows_the_base_class_by_its_own_name() -> None:
    assert errors.ExplainedError is ExplainedError
