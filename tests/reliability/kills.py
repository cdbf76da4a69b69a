"""Commands killed at random moments: builds, single processes of builds, verify, a server that builds."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import httpx
from tests.execution.test_kill import kill, some_child
from tests.reliability.subject import Subject

from rocwright.plan.resolve.files import read_lock

CHECK_EVERY = 10
"""Kills after which a whole build must give the right bytes."""


@dataclass(frozen=True)
class Kill:
    """One kill: of what, whether it came before the end, and what was wrong afterwards."""

    what: str
    in_time: bool
    wrong: tuple[str, ...] = ()


def killed(subject: Subject, count: int, chance: random.Random) -> Iterator[Kill]:
    """Kill `count` times; what follows must find everything whole."""
    subject.forget_steps()
    begun = time.monotonic()
    assert subject.is_right(subject.build())
    seconds = time.monotonic() - begun
    actions: tuple[tuple[str, Callable[[Subject, float, random.Random], bool]], ...] = (
        ("build", _build), ("a process of a build", _child), ("verify", _verify), ("serve", _serve),
    )  # fmt: skip
    for number in range(count):
        # each at least once, then by chance
        drawn = chance.choices(actions, weights=(4, 3, 1, 2))[0]
        name, action = actions[number] if number < len(actions) else drawn
        if name != "verify" and _all_built(subject):
            subject.forget_steps()
        in_time = action(subject, seconds, chance)
        wrong = [*(f"still there: {one}" for one in subject.left(120)), *subject.faults()]
        if (number + 1) % CHECK_EVERY == 0 or number + 1 == count:
            built = subject.build()
            wrong += (
                [] if subject.is_right(built) else [f"a build after it: {built.status} {built.said[-500:]}"]
            )
        yield Kill(name, in_time, tuple(wrong))


def _all_built(subject: Subject) -> bool:
    return all(subject.store.has(sha256) for sha256 in subject.right.values())


def _build(subject: Subject, seconds: float, chance: random.Random) -> bool:
    with subject.start("build", "--engine", "bubblewrap") as running:
        time.sleep(chance.uniform(0, seconds))
        in_time = running.poll() is None
        running.kill()
    return in_time


def _child(subject: Subject, seconds: float, chance: random.Random) -> bool:
    with subject.start("build", "--engine", "bubblewrap") as running:
        time.sleep(chance.uniform(0, seconds))
        in_time = running.poll() is None
        kill(some_child(running.pid, chance))
        running.communicate(timeout=300)
    return in_time


def _verify(subject: Subject, seconds: float, chance: random.Random) -> bool:
    subject.build()
    with subject.start("verify") as running:
        time.sleep(chance.uniform(0, seconds / 4))
        in_time = running.poll() is None
        running.kill()
    return in_time


def _serve(subject: Subject, seconds: float, chance: random.Random) -> bool:
    """The server is killed; the build that it began goes on by itself, to its end."""
    with subject.start("serve", "--port", "0", "--engine", "bubblewrap") as running:
        try:
            # it may be killed before it listens, too
            if chance.random() < 0.2:
                time.sleep(chance.uniform(0, seconds / 2))
                return running.poll() is None
            assert running.stderr is not None
            said = "".join(running.stderr.readline() for _ in range(2))
            found = re.search(r"(http://[\d.:]+)/enter\?token=(\S+)", said)
            assert found, said
            _ask_for_a_build(subject, found[1], found[2])
            time.sleep(chance.uniform(0, seconds))
            return running.poll() is None
        finally:
            running.kill()


def _ask_for_a_build(subject: Subject, address: str, token: str) -> None:
    request = read_lock(subject.project / "rocwright.lock").request
    with httpx.Client(base_url=address, timeout=60) as client:
        client.post("/enter", data={"token": token, "to": "/"})
        secret = re.search(r'name="secret" value="([^"]+)"', client.get("/queue").text)
        assert secret
        form = {"stack": request.stack, "gpu": request.gpu[0], "base": request.base, "secret": secret[1]}
        with suppress(httpx.HTTPError):
            assert client.post("/queue", data=form).status_code == 303
