"""Rounds of building and mending, with builds that end as they are told to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocbase.errors import CompileError, ConflictError, ExplainedError, InputError, NetworkError
from rocwright.catalog import issue as issues
from rocwright.catalog.issue import ErrorLines, Issue
from rocwright.catalog.load import builtin_catalog
from rocwright.doctor.remedies.aside import LockSnapshots, Unshared
from rocwright.doctor.remedies.rounds import HealContext, healed
from rocwright.execution.outcome import Built
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import read_lock, write_lock
from rocwright.plan.resolve.lock import make_lock, versions_in
from rocwright.plan.resolve.model import Lock
from rocwright.plan.resolve.upstream import OfflineUpstream
from rocwright.records.model import Run, StepRun
from tests.making import lock_of

STEP = "pytorch"
VERSION = {"kind": "version", "component": "cmake", "versions": "<4"}
PACKAGES = {"kind": "packages", "names": ["torch-headers"]}
VARIABLE = {"kind": "set", "variables": {"A": "1"}}


def known(monkeypatch: pytest.MonkeyPatch, *actions: dict[str, Any]) -> None:
    """The catalog knows one failure, with these actions."""
    said = {"name": "known", "class": "compile", "means": "m", "cause": "c", "remedy": "r"}
    texts = {"patterns": ["x"], "examples": ["x"], "no_match": ["y"], "source": ["s"]}
    found = Issue.model_validate(said | texts | {"confidence": "low: quoted", "remedies": actions})
    monkeypatch.setattr(issues, "_the_issues", lambda _: ({"known": found}, ErrorLines()))


class Rounds:
    """A world in which `fails` says of a lock how its build ends, and `relock` makes locks offline."""

    def __init__(self, folder: Path, fails: Callable[[Lock], ExplainedError | None]) -> None:
        self.fails = fails
        self.saved: list[Lock] = []
        self.built: list[Lock] = []
        self.said: list[str] = []
        self.unreachable: ExplainedError | None = None
        self.world = HealContext(
            catalog=builtin_catalog(),
            plan=lambda lock: make_plan(lock, builtin_catalog()),
            build=self.build,
            relock=self.relock,
            save=self.saved.append,
            aside=LockSnapshots(folder),
            say=self.said.append,
        )

    def build(self, lock: Lock) -> Built:
        assert lock == (self.saved or [lock])[-1], "what is built is what is written"
        self.built.append(lock)
        error = self.fails(lock)
        outcome = "failed" if error else "built"
        step = StepRun(name=STEP, key="", outcome=outcome, jobs=2)
        run = Run(
            id="1",
            command="build",
            started="",
            seconds=0,
            stack="",
            gpu=(),
            base="",
            outcome=outcome,
            steps=(step,),
        )
        return Built(run=run, lock=lock, artifacts=(), failures=((STEP, error),) if error else ())

    def relock(self, lock: Lock) -> Lock:
        if self.unreachable is not None:
            raise self.unreachable
        return make_lock(
            lock.request,
            builtin_catalog(),
            OfflineUpstream(),
            lambda _: None,
            remedies=lock.remedies,
            keep=lock,
        )


def failure(name: str = "known") -> ExplainedError:
    error = CompileError("it broke", detail="x: error")
    error.issue = name
    return error


def start() -> Lock:
    return lock_of("pytorch", "gfx1151", base="debian:sid")


def outcomes(lock: Lock) -> list[tuple[str, str]]:
    return [(one.action.kind, one.outcome) for one in lock.remedies]


def test_a_version_that_did_not_help_is_given_back_exactly_and_the_next_action_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, VERSION, VARIABLE)
    rounds = Rounds(tmp_path, lambda lock: failure() if len(lock.in_force) == 0 or on_trial(lock) else None)
    first = start()
    lock, built = healed(first, rounds.world)
    assert built.failures == ()
    assert outcomes(lock) == [("version", "useless"), ("set", "helped")]
    assert versions_in(rounds.built[1])["cmake"] < "4"
    assert lock.model_copy(update={"remedies": ()}) == first
    assert list(tmp_path.iterdir()) == [], "nothing stays aside"
    assert rounds.saved[-1] == lock


def test_one_that_got_past_a_failure_to_one_that_nobody_knows_is_kept_and_tells_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, VARIABLE)
    other = CompileError("it broke", detail="y.c:1: no such thing\nmore")
    rounds = Rounds(tmp_path, lambda lock: other if lock.in_force else failure())
    lock, built = healed(start(), rounds.world)
    assert [name for name, _ in built.failures] == [STEP]
    told = "pytorch got past known, then failed with an unknown failure: y.c:1: no such thing"
    assert (lock.remedies[0].outcome, lock.remedies[0].told) == ("helped", told)
    assert f"heal: known: kept, {told}" in rounds.said


def on_trial(lock: Lock) -> bool:
    return lock.in_force[-1].action.kind == "version"


def test_where_nothing_outside_answers_what_needs_it_is_passed_over_and_not_held_against_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, VERSION, VARIABLE)
    rounds = Rounds(tmp_path, lambda lock: None if lock.in_force else failure())
    rounds.unreachable = NetworkError("the index does not answer")
    lock, _ = healed(start(), rounds.world)
    assert outcomes(lock) == [("set", "helped")]
    assert any("the index does not answer" in one for one in rounds.said)


def test_a_version_that_no_lock_can_have_is_remembered_without_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, VERSION)
    rounds = Rounds(tmp_path, lambda _: failure())
    rounds.unreachable = ConflictError("no version satisfies all")
    lock, built = healed(start(), rounds.world)
    assert outcomes(lock) == [("version", "useless")]
    assert lock.remedies[0].told == "no lock with it can be made: no version satisfies all"
    assert len(rounds.built) == 1
    assert built.failures
    again, _ = healed(lock, rounds.world)
    assert again == lock, "and not tried again"


def test_a_build_that_ends_in_the_midst_leaves_a_trial_that_the_next_one_settles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, PACKAGES, VARIABLE)

    class KilledError(Exception):
        pass

    def killed(lock: Lock) -> ExplainedError | None:
        if lock.in_force:
            raise KilledError
        return failure()

    first = start()
    rounds = Rounds(tmp_path, killed)
    with pytest.raises(KilledError):
        healed(first, rounds.world)
    left = rounds.saved[-1]
    assert outcomes(left) == [("packages", "trial")]

    for folder in (tmp_path / "gone", tmp_path):
        later = Rounds(folder, lambda lock: None if lock.in_force[-1:] and not packaged(lock) else failure())
        lock, _ = healed(left, later.world)
        assert outcomes(lock) == [("packages", "useless"), ("set", "helped")]
        assert lock.roots == first.roots or folder.name == "gone"
        assert [one.wanted for one in lock.roots] == [one.wanted for one in first.roots]


def packaged(lock: Lock) -> bool:
    return lock.in_force[-1].action.kind == "packages"


NOW, THEN = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"


def test_a_lock_that_somebody_else_wrote_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    path, lock = tmp_path / "rocwright.lock", start()
    write_lock(path, lock)
    mine = Unshared(path)
    mine.write(lock.model_copy(update={"created": NOW}))
    mine.write(lock)
    write_lock(path, lock.model_copy(update={"created": THEN}))
    with pytest.raises(InputError, match="was changed during the build"):
        mine.write(lock)
    assert read_lock(path).created == THEN
