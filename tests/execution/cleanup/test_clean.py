"""What takes room, what of it goes, and what a clean-up never touches."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from filelock import FileLock
from tests.making import put_output, record_of, small_plan

from rocwheel_samples.hostile_files import make_deep, make_fifo, soon
from rocwright.cli import cli
from rocwright.execution.cleanup.advice import what_to_free
from rocwright.execution.cleanup.inside import what_can_go
from rocwright.execution.cleanup.model import the_kinds
from rocwright.execution.cleanup.room import clear, look
from rocwright.execution.compiler_cache import lend
from rocwright.execution.workspace import Workspace
from rocwright.home import Home
from rocwright.records.model import Run, StepRun, now
from rocwright.records.opening import open_records
from rocwright.sources.bases.tools import tools_key
from rocwright.store.gc import DAY, check_whole
from rocwright.store.local import LocalStore
from rocwright.store.model import Output

REPOSITORY = Path(__file__).parents[3]
INSIDE = tuple(kind.name for kind in the_kinds().kind)


def age(path: Path, days: float) -> None:
    then = time.time() - days * DAY
    os.utime(path, (then, then))


@pytest.fixture
def old(store: LocalStore, tmp_path: Path) -> dict[str, str]:
    """A store whose records are old, the first step's the oldest; the sha256 of each step's output."""
    found = {}
    for number, step in enumerate(small_plan().steps):
        output = put_output(store, step, "out", step.name.encode() * 100, tmp_path)
        found[step.name] = output.sha256
        age(store.path / "records" / step.key[:2] / f"{step.key}.json", 100 - number)
    return found


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["clean", *words])
    return done.exit_code, done.stdout


def test_each_place_in_the_home_folder_goes_by_a_kind_or_stays_for_a_reason(home: Home) -> None:
    places = [name for name in dir(Home) if isinstance(getattr(Home, name), property)]
    named = {getattr(home, name).relative_to(home.path).parts[0] for name in places}
    kinds = {part for kind in the_kinds().kind for part in kind.lies}
    stays = {one.name for one in the_kinds().kept}
    assert named == kinds | stays
    assert not kinds & stays
    page = (REPOSITORY / "docs/files.md").read_text()
    assert {name for name in named if f"`{name}`" not in page and f"`{name}/`" not in page} == set()


def test_nothing_but_home_names_places_in_the_home_folder() -> None:
    """So that the test above knows of all."""
    own = re.compile(r"""(?:home|Home\.default\(\))\.path / f?["']""")
    code = (REPOSITORY / "src/rocwright").rglob("*.py")
    assert [path.name for path in code if own.search(path.read_text())] == []


