"""Fixtures of rocbase's tests."""

from __future__ import annotations

import signal

from hypothesis import settings

from rocwheel_samples.fixtures import (
    no_fixture_reads_the_users_settings,
    no_test_touches_the_users_home,
    nothing_is_left_that_pytest_cannot_remove,
)

__all__ = [
    "no_fixture_reads_the_users_settings",
    "no_test_touches_the_users_home",
    "nothing_is_left_that_pytest_cannot_remove",
]

# A shell has what it starts in the background ignore Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No run fails by chance or by slowness: the same cases are tried each time.
settings.register_profile("rocbase", deadline=None, derandomize=True)
settings.load_profile("rocbase")
