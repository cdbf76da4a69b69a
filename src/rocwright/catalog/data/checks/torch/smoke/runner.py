"""Runs the child process, and goes on after it crashed or hung. Never imports torch."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from smoke.child import RESTART
from smoke.explain import Explanation, crash_explanation, ended, tail

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SUITE = Path(__file__).resolve().parent.parent / "suite.py"
ENDS_ALLOWED = 3
"""How many processes one group may end before the rest of it is left out."""


@dataclass(frozen=True)
class Limits:
    """Seconds of wall clock: to import torch and list the cases, for one operation, for a group of them."""

    start: float = 300.0
    operation: float = 120.0
    group: float = 600.0


@dataclass(frozen=True)
class Outcome:
    """How one case ended: ok, wrong, absent, error, crash, hang or untried; drift or apart where it was
    repeated (smoke.drift). `more` is what else its row has."""

    group: str
    name: str
    state: str
    detail: str
    error: float | None = None
    tolerance: float | None = None
    cause: str = ""
    next_step: str = ""
    seconds: float = 0.0
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; what is absent is not wrong, nor what torch itself calls so."""
        return self.state in ("ok", "absent", "apart")


class ChildFailedError(Exception):
    """The child gave no answer at all."""

    def __init__(self, what: str, known: Explanation) -> None:
        super().__init__(what)
        self.known = known


