"""What `rocwright run` made goes when nothing used it for long, or by its stack; never what runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import FileLock
from tests.engines import must_work
from tests.execution.cleanup.test_clean import run

from rocwright import sandbox
from rocwright.execution.cleanup.room import remove_runtime, shown_in_sandboxes
from rocwright.home import Home
from rocwright.sandbox.model import Mount, SandboxJob
from rocwright.store.gc import DAY

pytestmark = pytest.mark.timing

OLD, YOUNG, CACHE = "a" * 64, "b" * 64, "llama.cpp-1.cache"


@pytest.fixture
def made(home: Home) -> Home:
    """A home with programs and environments, of which some were not used for long."""
    for place, about in ((home.programs, None), (home.environments, "environment.json")):
        for name in (OLD, YOUNG):
            (place / name / "inside").mkdir(parents=True)
            (place / name / "inside" / "file").write_bytes(b"x" * 5000)
            stack = {"stack": "old-stack" if name == OLD else "new-stack"}
            target = place / name / about if about else place / f"{name}.json"
            target.write_text(json.dumps(stack))
        age(place / OLD)
    (home.programs / CACHE).mkdir()
    asked = home.programs / "asked"
    asked.mkdir()
    for name in ("old", "new"):
        (asked / f"{name}.json").write_text("{}")
    age(asked / "old.json")
    return home


def age(path: Path, days: float = 40) -> None:
    then = time.time() - days * DAY
    os.utime(path, (then, then))


@contextmanager
def running(shown: Path, tmp_path: Path) -> Iterator[None]:
    """A sandbox that sees a folder, as those of servers and programs do."""
    must_work(sandbox.probe(sandbox.ENGINES["bubblewrap"]))
    box = tmp_path / "box"
    box.mkdir()
    job = SandboxJob(
        root=Path("/"),
        argv=("/usr/bin/python3", "-c", "print('up', flush=True); import time; time.sleep(300)"),
        env={"PATH": "/usr/bin:/bin"},
        mounts=(Mount(source=shown, target="/artifact"),),
    )
    ready = sandbox.make_ready(job, box, "rocwright-test-runtimes", stays=False)
    with subprocess.Popen(ready.argv, env=dict(ready.env), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "up\n"
        try:
            yield
        finally:
            process.kill()
            process.wait()
            # what was in the sandbox is ended by the kernel, a moment after its starter
            until = time.monotonic() + 60
            while shown.parent.name in shown_in_sandboxes(shown.parents[1]) and time.monotonic() < until:
                time.sleep(0.05)


def left(place: Path) -> set[str]:
    return {one.name for one in place.iterdir() if one.is_dir()}


def test_what_was_not_used_for_long_goes_and_the_rest_stays(made: Home) -> None:
    code, said = run("programs", "environments", "--dry-run")
    assert code == 0 and str(made.programs / OLD) in said and "(old-stack)" in said
    assert YOUNG not in said and CACHE not in said
    assert left(made.programs) == {OLD, YOUNG, CACHE, "asked"}
    assert run("programs", "environments", "--yes")[0] == 0
    assert left(made.programs) == {YOUNG, CACHE, "asked"}
    assert left(made.environments) == {YOUNG}
    assert [one.name for one in (made.programs / "asked").iterdir()] == ["new.json"]
    assert not (made.programs / f"{OLD}.json").exists()


def test_that_of_a_stack_goes_however_new_it_is_and_nothing_else(made: Home) -> None:
    assert run("--stack", "new-stack", "--yes")[0] == 0
    assert left(made.programs) == {OLD, CACHE, "asked"}
    assert left(made.environments) == {OLD}
    assert run("environments", "--stack", "old-stack", "--yes")[0] == 0
    assert left(made.environments) == set()
    assert OLD in left(made.programs)


def test_what_runs_stays(made: Home, tmp_path: Path) -> None:
    with running(made.programs / OLD / "inside", tmp_path):
        assert shown_in_sandboxes(made.programs) >= {OLD}
        assert OLD not in run("programs", "--dry-run")[1]
        run("programs", "--stack", "old-stack", "--yes")
        assert not remove_runtime(made.programs / OLD), "it was chosen before it was started"
        assert (made.programs / OLD / "inside" / "file").exists()
    assert remove_runtime(made.programs / OLD)


def test_a_name_that_the_kernel_writes_otherwise_is_known(tmp_path: Path) -> None:
    place = tmp_path / "ein Ort" / "programs"
    (place / "ü b").mkdir(parents=True)
    with running(place / "ü b", tmp_path):
        assert "ü b" in shown_in_sandboxes(place)


def test_what_is_being_made_stays(made: Home) -> None:
    with FileLock(made.environments / f"{OLD}.lock"):
        # another process has it
        code = (
            "import sys; from pathlib import Path\n"
            "from rocwright.execution.cleanup.room import remove_runtime\n"
            "print(remove_runtime(Path(sys.argv[1])))"
        )
        words = [sys.executable, "-c", code, str(made.environments / OLD)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n" and OLD in left(made.environments)
    (made.environments / ".making-x").mkdir()
    run("environments", "--keep", "0d", "--yes")
    assert left(made.environments) == {".making-x"}
