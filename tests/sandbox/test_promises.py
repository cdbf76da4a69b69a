"""An engine that breaks a promise fails its tests; it is not passed over as one that is not there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from rocwright.sandbox import ENGINES, Launch, Probe, Scene, probe
from rocwright.sandbox.bubblewrap import WORDS, Bubblewrap
from tests.engines import MUST_WORK, must_work

Changed = Callable[[tuple[str, ...]], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Weaker(Bubblewrap):
    """bubblewrap with other arguments."""

    change: Changed = tuple

    def launch(self, scene: Scene) -> Launch:
        launch = Bubblewrap.launch(self, scene)
        words = (scene.folder / WORDS).read_text().split("\0")
        (scene.folder / WORDS).write_text("\0".join(self.change(tuple(words))))
        return launch


def without(*gone: str) -> Changed:
    return lambda argv: tuple(word for word in argv if word not in gone)


@pytest.fixture
def found() -> Probe:
    found = probe(ENGINES["bubblewrap"])
    must_work(found)
    return found


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (without("--unshare-net"), "network interface"),
        (without("--seccomp", "9"), "no system call is refused"),
    ],
)
def test_a_promise_that_is_broken_fails_and_does_not_skip(found: Probe, change: Changed, reason: str) -> None:
    weak = probe(Weaker(change=change))
    assert weak.broken and not weak.ok
    assert reason in weak.reason
    with pytest.raises(pytest.fail.Exception, match="bubblewrap"):
        must_work(weak)


def test_one_that_is_not_there_is_skipped_but_in_continuous_integration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    absent = Probe(engine="podman", ok=False, version="", reason="not installed", seconds=0)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception):
        must_work(absent)
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(pytest.fail.Exception):
        must_work(absent)
    with pytest.raises(pytest.skip.Exception):
        must_work(replace(absent, engine="docker"))


def test_every_engine_that_isolates_must_work_but_docker_whose_daemon_nobody_installs() -> None:
    assert {name for name, each in ENGINES.items() if each.isolates} - MUST_WORK == {"docker"}