class Child:
    """A child process under way, read line by line against a deadline. Ends with the `with` block."""

    def __init__(self, order: dict[str, Any], env: Mapping[str, str] | None = None) -> None:
        self.reader, writer = os.pipe()
        self.log: IO[bytes] = os.fdopen(os.memfd_create("said"), "w+b")
        self.process = subprocess.Popen(
            [sys.executable, str(SUITE), "--child", json.dumps(order), str(writer)],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            pass_fds=(writer,),
            env=env,
            start_new_session=True,
        )
        os.close(writer)
        self.rest = b""

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *ignored: object) -> None:
        self.kill()
        os.close(self.reader)
        self.log.close()

    def line(self, seconds: float) -> dict[str, Any] | None:
        """The next thing that it says; None where it has ended. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.reader], [], [], left)[0]:
                raise TimeoutError
            read = os.read(self.reader, 1 << 16)
            if not read:
                return None
            self.rest += read
        first, _, self.rest = self.rest.partition(b"\n")
        said: dict[str, Any] = json.loads(first)
        return said

    def end(self) -> int:
        """Its exit status, after it closed its pipe."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(30)
        self.kill()
        return self.process.wait()

    def kill(self) -> None:
        """End it and what it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def said(self) -> str:
        """The end of what it and its libraries printed."""
        size = self.log.seek(0, os.SEEK_END)
        self.log.seek(max(0, size - 8192))
        return self.log.read().decode(errors="replace")


def described(limits: Limits) -> dict[str, Any]:
    """What torch there is and which devices it sees. Raises ChildFailedError."""
    with Child({"task": "describe"}) as child:
        said = _answer(child, limits)
    found: dict[str, Any] = said["described"]
    return found


def _answer(child: Child, limits: Limits) -> dict[str, Any]:
    try:
        said = child.line(limits.start)
    except TimeoutError:
        raise ChildFailedError(
            f"torch was not imported within {limits.start:.0f} s",
            Explanation(
                "the import, or the first look at the devices, hangs", "look at the driver's log (dmesg)"
            ),
        ) from None
    if said is None:
        code, text = child.end(), child.said()
        raise ChildFailedError(
            f"the process that imports torch {ended(code)}: {tail(text)}", crash_explanation(code, text)
        )
    if "failed" in said:
        raise ChildFailedError(said["failed"], Explanation(said["cause"], said["next"]))
    return said


def outcomes(
    order: dict[str, Any], limits: Limits, env: Mapping[str, str] | None = None
) -> Iterator[Outcome]:
    """Run the cases of a suite on a device, in as many processes as it takes. Raises ChildFailedError."""
    state = _Progress(limits)
    while True:
        with Child({"task": "run", **order, "start": state.place}, env) as child:
            state.cases = [tuple(one) for one in _answer(child, limits)["cases"]]
            yield from state.follow(child)
        if state.place >= len(state.cases):
            return


class _Progress:
    """How far a suite is: the next case's place, the group under way, its time and its ended processes."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.place, self.cases = limits, 0, list[tuple[str, ...]]()
        self.group, self.group_ends, self.ends = "", 0.0, 0

    def follow(self, child: Child) -> Iterator[Outcome]:
        """What the child says, until it ends or is ended."""
        last: Outcome | None = None
        while self.place < len(self.cases):
            self._enter(self.cases[self.place][0])
            left = self.group_ends - time.monotonic()
            begun = time.monotonic()
            try:
                said = child.line(max(0.0, min(self.limits.operation, left)))
                if said is not None and "begin" in said:
                    said = child.line(max(0.0, min(self.limits.operation, left)))
            except TimeoutError:
                yield from self._ended(self._hang(child, left, time.monotonic() - begun))
                return
            if said is None:
                code = child.end()
                if code == RESTART and last is not None:
                    yield from self._left_out(last)
                else:
                    yield from self._ended(self._crash(child, code, time.monotonic() - begun))
                return
            last = self._outcome(said)
            yield last
            self.place += 1

    def _enter(self, group: str) -> None:
        if group != self.group:
            self.group, self.ends = group, 0
            self.group_ends = time.monotonic() + self.limits.group

    def _outcome(self, said: dict[str, Any]) -> Outcome:
        group, name = self.cases[self.place]
        return Outcome(
            group=group,
            name=name,
            state=said["state"],
            detail=said["detail"],
            error=said.get("error"),
            tolerance=said.get("tolerance"),
            cause=said.get("cause", ""),
            next_step=said.get("next", ""),
            seconds=said["seconds"],
            more=said.get("more", {}),
        )

    def _hang(self, child: Child, left: float, seconds: float) -> Outcome:
        child.kill()
        group, name = self.cases[self.place]
        limit = min(self.limits.operation, left)
        which = (
            "the operation's limit" if left > self.limits.operation else "what was left of the group's limit"
        )
        return Outcome(
            group=group,
            name=name,
            state="hang",
            detail=f"gave no result within {limit:.0f} s ({which}) and was ended; "
            f"before: {tail(child.said(), 2, 200)}",
            cause="the operation hangs (a kernel that never ends, a device that was lost), or is too slow",
            next_step="look at the driver's log (dmesg); a higher --operation-seconds tells slow from hung",
            seconds=round(seconds, 3),
        )

    def _crash(self, child: Child, code: int, seconds: float) -> Outcome:
        group, name = self.cases[self.place]
        text = child.said()
        known = crash_explanation(code, text)
        return Outcome(
            group=group,
            name=name,
            state="crash",
            detail=f"the process {ended(code)}: {tail(text)}",
            cause=known.cause,
            next_step=known.next_step,
            seconds=round(seconds, 3),
        )

    def _ended(self, outcome: Outcome) -> Iterator[Outcome]:
        yield outcome
        self.place += 1
        yield from self._left_out(outcome)

    def _left_out(self, outcome: Outcome) -> Iterator[Outcome]:
        """The rest of the group, where it has ended too many processes or is out of time."""
        self.ends += 1
        late = time.monotonic() >= self.group_ends
        if self.ends < ENDS_ALLOWED and not late:
            return
        why = (
            "the group's time is up" if late else f"{self.ends} operations of this group ended their process"
        )
        left_out = replace(outcome, state="untried", detail=why, cause="", next_step="", seconds=0.0)
        while self.place < len(self.cases) and self.cases[self.place][0] == outcome.group:
            yield replace(left_out, name=self.cases[self.place][1])
            self.place += 1
