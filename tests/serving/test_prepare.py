"""The environment of a stack of wheels: made once, of exactly what the lock names."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from samples.project import TinyProject

from rocbase.errors import InputError
from rocwright.home import Home
from rocwright.model.architecture import Architecture
from rocwright.model.steps import FilePin, IndexOrigin
from rocwright.plan.resolve.model import LockedPython
from rocwright.plan.resolve.required import path_of
from rocwright.sandbox import probe_all
from rocwright.serving.asked import asked_for
from rocwright.serving.environments import Environment, remember, remembered
from rocwright.serving.prepare import locked_requirements, prepare
from rocwright.serving.wheels import check_makes_wheels
from rocwright.sources.bases.roots import remove_tree
from rocwright.sources.index import Resolved
from rocwright.store.local import LocalStore
from tests.engines import must_work
from tests.serving.wheel_stack import make_root, make_stack, wheel


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """One home folder for all: what they share is made once."""
    home = Home(tmp_path_factory.mktemp("wheels") / "home")
    home.path.mkdir()
    yield home
    remove_tree(home.path)


@pytest.fixture(scope="module")
def stack(home: Home, probed: Path, tmp_path_factory: pytest.TempPathFactory) -> TinyProject:
    shutil.copy(probed, home.probes)
    must_work({one.engine: one for one in probe_all(home.probes)}["bubblewrap"])
    folder = tmp_path_factory.mktemp("stack")
    return make_stack(home, folder, make_root(folder))


def prepared(project: TinyProject, *extra: str) -> tuple[Environment, list[str]]:
    said: list[str] = []
    return prepare(project, project.locked, said.append, extra=extra), said


def test_it_has_what_was_built_and_what_that_requires(stack: TinyProject) -> None:
    made, _ = prepared(stack)
    names = [one.filename for one in made.wheels]
    assert names == ["alpha-1.0-py3-none-any.whl", "helper-1.0-py3-none-any.whl"]
    inside = made.folder(stack.home) / "inside"
    assert {one.name for one in inside.glob("lib/python3*/site-packages/*.py")} == {"alpha.py", "helper.py"}
    assert (inside / "bin" / "alpha-says").read_text().startswith("#!/rocwright/bin/python")


def test_the_variables_of_the_card_and_of_the_recipe_are_in_it(stack: TinyProject) -> None:
    made, _ = prepared(stack)
    assert made.env == {"CARD_WANTS": "1", "ALPHA_SAYS": "as the recipe"}


def test_a_second_time_nothing_is_made(stack: TinyProject) -> None:
    first, _ = prepared(stack)
    place = first.folder(stack.home) / "inside"
    before = place.stat().st_ctime_ns
    second, said = prepared(stack)
    assert second == first
    assert place.stat().st_ctime_ns == before
    assert not said


def test_one_that_was_cut_short_is_made_again(stack: TinyProject) -> None:
    first, _ = prepared(stack)
    (first.folder(stack.home) / "environment.json").unlink()
    (stack.home.environments / ".making-x").mkdir()
    assert prepared(stack)[0] == first
    assert (first.folder(stack.home) / "environment.json").is_file()


class Index:
    """The package index, which is outside."""

    def __init__(self, store: LocalStore, folder: Path) -> None:
        self.store, self.folder, self.asked = store, folder, list[tuple[str, ...]]()

    def resolve(self, wanted: tuple[str, ...], *_: object) -> Resolved:
        self.asked.append(tuple(wanted))
        (self.folder / "two").mkdir(exist_ok=True)
        other = wheel(self.folder / "two", "alpha", "raise SystemExit('of the index')\n")
        return Resolved(
            wheels=(
                self.pin(wheel(self.folder, "more", "x = 1\n", "alpha"), "more", "1.0"),
                self.pin(other.rename(other.with_name("alpha-2.0-py3-none-any.whl")), "alpha", "2.0"),
            )
        )

    def pin(self, path: Path, project: str, version: str) -> FilePin:
        sha256, size = self.store.put_file(path)
        origin = IndexOrigin(project=project, version=version)
        return FilePin(filename=path.name, sha256=sha256, size=size, origin=origin)


def test_what_is_required_beside_is_locked_once(
    stack: TinyProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index(LocalStore(stack.home.store), tmp_path)
    monkeypatch.setattr("rocwright.sources.index.resolve", index.resolve)
    made, said = prepared(stack, "more")
    names = {one.filename for one in made.wheels}
    assert "more-1.0-py3-none-any.whl" in names
    # it requires what was built here: that must not come from an index as well
    assert "alpha-2.0-py3-none-any.whl" not in names
    path = path_of(stack.lock_path)
    assert [one["wanted"] for one in json.loads(path.read_text())] == [["more"]]
    assert prepared(stack, "more")[0] == made
    assert index.asked == [("more",)]
    assert prepared(stack)[0].key != made.key
    assert any("written to" in line for line in said)


def test_what_only_checks_install_gives_way_to_the_version_that_is_required(
    stack: TinyProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index(LocalStore(stack.home.store), tmp_path)
    newer = wheel(tmp_path, "helper", "word = 'newer'\n", version="2.0")
    found = Resolved(wheels=(index.pin(newer, "helper", "2.0"),))
    monkeypatch.setattr("rocwright.sources.index.resolve", lambda *_: found)
    made, _ = prepared(stack, "helper==2.0")
    names = [one.filename for one in made.wheels]
    assert names == ["alpha-1.0-py3-none-any.whl", "helper-2.0-py3-none-any.whl"]


def test_a_lock_of_requirements_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    lock = tmp_path / "rocwright.lock"
    path_of(lock).write_text("[1]")
    store = LocalStore(tmp_path / "store")
    with pytest.raises(InputError, match="cannot be read") as told:
        locked_requirements(lock, ("x",), "3.13", Architecture.X86_64, store, print)
    assert told.value.next_step.startswith("remove it")


def test_a_lock_that_was_made_is_taken_as_it_is(tmp_path: Path) -> None:
    lock = tmp_path / "rocwright.lock"
    kept = LockedPython(version="3.13", wanted=("a", "b"))
    path_of(lock).write_text(json.dumps([kept.model_dump(mode="json")]))
    store = LocalStore(tmp_path / "store")
    asked = (lock, ("b", "a"), "3.13", Architecture.X86_64, store, print)
    assert locked_requirements(*asked) == kept


def test_what_was_had_is_known_until_the_lock_is_another(stack: TinyProject) -> None:
    made, _ = prepared(stack)
    asked = asked_for(["tiny"])
    assert remembered(stack.home, asked) is None
    remember(stack.home, asked, stack.lock_path, made)
    assert remembered(stack.home, asked) == made
    assert remembered(stack.home, asked_for(["other"])) is None
    before = stack.lock_path.read_text()
    stack.lock_path.write_text(before + "\n")
    assert remembered(stack.home, asked) is None
    stack.lock_path.write_text(before)


def test_what_was_had_is_not_known_when_it_is_gone(stack: TinyProject) -> None:
    made, _ = prepared(stack)
    asked = asked_for(["tiny"])
    remember(stack.home, asked, stack.lock_path, made)
    about = made.folder(stack.home) / "environment.json"
    before = about.read_text()
    about.write_text("{")
    assert remembered(stack.home, asked) is None
    about.write_text(before)


def test_a_catalog_that_changed_is_another_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(tmp_path))
    (tmp_path / "targets.toml").write_text("")
    before = asked_for(["tiny"])
    assert asked_for(["tiny"]) == before
    (tmp_path / "targets.toml").write_text("# more")
    assert asked_for(["tiny"]) != before


def test_a_stack_without_wheels_is_refused(stack: TinyProject) -> None:
    check_makes_wheels(stack)
    component = stack.catalog.components["alpha"].model_copy(update={"kind": "archive"})
    catalog = replace(stack.catalog, components={"alpha": component})
    with pytest.raises(InputError, match="makes no wheels"):
        check_makes_wheels(replace(stack, catalog=catalog))
