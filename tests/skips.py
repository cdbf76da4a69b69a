"""Skips at the end of a run, by name and reason; one that `expected_skips.toml` does not foresee fails it.

A test that is skipped looks green from outside: each reason for it is written down once, with a why.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

EXPECTED = Path(__file__).with_name("expected_skips.toml")
_found: dict[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Tests that may be skipped, for a reason: regular expressions, found anywhere in the text.

    `user` is for machines where the tests are not run by root.
    """

    test: str
    reason: str
    why: str
    user: bool = False

    def covers(self, test: str, reason: str) -> bool:
        """Whether it foresees this skip."""
        here = not self.user or os.geteuid() != 0
        return here and bool(re.search(self.test, test)) and bool(re.search(self.reason, reason))


def expected() -> list[Expected]:
    """All that is foreseen."""
    return [Expected(**entry) for entry in tomllib.loads(EXPECTED.read_text())["skip"]]


def _note(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        told = report.longrepr
        reason = told[2] if isinstance(told, tuple) else str(told)
        _found[report.nodeid] = " ".join(reason.removeprefix("Skipped: ").split())


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _note(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _note(report)


def _unexpected() -> Iterator[tuple[str, str]]:
    known = expected()
    for test, reason in sorted(_found.items()):
        if not any(one.covers(test, reason) for one in known):
            yield test, reason


def pytest_sessionfinish(session: pytest.Session) -> None:
    # workers of xdist tell the one that started them, which sees it all
    if not hasattr(session.config, "workerinput") and any(_unexpected()) and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _found:
        return
    unexpected = dict(_unexpected())
    terminalreporter.section(f"{len(_found)} skipped, {len(unexpected)} unexpectedly")
    for test, reason in sorted(_found.items()):
        if test not in unexpected:
            terminalreporter.line(f"expected    {test}: {reason[:120]}")
    for test, reason in unexpected.items():
        terminalreporter.line(f"UNEXPECTED  {test}: {reason}", red=True)
    if unexpected:
        terminalreporter.line(
            "Install what is missing (tools/prepare test), or add it to tests/expected_skips.toml"
        )
