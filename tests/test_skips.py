"""Skips that are expected each have a reason. `test_gates.py` plants one that is not."""

from __future__ import annotations

import os

import pytest

from tests.skips import Expected, expected


def test_each_that_is_foreseen_says_why() -> None:
    for one in expected():
        assert one.why and one.reason and one.test
        assert not one.covers("tests/test_x.py::test_y", "the moon is full")


def test_what_is_foreseen_for_a_plain_user_is_not_for_root(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Expected(test="x", reason="root", why="it mounts", user=True)
    for uid, covered in ((0, False), (1000, True)):
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        assert one.covers("tests/x.py", "needs root") is covered
