"""A build from a lock to artifacts, the whole way through sandboxes, with a catalog of our own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from samples.project import COMPONENTS, TinyProject, make_sources, open_project, put_roots, start

from rocbase.errors import FailureClass, InputError, OutOfDiskError
from rocbase.files.atomic import sha256_file
from rocwright.cli import cli
from rocwright.execution.cleanup.inside import what_can_go
from rocwright.execution.options import BuildOptions
from rocwright.execution.outcome import Built
from rocwright.execution.progress import PlainProgress
from rocwright.flow import build, lock_before, planned
from rocwright.home import Home
from rocwright.plan.decide import State
from rocwright.project import kept_keys
from rocwright.records.model import Run
from rocwright.records.opening import read_records
from rocwright.sources.bases.roots import remove_tree
from rocwright.sources.programs import PROGRAMS
from rocwright.store.gc import remove, rubbish
from rocwright.store.leases import running
from rocwright.store.model import verified

EVERYTHING = {"alpha-1.0.tar.gz", "alpha-tiny.oci.tar", "beta-1.0-py3-none-any.whl"}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    make_sources(folder)
    return folder


Opened = Callable[[Path], TinyProject]


def on_record(project: TinyProject) -> list[Run]:
    with read_records(project.home) as records:
        return records.runs()


@pytest.fixture
def opened(home: Home, engine: str, tiny_root: Path) -> Opened:
    def open_(folder: Path) -> TinyProject:
        project = open_project(folder, home.path)
        put_roots(project, tiny_root)
        return project

    return open_


@pytest.fixture
def project(opened: Opened, sources: Path) -> TinyProject:
    return opened(sources)


@pytest.fixture(scope="module")
def finished_home(
    sources: Path, tiny_root: Path, probed: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The home folder of a project that was built to the end, to be copied."""
    path = tmp_path_factory.mktemp("finished") / "home"
    path.mkdir()
    shutil.copy(probed, path / "sandboxes.json")
    project = open_project(sources, path)
    put_roots(project, tiny_root)
    assert built(project).failures == ()
    yield path
    remove_tree(path)


@pytest.fixture
def finished(home: Home, engine: str, sources: Path, finished_home: Path) -> TinyProject:
    """A project that was built to the end."""
    remove_tree(home.path)
    shutil.copytree(finished_home, home.path, symlinks=True)
    project = open_project(sources, home.path)
    shutil.copytree(open_project(sources, finished_home).output, project.output)
    return project


def built(project: TinyProject) -> Built:
    return build(project, project.locked, BuildOptions(jobs=2, engine="bubblewrap"), PlainProgress())


def outcomes(done: Built) -> dict[str, str]:
    return {one.name: one.outcome for one in done.run.steps}


def test_a_build_gives_every_artifact_under_its_name_and_digest(project: TinyProject) -> None:
    done = built(project)
    assert done.failures == ()
    assert {one.output.filename for one in done.artifacts} == EVERYTHING
    for one in done.artifacts:
        assert one.path.parent == project.output / "tiny"
        assert sha256_file(one.path) == one.output.sha256
    assert outcomes(done) == dict.fromkeys(
        ["source/alpha", "source/beta", "tree/alpha", "tree/beta", "alpha", "beta", "image/alpha"], "built"
    )


def test_a_second_build_has_nothing_to_do_and_gives_the_same(finished: TinyProject) -> None:
    done = built(finished)
    assert done.run.steps == ()
    assert {one.output.filename for one in done.artifacts} == EVERYTHING
    assert {one.output.sha256 for one in done.artifacts} <= set(outputs(finished).values())
    assert len(on_record(finished)) == 1


