"""What becomes of remedies when the lock is made anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rocbase.errors import ConflictError, InputError
from rocwright.catalog import issue as issues
from rocwright.catalog.issue import ErrorLines, FixedIn, the_issues
from rocwright.catalog.load import builtin_catalog
from rocwright.cli import cli
from rocwright.doctor.remedies.trail import needless
from rocwright.flow import lock
from rocwright.home import Home
from rocwright.plan.make import make_plan
from rocwright.plan.resolve import network
from rocwright.plan.resolve.files import read_lock, write_lock
from rocwright.plan.resolve.model import Lock
from rocwright.plan.resolve.upstream import OfflineUpstream
from rocwright.project import Project, project_of
from tests.making import lock_of
from tests.plan.test_remedies import action, mended, remedy


class NoNetwork(OfflineUpstream):
    """Stands where the world outside is asked."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()

    def __enter__(self) -> NoNetwork:
        return self

    def __exit__(self, *_: object) -> None: ...


def test_a_lock_made_anew_keeps_its_remedies_unless_they_are_to_be_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "NetworkUpstream", NoNetwork)
    before = mended(
        lock_of("llama-vulkan", "gfx1151", base="debian:sid"),
        remedy("llama.cpp", action(kind="set", variables={"A": "1"}), outcome="helped"),
        remedy("llama.cpp", action(kind="packages", names=["python-headers"]), outcome="helped"),
        remedy("gone", action(kind="packages", names=["pybind11"]), outcome="helped"),
    )
    path = tmp_path / "rocwright.lock"
    write_lock(path, before)
    project = Project(request=before.request, lock_path=path, output=tmp_path, home=Home(tmp_path))
    made = lock(project, lambda _: None)
    assert made.remedies == before.remedies[:2], "one for what the lock has no more is dropped"
    assert wanted(made) > wanted(before), "a remedy's packages are asked for"
    assert read_lock(path).remedies == made.remedies
    make_plan(made, builtin_catalog())
    plain = lock(project, lambda _: None, forget=True)
    assert plain.remedies == ()
    assert wanted(plain) == wanted(before)


def test_a_remedy_that_no_lock_can_have_any_more_is_told_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "NetworkUpstream", NoNetwork)
    before = mended(
        lock_of("llama-vulkan", "gfx1151", base="debian:sid"),
        remedy("llama.cpp", action(kind="version", component="llama.cpp", versions="<0")),
    )
    path = tmp_path / "rocwright.lock"
    write_lock(path, before)
    project = Project(request=before.request, lock_path=path, output=tmp_path, home=Home(tmp_path))
    with pytest.raises(ConflictError) as error:
        lock(project, lambda _: None)
    assert "rocwright lock --forget-remedies" in error.value.next_step
    assert read_lock(path) == before, "the old lock stays"


def test_what_a_forgotten_remedy_chose_is_chosen_anew_by_the_command_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path)
    monkeypatch.setenv("ROCWRIGHT_HOME", str(home.path))
    words = ("llama-vulkan", "--gpu", "gfx1151", "--base", "debian:sid")
    before = mended(
        lock_of("llama-vulkan", "gfx1151", base="debian:sid"),
        remedy("llama.cpp", action(kind="packages", names=["python-headers"]), outcome="helped"),
    )
    write_lock(project_of(before.request, tmp_path, home).lock_path, before)
    done = CliRunner().invoke(cli, ["heal", *words, "--forget", before.remedies[0].issue])
    assert done.exit_code == 0, done.output
    assert f"\n  rocwright lock {' '.join(words)}\n" in done.stderr
    assert "adds python-headers to the packages that builds have" in done.stderr


def test_where_nothing_is_locked_yet_heal_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(tmp_path))
    done = CliRunner().invoke(cli, ["heal", "llama-vulkan", "--gpu", "gfx1151", "--base", "debian:sid"])
    assert isinstance(done.exception, InputError)
    assert done.exception.next_step == "rocwright build llama-vulkan --gpu gfx1151 --base debian:sid"


def wanted(made: Lock) -> set[str]:
    root = made.root("build")
    assert root is not None
    return set(root.wanted)


def test_a_remedy_for_what_a_version_has_no_more_is_told_as_needless(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = lock_of("torch-extensions", "gfx803")
    edit = {"file": "a.c", "include": "<cstdint>", "absorbed": ">0", "why": "it is missing"}
    absorbed = remedy("torchvision", action(kind="edit", component="torchvision", edit=edit))
    assert needless(absorbed, lock) == "upstream may contain this edit since >0"
    assert needless(absorbed.model_copy(update={"outcome": "useless"}), lock) == ""
    plain = remedy("torchvision", action(kind="set", variables={"A": "1"}))
    assert needless(plain, lock) == ""
    known = FixedIn(component="torchvision", versions=">0", source="its notes")
    issue = the_issues()[0]["cmake-minimum"].model_copy(update={"fixed_in": (known,)})
    monkeypatch.setattr(issues, "_the_issues", lambda _: ({"an-issue": issue}, ErrorLines()))
    assert needless(plain, lock) == "torchvision >0 has it fixed: its notes"
