"""What a test makes of a sandbox engine that does not work here."""

from __future__ import annotations

import os

import pytest

from rocwright.sandbox import Probe

MUST_WORK = {"podman", "buildah", "bubblewrap", "nspawn"}
"""Engines that tools/prepare installs: continuous integration may not skip them, where it is root."""


def must_work(found: Probe) -> None:
    """Return where the engine works. One that runs and breaks a promise fails the test; one that is not here
    skips it, but in continuous integration."""
    if found.ok:
        return
    reason = f"{found.engine}: {found.reason}"
    required = os.environ.get("CI") == "true" and os.geteuid() == 0 and found.engine in MUST_WORK
    if found.broken or required:
        pytest.fail(reason)
    pytest.skip(reason)