LOADED = """
import sys
from dataclasses import replace
from pathlib import Path

from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import PlainProgress
from rocwright.catalog.load import load_catalog
from rocwright.flow import Project, build
from rocwright.home import Home
from rocwright.plan.resolve.files import read_lock

sources, home, output = map(Path, sys.argv[1:])
lock = read_lock(sources / "rocwright.lock")
project = Project(
    request=lock.request,
    lock_path=sources / "rocwright.lock",
    output=output,
    home=Home(home),
    catalog=load_catalog(sources / "catalog"),
)
assert build(project, lock, BuildOptions(engine="bubblewrap"), PlainProgress()).run.steps == ()
print(*sys.modules, sep="\\n")
"""


def test_a_build_with_nothing_to_do_loads_no_database_and_nothing_that_runs_steps(
    finished: TinyProject, sources: Path
) -> None:
    built(finished)  # artifacts that were copied to another folder are laid out anew
    places = map(str, (sources, finished.home.path, finished.output))
    loaded = set(
        subprocess.run(
            [sys.executable, "-c", LOADED, *places], capture_output=True, text=True, check=True
        ).stdout.split()
    )
    assert "rocwright.flow" in loaded
    assert loaded.isdisjoint(("sqlalchemy", "resolvelib", "rocwright.execution.scheduler"))
    assert loaded.isdisjoint(("rocwright.sandbox", "rocwright.trouble"))


def test_an_artifact_that_was_removed_or_changed_is_laid_out_again(finished: TinyProject) -> None:
    wheel, archive = (
        next(one.path for one in built(finished).artifacts if one.path.name.startswith(name))
        for name in ("beta", "alpha-1.0")
    )
    archive.unlink()
    wheel.write_bytes(b"x" * wheel.stat().st_size)
    done = built(finished)
    assert done.run.steps == ()
    for one in done.artifacts:
        assert sha256_file(one.path) == one.output.sha256


def test_another_home_gives_the_same_bytes(
    finished: TinyProject, sources: Path, tiny_root: Path, tmp_path: Path
) -> None:
    other = open_project(sources, tmp_path / "other-home")
    other.home.path.mkdir()
    shutil.copy(finished.home.probes, other.home.probes)
    put_roots(other, tiny_root)
    try:
        assert outcomes(built(other))["alpha"] == "built"
        assert outputs(other) == outputs(finished)
    finally:
        remove_tree(other.home.path)


def test_a_failed_component_does_not_stop_the_others_and_the_next_build_goes_on(
    opened: Opened, tmp_path: Path
) -> None:
    bad = {**COMPONENTS["alpha"], "run": ["echo 'a.c:1: error: no' >&2", "exit 1"]}
    make_sources(tmp_path / "s", {"alpha": bad, "beta": COMPONENTS["beta"]})
    project = opened(tmp_path / "s")
    done = built(project)
    found = outcomes(done)
    assert (found["alpha"], found["image/alpha"], found["beta"]) == ("failed", "skipped", "built")
    [(name, error)] = done.failures
    assert (name, error.failure, error.cause) == ("alpha", FailureClass.COMPILE, "a.c:1: error: no")
    assert done.artifacts == ()
    _, decisions = planned(project, project.locked)
    assert [one.step.name for one in decisions if one.state is State.RUN] == ["alpha", "image/alpha"]
    assert on_record(project)[0].outcome == "failed"


WAY = ["source/alpha", "tree/alpha", "alpha", "image/alpha"]


def outputs(project: TinyProject) -> dict[str, str]:
    """The digest of each step's first output."""
    plan, _ = planned(project, project.locked)
    records = {step.name: project.store.record(step.key) for step in plan.steps}
    return {name: record.outputs[0].sha256 for name, record in records.items() if record is not None}


def damage(project: TinyProject, sha256: str) -> None:
    """Change some bits in a stored file, as a disk does."""
    path = verified(project.store, sha256)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.chmod(0o644)
    path.write_bytes(data)


