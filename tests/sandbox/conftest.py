"""The engines of this machine, and jobs that see the host's own programs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rocwright.sandbox import ENGINES, Engine, Probe, SandboxJob, SandboxOutcome, probe_all, run, state
from tests.engines import must_work
from tests.sandbox.sandbox_jobs import Run


@pytest.fixture(scope="session")
def probes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Probe]:
    cache = tmp_path_factory.mktemp("probes") / "probes.json"
    return {each.engine: each for each in probe_all(cache)}


@pytest.fixture(params=[name for name, each in ENGINES.items() if each.isolates])
def engine(request: pytest.FixtureRequest, probes: dict[str, Probe]) -> Engine:
    """Every engine that isolates; one that is not here is skipped with the reason."""
    must_work(probes[request.param])
    return ENGINES[request.param]


@pytest.fixture(autouse=True)
def leaves_nothing() -> Iterator[None]:
    """Whatever a test does, no sandbox of this process is left."""
    yield
    ours = [each.name for each in state.home().iterdir() if state.owner_of(each.name) == state.this_process()]
    assert ours == []


@pytest.fixture
def ran(engine: Engine) -> Run:
    """Run a job in the engine at hand: the outcome and its lines."""

    def go(each: SandboxJob) -> tuple[SandboxOutcome, list[str]]:
        lines: list[str] = []
        return run(engine, each, lines.append), lines

    return go


@pytest.fixture
def tiny_root(tmp_path: Path) -> Path:
    """A root of a few files; its /usr comes as a mount."""
    root = tmp_path / "root"
    for folder in ("usr", "etc", "opt/kept"):
        (root / folder).mkdir(parents=True)
    for link in ("bin", "sbin", "lib", "lib64"):
        (root / link).symlink_to(f"usr/{link}")
    (root / "etc" / "marker").write_text("the root's own\n")
    (root / "etc" / "passwd").write_text("root:x:0:0::/:/bin/sh\n")
    (root / "opt" / "kept" / "file").write_text("kept\n")
    return root
