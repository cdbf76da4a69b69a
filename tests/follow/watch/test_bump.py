"""Candidate locks of components in real repositories."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Command
from tests.follow.watch.conftest import catalog_of, component, release, request_of, tag
from tests.sources.conftest import Repository
from tests.web.serving import a_run

from rocbase.errors import FetchError, InputError
from rocbase.files.atomic import sha256_bytes
from rocwheel_samples.trees import write_tree
from rocwright import flow
from rocwright.catalog.model import StackRow
from rocwright.follow.watch import projects as follow
from rocwright.follow.watch.bump import LockCandidate
from rocwright.follow.watch.undo import find_good, put_back
from rocwright.home import Home
from rocwright.plan.resolve.aliases import catalog_for
from rocwright.plan.resolve.files import read_lock, read_request, write_request
from rocwright.plan.resolve.folder import LOCK, PROJECT
from rocwright.plan.resolve.model import Lock, Request
from rocwright.plan.resolve.settings import WatchSettings
from rocwright.plan.resolve.tell_difference import tell_difference
from rocwright.project import Project
from rocwright.records.model import Finding
from rocwright.records.opening import open_records

SETTINGS = WatchSettings(cool_down=0)


class Field:
    """A project of two components, `hello` from a repository, and `user`, which needs it."""

    def __init__(self, folder: Path, home: Home, repository: Repository, other: Repository) -> None:
        self.folder, self.home, self.sources = folder, home, {"hello": repository, "user": other}
        for source in self.sources.values():
            tag(source, "v1.0.0", "2026-01-01")
        self.know(hello=("1.0.0",), user=("1.0.0",))
        self.ask()

    def know(self, **versions: tuple[str, ...]) -> None:
        parts = [
            component(
                name,
                *(release(one, {"git": self.sources[name].url, "tag": f"v{one}"}, **more) for one in known),
                kind="file",
            )
            for name, known in versions.items()
            for more in [{"needs": {"hello": "<1.1"}} if name == "user" else {}]
        ]
        self.catalog = catalog_of(*parts)

    def ask(self, **versions: str) -> None:
        write_request(self.folder / PROJECT, request_of(**versions))
        flow.lock(self.project, lambda _: None)

    @property
    def project(self) -> Project:
        request: Request = read_request(self.folder / PROJECT)
        path = self.folder
        catalog = catalog_for(request, self.catalog)
        return Project(request=request, lock_path=path / LOCK, output=path, home=self.home, catalog=catalog)

    def bump(self, *names: str, write: bool = False) -> LockCandidate:
        made = follow.bump(self.project, names, SETTINGS, lambda _: None)
        follow.put_candidate(self.project, made.lock, None, write=write)
        return made


def versions(lock: Lock) -> dict[str, str]:
    return {one.name: one.version for one in lock.components}


@pytest.fixture
def field(tmp_path: Path, home: Home, repository: Repository, other: Repository) -> Field:
    (tmp_path / "project").mkdir()
    return Field(tmp_path / "project", home, repository, other)


def test_what_is_new_becomes_a_candidate_beside_the_lock_and_is_told_in_words(
    field: Field, repository: Repository
) -> None:
    tag(repository, "v1.0.1", "2026-01-02")
    field.know(hello=("1.0.0", "1.0.1"), user=("1.0.0",))
    made = field.bump()
    age = made.ages["hello"]
    assert tell_difference(made.difference, ages=made.ages, again=made.again) == [
        f"hello 1.0.0 -> 1.0.1 (patch, {age} days old)",
        "1 step will run again: file/hello",
    ]
    before, after = (read_lock(field.folder / name) for name in (LOCK, f"{LOCK}.candidate"))
    assert versions(before) == {"hello": "1.0.0", "user": "1.0.0"}
    assert versions(after) == {"hello": "1.0.1", "user": "1.0.0"}
    assert before.components[1] == after.components[1]
    assert before.request == after.request


def test_a_release_that_the_catalog_does_not_know_is_pinned_like_one_that_it_knows(
    field: Field, repository: Repository
) -> None:
    tag(repository, "v1.0.1", "2026-01-02")
    made = field.bump(write=True)
    assert tell_difference(made.difference)[0] == "request: versions.hello 1.0.1 like 1.0.0 (new)"
    assert read_request(field.folder / PROJECT).versions == {"hello": "1.0.1 like 1.0.0"}
    there = read_lock(field.folder / LOCK, field.project.request)
    assert versions(there) == {"hello": "1.0.1", "user": "1.0.0"}
    assert flow.planned(field.project, there)


def test_a_dead_end_of_the_solver_is_explained_and_the_rest_is_taken(
    field: Field, repository: Repository, other: Repository
) -> None:
    tag(repository, "v1.1.0", "2026-01-02")
    tag(other, "v1.0.1", "2026-01-02")
    field.know(hello=("1.0.0", "1.1.0"), user=("1.0.0", "1.0.1"))
    made = field.bump()
    ((name, why),) = made.left
    assert (name, why.partition(":")[0]) == ("hello", "1.1.0")
    assert "needs hello <1.1" in why
    assert versions(made.lock) == {"hello": "1.0.0", "user": "1.0.1"}


def test_what_is_named_is_taken_alone_and_moves_the_pin_of_the_project_file(
    field: Field, repository: Repository, other: Repository
) -> None:
    for source in (repository, other):
        tag(source, "v1.0.1", "2026-01-02")
    field.know(hello=("1.0.0", "1.0.1"), user=("1.0.0", "1.0.1"))
    field.ask(hello="1.0.0", user="1.0.0")
    assert not field.bump().difference
    assert versions(field.bump("hello", write=True).lock) == {"hello": "1.0.1", "user": "1.0.0"}
    assert read_request(field.folder / PROJECT).versions["hello"] == "1.0.1"


def test_what_a_bump_takes_in_the_place_of_a_rows_version_stays_when_it_is_locked_again(
    field: Field, repository: Repository
) -> None:
    tag(repository, "v1.0.1", "2026-01-02")
    field.know(hello=("1.0.0", "1.0.1"), user=("1.0.0",))
    row = StackRow(gpu="gfx1151", base="debian:trixie", versions={"hello": "1.0.0"}, wish="x", holds="x")
    stack = field.catalog.stack("field").model_copy(update={"row": (row,)})
    field.catalog = replace(field.catalog, stacks={**field.catalog.stacks, "field": stack})
    field.ask()
    assert versions(read_lock(field.folder / LOCK)) == {"hello": "1.0.0", "user": "1.0.0"}
    assert versions(field.bump(write=True).lock) == {"hello": "1.0.1", "user": "1.0.0"}
    assert read_request(field.folder / PROJECT).versions == {"hello": "1.0.1"}
    assert versions(flow.lock(field.project, lambda _: None)) == {"hello": "1.0.1", "user": "1.0.0"}


def test_a_branch_that_is_followed_moves_its_commit_and_the_pin(field: Field, repository: Repository) -> None:
    now = repository.commit("file", "newer\n")
    settings = SETTINGS.model_copy(update={"branches": {"hello": "main"}})
    made = follow.bump(field.project, (), settings, lambda _: None)
    assert made.lock.components[0].commit == now
    assert made.lock.request.versions == {"hello": f"@{now}"}


def _record(field: Field, number: int, outcome: str, *findings: Finding) -> None:
    lock = read_lock(field.project.lock_path)
    text = lock.model_dump_json()
    request = lock.request
    run = a_run(
        f"run-{number}",
        started=f"2026-01-0{number}T00:00:00Z",
        stack=request.stack,
        gpu=request.gpu,
        base=request.base,
        variant=request.variant,
        outcome=outcome,
        lock=sha256_bytes(text.encode()),
    )
    with open_records(field.home) as records:
        records.put(run, lock=text, findings=findings)


def test_an_update_is_taken_back_to_the_last_good_lock_and_its_pins(
    field: Field, repository: Repository
) -> None:
    found = Finding(component="hello", check="runs", name="x", ok=True, machine="x86_64 Linux 5.0-old")
    _record(field, 1, "verified", found)
    was = field.project.lock_path.read_text()
    tag(repository, "v1.0.1", "2026-01-02")
    field.bump("hello", write=True)
    bumped = field.project.lock_path.read_text()
    assert bumped != was and field.project.request.versions
    _record(field, 2, "failed")
    with open_records(field.home) as records:
        good = find_good(field.project, read_lock(field.project.lock_path), records)
    assert (good.run.id, good.kernel) == ("run-1", "x86_64 Linux 5.0-old")
    assert any("1.0.1" in line and "1.0.0" in line for line in tell_difference(good.difference))
    kept = put_back(field.project, good)
    assert field.project.lock_path.read_text() == was and kept.read_text() == bumped
    assert field.project.request.versions == {}
    with open_records(field.home) as records, pytest.raises(InputError, match="ever good here"):
        find_good(field.project, read_lock(field.project.lock_path), records)


def test_an_alarm_ends_it_and_an_unknown_name_is_answered_with_the_nearest(
    field: Field, repository: Repository
) -> None:
    with pytest.raises(InputError, match="unknown part of the lock 'helo'"):
        field.bump("helo")
    tag(repository, "v1.0.0", "2026-01-02", "something else")
    with pytest.raises(FetchError, match="has moved: no candidate lock was written"):
        field.bump()


def test_by_the_command_cron_hears_nothing_until_there_is_news(
    tmp_path: Path, rocwright: Command, repository: Repository
) -> None:
    tag(repository, "v1.0.0", "2026-01-01")
    stack = 'name = "field"\nsummary = "x"\ncomponents = ["hello"]\nbases = ["debian:trixie"]\nsource = "x"\n'
    hello = (
        'name = "hello"\nsummary = "x"\nlicense = "MIT"\nkind = "file"\n[[release]]\nversion = "1.0.0"\n'
        f'source = "x"\nplaces = [{{ git = "{repository.url}", tag = "v1.0.0" }}]\n'
    )
    asked = 'stack = "field"\ngpu = ["gfx1151"]\nbase = "debian:trixie"\n[watch]\ncool-down = 0\n'
    write_tree(tmp_path / "catalog", {"stacks/field.toml": stack, "components/hello.toml": hello})
    write_tree(tmp_path / "project", {PROJECT: f"# mine\n{asked}"})
    env = {"ROCWRIGHT_CATALOG": str(tmp_path / "catalog")}
    assert rocwright("lock", env=env).returncode == 0
    silent = rocwright("watch", "--quiet", env=env)
    assert (silent.returncode, silent.stdout) == (0, "")
    tag(repository, "v1.0.1", "2026-01-02")
    told: dict[str, Any] = json.loads(rocwright("watch", "--json", "--exit-code", env=env).stdout)
    assert (told["exit_code"], told["news"][0]["pin"]) == (20, "1.0.1 like 1.0.0")
    assert "written to " in rocwright("bump", "--write", env=env).stdout
    assert (tmp_path / "project" / PROJECT).read_text().startswith("# mine\n")
    no_way_back = rocwright("bump", "--undo", env=env)
    assert no_way_back.returncode != 0 and "ever good here" in no_way_back.stderr
    tag(repository, "v1.0.1", "2026-01-03", "something else")
    alarm = rocwright("watch", "--quiet", env=env)
    assert alarm.returncode == 22
    assert alarm.stdout.startswith("ALARM: THE TAG V1.0.1 OF ")