@pytest.mark.parametrize("bad", WAY[:3])
def test_what_is_damaged_in_the_store_is_found_when_it_is_needed_and_made_anew(
    finished: TinyProject, bad: str
) -> None:
    before = {one.output.filename: one.output.sha256 for one in built(finished).artifacts}
    digests = outputs(finished)
    for later in WAY[WAY.index(bad) + 1 :]:
        finished.store.local.remove("file", digests[later])
    damage(finished, digests[bad])
    done = built(finished)
    assert done.failures == ()
    assert {one.output.filename: one.output.sha256 for one in done.artifacts} == before
    assert verified(finished.store, digests[bad])
    assert len(list((finished.home.store / "damaged").iterdir())) == 1


def test_a_damaged_root_is_moved_aside_and_never_built_in(finished: TinyProject, tiny_root: Path) -> None:
    before = {one.output.filename: one.output.sha256 for one in built(finished).artifacts}
    digests = outputs(finished)
    for name in ("beta", "root/run"):
        finished.store.local.remove("file", digests[name])
    put_roots(finished, tiny_root)
    for root in finished.home.roots.glob("[0-9a-f]*"):
        if root.is_dir():
            remove_tree(root)
    damage(finished, digests["root/build"])
    # the packages of the tiny root are invented: it cannot be made anew here
    done = built(finished)
    assert "beta" not in [one.name for one in done.run.steps if one.outcome == "built"]
    assert done.failures
    assert not finished.store.has(digests["root/build"])
    put_roots(finished, tiny_root)
    done = built(finished)
    assert {one.output.filename: one.output.sha256 for one in done.artifacts} == before


def test_two_builds_at_the_same_time_build_each_step_once(
    project: TinyProject, sources: Path, tmp_path: Path
) -> None:
    both = [start(sources, project.home.path, tmp_path / "run") for _ in range(2)]
    told: list[dict[str, Any]] = []
    for one in both:
        out, err = one.communicate(timeout=60)
        assert one.returncode == 0, err
        told.append(json.loads(out.splitlines()[-1]))
    assert told[0]["artifacts"] == told[1]["artifacts"]
    assert set(told[0]["artifacts"]) == EVERYTHING
    logs = [path.read_text() for path in project.home.runs.glob("*/beta.log")]
    assert sum("$ cat file file" in text for text in logs) == 1


def test_clean_ups_while_a_build_runs_take_nothing_that_it_needs(
    project: TinyProject, sources: Path, tmp_path: Path
) -> None:
    build = start(sources, project.home.path, tmp_path / "run")
    assert build.stdout is not None
    assert build.stdout.readline() == "begun\n"
    cleaned = 0
    while build.poll() is None:
        # the build's own plan is no plan that was built last yet
        if running(project.store):
            remove(project.store, what_can_go(project.home, project.store, set(), 0), remove_tree)
            cleaned += 1
    out, err = build.communicate()
    assert build.returncode == 0, err
    told = json.loads(out.splitlines()[-1])
    assert cleaned > 5
    assert set(told["artifacts"]) == EVERYTHING
    assert set(told["steps"].values()) == {"built"}
    assert not running(project.store)


def test_a_build_for_which_there_is_no_room_starts_nothing(opened: Opened, tmp_path: Path) -> None:
    large = {**COMPONENTS["beta"], "resources": {"disk": "900000 TiB"}}
    make_sources(tmp_path / "s", {"beta": large})
    project = opened(tmp_path / "s")
    kept = ("blobs", "records", "steps", "tmp", "builds")
    before = {name: sorted((project.home.store / name).rglob("*")) for name in kept}
    with pytest.raises(OutOfDiskError) as caught:
        built(project)
    assert "rocwright clean" in caught.value.detail
    assert {name: sorted((project.home.store / name).rglob("*")) for name in kept} == before
    assert not project.home.runs.exists()