def test_without_words_it_shows_every_kind_and_removes_nothing(
    store: LocalStore, old: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, said = run()
    assert "docker is not installed" in said
    assert code == 0
    assert all(name in said for name in the_kinds().names)
    assert all(store.has(each) for each in old.values())


def test_a_dry_run_tells_what_the_removal_then_takes(store: LocalStore, old: dict[str, str]) -> None:
    before = json.loads(run("--dry-run", "--json")[1])
    assert all(store.has(each) for each in old.values())
    done = json.loads(run("--yes", "--json")[1])
    assert before["going"] == done["going"]
    assert (before["removed"], done["removed"]) == (False, True)
    assert done["size"] == before["size"] == sum(len(name) * 100 for name in old)
    assert not any(store.has(each) for each in old.values())


def test_only_the_kinds_that_are_named_go(store: LocalStore, old: dict[str, str]) -> None:
    run("sources", "--yes")
    assert {name for name, each in old.items() if store.has(each)} == {"root/build", "hello"}
    assert check_whole(store).incomplete == ()


def test_the_oldest_use_goes_first_until_no_more_than_the_limit_is_left(
    store: LocalStore, old: dict[str, str]
) -> None:
    total = sum(len(name) * 100 for name in old)
    run("--max", str(total - 1), "--yes")
    assert [name for name, each in old.items() if not store.has(each)] == [next(iter(old))]
    assert run("--max", "1TiB", "--yes")[1].startswith("nothing of these kinds can be removed")


def test_a_terminal_of_80_columns_gets_the_columns_that_fit(
    home: Home, store: LocalStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    said = run()[1]
    assert "things" not in said.splitlines()[0]
    assert "packed and" in said and "--json prints all columns" in said
    monkeypatch.setenv("COLUMNS", "200")
    assert "rocwright clean artifacts" in run()[1]


def test_what_an_interrupted_build_of_a_stack_left_goes_however_new(
    home: Home, store: LocalStore, tmp_path: Path
) -> None:
    first, *_, other = small_plan().steps
    with open_records(home) as records:
        for stack, step in (("mine", first), ("theirs", other)):
            put_output(store, step, "out", step.name.encode() * 100, tmp_path)
            for folder in (Workspace.of(home, step.key).path, home.work / (step.key[::-1][:16])):
                (folder / "build").mkdir(parents=True)
                (folder / "build" / "object").write_bytes(b"x" * 1000)
            records.put(
                Run(
                    id=stack,
                    command="build",
                    started=now(),
                    seconds=1,
                    stack=stack,
                    gpu=("gfx1151",),
                    base="debian:sid",
                    outcome="killed",
                    steps=(StepRun(name=step.name, key=step.key, outcome="killed", kind="run"),),
                )
            )
    assert json.loads(run("--stack", "else", "--dry-run", "--json")[1])["going"] == []
    assert run("--stack", "mine", "--yes")[0] == 0
    assert store.record(first.key) is None and store.record(other.key) is not None
    assert not Workspace.of(home, first.key).path.exists()
    assert Workspace.of(home, other.key).path.exists() and len(list(home.work.iterdir())) == 3
    home.plans.mkdir(parents=True)
    (home.plans / "x.json").write_text(small_plan().model_dump_json(by_alias=True))
    assert run("--stack", "theirs", "--yes")[0] == 0
    assert store.record(other.key) is not None, "the last plan needs it"
    assert not Workspace.of(home, other.key).path.exists()


def test_what_is_younger_than_keep_stays(store: LocalStore, old: dict[str, str]) -> None:
    assert (
        json.loads(run("--keep", "97.5d", "--dry-run", "--json")[1])["going"][-1]["name"].split()[0]
        == list(old)[2]
    )
    assert json.loads(run("--keep", "20w", "--dry-run", "--json")[1])["going"] == []


def test_nobody_is_not_asked(store: LocalStore, old: dict[str, str]) -> None:
    done = CliRunner().invoke(cli, ["clean", "--keep", "0"], input="n\n")
    assert done.exit_code != 0
    assert all(store.has(each) for each in old.values())
    assert CliRunner().invoke(cli, ["clean", "--keep", "0"], input="y\n").exit_code == 0
    assert not any(store.has(each) for each in old.values())


def test_what_the_last_plan_needs_stays(home: Home, store: LocalStore, old: dict[str, str]) -> None:
    keep = {step.key for step in small_plan().steps}
    assert look(home, store, keep, 0, INSIDE).pieces == ()


def test_the_tools_root_stays_however_old(home: Home, store: LocalStore, old: dict[str, str]) -> None:
    path = home.path / "root.tar.zst"
    path.write_bytes(b"programs")
    sha256, size = store.put_file(path, move=True)
    output = Output(name="root", filename=path.name, sha256=sha256, size=size)
    key = tools_key()
    record = store.record(next(entry.key for entry in store.local.records()))
    assert record is not None
    store.put_record(record.model_copy(update={"key": key, "content_key": "ab" * 32, "outputs": (output,)}))
    age(store.path / "records" / key[:2] / f"{key}.json", 1000)
    found = what_can_go(home, store, set(), 0)
    assert {*old.values()} & {*found.blobs}
    assert sha256 not in found.blobs
    assert key not in found.records


def test_a_file_that_another_record_names_stays(store: LocalStore, old: dict[str, str], home: Home) -> None:
    step = small_plan().steps[0]
    record = store.record(step.key)
    assert record is not None
    store.put_record(record_of(step, record.outputs[0], key="7" * 64))
    room = look(home, store, {"7" * 64}, 30, INSIDE)
    clear(room.pieces, room, home, store, lambda line: None)
    assert [name for name, each in old.items() if store.has(each)] == [step.name]
    assert check_whole(store).incomplete == ()


def test_what_a_running_step_is_made_from_stays(home: Home, store: LocalStore, old: dict[str, str]) -> None:
    last = small_plan().steps[-1]
    for step in small_plan().steps:
        store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    (home.work / last.key[:16]).mkdir(parents=True)
    script = "import sys,filelock;l=filelock.FileLock(sys.argv[1]);l.acquire();print(flush=True);input()"
    lock = store.path / "locks" / f"{last.key}.lock"
    with subprocess.Popen(
        [sys.executable, "-c", script, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        found = what_can_go(home, store, set(), 0)
        holder.communicate(b"\n")
    assert (found.records, found.blobs, found.folders) == ((), (), ())
    assert len(what_can_go(home, store, set(), 0).records) == 5


def test_what_came_into_use_after_the_look_stays(home: Home, store: LocalStore, old: dict[str, str]) -> None:
    room = look(home, store, set(), 30, INSIDE)
    last = small_plan().steps[-1]
    record = store.record(last.key)
    assert record is not None
    store.put_record(record_of(last, record.outputs[0], key="8" * 64))
    clear(room.pieces, room, home, store, lambda line: None)
    assert [name for name, each in old.items() if store.has(each)] == [last.name]


def test_links_are_not_followed(home: Home, store: LocalStore, tmp_path: Path) -> None:
    outside = tmp_path / "mine"
    outside.mkdir()
    (outside / "run.log").write_text("mine")
    for folder in (home.work, home.roots, home.runs):
        folder.mkdir(parents=True)
        (folder / ("a" * 64)).symlink_to(outside)
    inner = home.work / "failed"
    inner.mkdir()
    (inner / "link").symlink_to(outside)
    assert run("--keep", "0", "--yes")[0] == 0
    assert not inner.exists()
    assert (outside / "run.log").read_text() == "mine"


def test_what_a_hostile_step_left_goes_and_nothing_outside_does(
    home: Home, store: LocalStore, tmp_path: Path
) -> None:
    """Folders deeper than any path, links, a FIFO: in the folder of a step that failed."""
    outside, left = tmp_path / "outside", home.work / ("d" * 16)
    outside.mkdir()
    (outside / "kept").touch()
    (left / "build").mkdir(parents=True)
    (left / "build" / "src").symlink_to(outside)
    make_fifo(left / "build" / "ccache.log")
    make_deep(left / "build", 1500)
    age(left, 40)
    with soon():
        assert run("work", "--yes")[0] == 0
    assert not left.exists()
    assert (outside / "kept").exists()


def test_logs_go_and_the_history_stays(home: Home) -> None:
    run_folder = home.runs / "20260101"
    run_folder.mkdir(parents=True)
    for name in ("run.json", "hello.log"):
        (run_folder / name).write_text("x")
        age(run_folder / name, 40)
    run("logs", "--yes")
    assert [path.name for path in run_folder.iterdir()] == ["run.json"]


def test_what_is_known_of_a_folder_of_wheels_stays_while_it_is_open(home: Home, store: LocalStore) -> None:
    home.indexes.mkdir()
    database = home.indexes / "ab.json"
    database.write_bytes(b"x")
    age(database, 40)
    with database.open():
        run("indexes", "--yes")
        assert database.exists()
    run("indexes", "--yes")
    assert not database.exists()


def test_an_unpacked_root_goes_by_its_name_first(home: Home, store: LocalStore) -> None:
    root = home.roots / ("e" * 64)
    root.mkdir(parents=True)
    (root / "file").write_text("x")
    assert run("roots", "--yes")[0] == 0
    assert [path.name for path in home.roots.iterdir() if path.is_dir()] == []


def test_package_lists_go_unless_apt_is_at_work_in_them(home: Home, store: LocalStore) -> None:
    lists = home.apt / "sid-amd64"
    (lists / "var").mkdir(parents=True)
    (lists / "var/list").write_text("x")
    with FileLock(home.apt / "sid-amd64.lock"):
        run("package-lists", "--keep", "0d", "--yes")
        assert lists.exists()
    run("package-lists", "--keep", "0d", "--yes")
    assert not lists.exists()


def test_compiler_caches_that_no_step_used_of_late_go_unless_one_uses_them(home: Home) -> None:
    old, busy, new = (home.compiler_cache(letter * 64) for letter in "abc")
    for folder in (old, busy, new):
        with lend(home, folder.name):
            (folder / "0").mkdir()
            (folder / "0/result").write_bytes(b"x" * 10)
    with lend(home, busy.name):
        for folder in (old, busy):
            age(folder.with_name(f"{folder.name}.used"), 40)
        [told] = look(home, LocalStore(home.store), set(), 30, ["compiler-cache"]).found
        assert (told.size, told.count) == (30, 3)
        assert {one.name for one in told.pieces} == {str(old), str(busy)}
        assert run("compiler-cache", "--yes")[0] == 0
        assert (old.exists(), busy.exists(), new.exists()) == (False, True, True)


def test_another_programs_cache_is_emptied_by_its_command_and_only_when_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Home
) -> None:
    cache = tmp_path / "cache-of-uv"
    cache.mkdir()
    (cache / "wheel").write_bytes(b"x" * 10)
    age(cache / "wheel", 40)
    program = tmp_path / "bin" / "uv"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n[ "$2" = dir ] && echo {cache} || rm -r {cache}/wheel\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    run("--yes")
    assert (cache / "wheel").exists()
    assert json.loads(run("uv", "--yes", "--json")[1])["size"] == 10
    assert not (cache / "wheel").exists()


@pytest.mark.parametrize("words", [("nothing",), ("--keep", "soon"), ("--max", "much"), ("--max", "1GB")])
def test_what_is_not_understood_is_refused(words: tuple[str, ...], home: Home) -> None:
    assert run(*words)[0] != 0


def test_where_a_disk_has_no_room_each_command_is_told_with_what_it_frees(
    home: Home, store: LocalStore, old: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "wheel").write_bytes(b"x" * 2048)
    # pip as the catalog asks it; the other programs are not there
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "pip").write_text(f"#!/bin/sh\necho {cache}\n")
    (programs / "pip").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/bin")
    young = home.work / "0123456789abcdef"
    young.mkdir(parents=True)
    (young / "file").write_bytes(b"x" * 10240)
    assert what_to_free(home, store, set()).splitlines() == [
        "rocwright clean --dry-run            frees 5.0 KiB not used for 30 days: "
        "sources 3.5 KiB, roots 1000 B, artifacts 500 B",
        "rocwright clean --keep 0d --dry-run  frees 15.0 KiB: work 10.0 KiB, sources 3.5 KiB, "
        "roots 1000 B, artifacts 500 B",
        "pip cache purge                      frees 2.0 KiB: pip's cache",
    ]
    every = {step.key for step in small_plan().steps}
    assert [line.split("  frees")[0].strip() for line in what_to_free(home, store, every).splitlines()] == [
        "rocwright clean --keep 0d --dry-run", "pip cache purge",
    ]  # fmt: skip
