"""The class of a failure of apt is that of what failed."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from rocbase.errors import FailureClass
from rocbase.processes.run import Finished
from rocwright.sources.debian_failures import archive_failure


def finished(stderr: str, code: int = 1) -> Finished:
    return Finished(argv=("mmdebstrap",), returncode=code, stdout="", stderr=stderr, seconds=1.0)


@pytest.mark.parametrize(
    ("stderr", "failure"),
    [
        ("Err:1 http://host.example sid\n  Could not resolve 'host.example'\nE: failed", "network"),
        ("E: The repository 'x sid Release' does not have a Release file.", "network"),
        ("E: Write error - write (28: No space left on device)", "out of disk"),
        ("sh: 1: gpgv: not found\nE: apt-get update failed", "input"),
        ("E: need apt-get to work", "input"),
        ("The following signatures couldn't be verified: NO_PUBKEY 0E98404D386FA1D9", "input"),
        ("unshare: unshare failed: Operation not permitted", "sandbox"),
    ],
)
def test_the_class_follows_what_failed(tmp_path: Path, stderr: str, failure: str) -> None:
    error = archive_failure("the lists could not be fetched", finished(stderr), tmp_path, "check the network")
    assert error.failure is FailureClass(failure)
    assert (error.next_step == "check the network") == (failure == "network")


def test_a_full_disk_is_seen_though_the_program_says_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gpg said only that it could not initialize its trustdb, and the network was blamed."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: SimpleNamespace(free=0 if Path(path) == tmp_path else 2**40)
    )
    said = finished("gpg failed to initialize trustdb:: 512")
    error = archive_failure("the lists could not be fetched", said, Path("/"), "check the network")
    assert error.failure is FailureClass.OUT_OF_DISK
    assert str(tmp_path) in error.cause