def test_a_build_and_doctor_report_the_same_missing_programs(
    home: Home, sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in sorted({*PROGRAMS["debian"], *PROGRAMS["image"], "git"} - {"skopeo", "tar"}):
        (programs / name).symlink_to("/usr/bin/true")
    project = open_project(sources, home.path)
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(InputError, match="mmdebstrap, tar are not installed"):
        built(project)
    assert not home.runs.exists()
    done = CliRunner().invoke(cli, ["doctor", "--no-engines", "gfx-smoke"])
    assert done.exit_code == 12
    assert "error    not on PATH: mmdebstrap, tar" in done.output
    assert "fix   sudo apt-get install mmdebstrap tar" in done.output


def test_a_clean_up_after_a_build_leaves_nothing_to_do(finished: TinyProject) -> None:
    found = rubbish(finished.store, kept_keys(finished.home), 0, [])
    assert found.blobs == ()
    remove(finished.store, found, remove_tree)
    assert built(finished).run.steps == ()


def test_one_changed_recipe_builds_that_component_anew_and_says_why(
    finished: TinyProject, sources: Path, tmp_path: Path
) -> None:
    shutil.copytree(sources, tmp_path / "changed")
    recipe = tmp_path / "changed/catalog/components/beta.toml"
    recipe.write_text(recipe.read_text() + 'env = { NEW = "1" }\n')
    project = open_project(tmp_path / "changed", finished.home.path)
    _, decisions = planned(project, project.locked)
    assert {one.step.name: one.reasons for one in decisions if one.state is State.RUN} == {
        "beta": ("env: NEW (none) -> 1",)
    }
    assert outcomes(built(project)) == {"beta": "built"}


def test_a_reworded_reason_for_an_edit_builds_nothing_anew(
    finished: TinyProject, sources: Path, tmp_path: Path
) -> None:
    shutil.copytree(sources, tmp_path / "changed")
    recipe = tmp_path / "changed/catalog/components/alpha.toml"
    recipe.write_text(recipe.read_text().replace("a sentence begins so", "upstream writes it so"))
    project = open_project(tmp_path / "changed", finished.home.path)
    assert project.catalog.component("alpha").edit[0].why == "upstream writes it so"
    _, decisions = planned(project, project.locked)
    assert [one for one in decisions if one.state is State.RUN] == []


def test_an_edit_that_gives_the_same_tree_stops_the_build_there(
    finished: TinyProject, sources: Path, tmp_path: Path
) -> None:
    """Early cut-off: the tree is made anew, comes out bit for bit the same, and is not built again."""
    shutil.copytree(sources, tmp_path / "changed")
    recipe = tmp_path / "changed/catalog/components/alpha.toml"
    recipe.write_text(recipe.read_text().replace('regex = "\\\\Athe"', 'regex = "\\\\At(?=he)he"'))
    project = open_project(tmp_path / "changed", finished.home.path)
    found = outcomes(built(project))
    assert (found["tree/alpha"], found["alpha"]) == ("built", "reused")
    assert outputs(project)["alpha"] == outputs(finished)["alpha"]


def test_a_lock_that_cannot_be_read_is_put_aside_when_another_is_made(
    project: TinyProject, tmp_path: Path
) -> None:
    path = tmp_path / "rocwright.lock"
    damaged = project.lock_path.read_bytes().replace(b'"beta"', b'"bets"', 1)
    path.write_bytes(damaged)
    said: list[str] = []
    assert lock_before(replace(project, lock_path=path), said.append) is None
    assert path.with_name("rocwright.lock.damaged").read_bytes() == damaged
    assert "its remedies are dropped" in said[0]


def test_a_lock_that_cannot_be_read_is_put_aside_through_no_link(
    project: TinyProject, tmp_path: Path
) -> None:
    (tmp_path / "profile").write_text("the user's own")
    path = tmp_path / "project" / "rocwright.lock"
    path.parent.mkdir()
    path.write_text("touch ran\n")
    path.with_name("rocwright.lock.damaged").symlink_to(tmp_path / "profile")
    assert lock_before(replace(project, lock_path=path), print) is None
    assert (tmp_path / "profile").read_text() == "the user's own"
    assert path.with_name("rocwright.lock.damaged").read_text() == "touch ran\n"
