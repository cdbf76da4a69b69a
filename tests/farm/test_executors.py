"""Executors by name, and a build by one that another package brings."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples.project import make_sources, open_project, put_roots
from tests.conftest import Command

from rocbase.errors import InputError
from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import PlainProgress
from rocwright.farm.executors import GROUP, find_maker, names
from rocwright.farm.local import LocalExecutor
from rocwright.flow import build
from rocwright.home import Home

PLUGIN = """
from pathlib import Path
from tests.execution.serial_executor import SerialExecutor

def make(home, options, say):
    say("serial: begins")
    return SerialExecutor(Path({folder!r}))
"""


def install(folder: Path, package: str, entry: str) -> None:
    """A package that brings one executor, as pip leaves it."""
    info = folder / f"{package}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{entry}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with packages that Python finds."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_the_one_of_this_machine_is_always_there() -> None:
    assert names()[0] == "local"
    assert find_maker("local") is LocalExecutor


def test_a_build_runs_by_an_executor_that_another_package_brings(
    home: Home, engine: str, tiny_root: Path, site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    install(site, "rocwright-serial", "serial = rocwright_serial_plugin:make")
    (site / "rocwright_serial_plugin.py").write_text(PLUGIN.format(folder=str(elsewhere)))
    make_sources(tmp_path / "sources")
    project = open_project(tmp_path / "sources", home.path)
    put_roots(project, tiny_root)
    done = build(project, project.locked, BuildOptions(engine=engine, executor="serial"), PlainProgress())
    assert done.failures == ()
    assert len(done.artifacts) == 3
    assert "serial: begins" in capsys.readouterr().err
    assert len([*elsewhere.glob("*.json")]) >= len(done.run.steps)


def test_a_name_that_nobody_knows_is_told_with_those_that_are_installed(site: Path) -> None:
    install(site, "rocwright-serial", "serial = somewhere:make")
    with pytest.raises(InputError, match="there is no executor 'kubernetes'") as caught:
        find_maker("kubernetes")
    assert caught.value.cause == "installed: local, serial"


def test_a_name_that_nobody_knows_is_told_before_anything_runs(
    home: Home, tiny_root: Path, tmp_path: Path
) -> None:
    make_sources(tmp_path / "sources")
    project = open_project(tmp_path / "sources", home.path)
    with pytest.raises(InputError, match="there is no executor 'kubernetes'"):
        build(project, project.locked, BuildOptions(executor="kubernetes"), PlainProgress())
    assert not home.runs.exists()


def test_two_packages_with_the_same_name_are_both_named(site: Path) -> None:
    install(site, "one", "serial = one:make")
    install(site, "two", "serial = two:make")
    with pytest.raises(InputError, match="2 packages provide 'serial'") as caught:
        find_maker("serial")
    assert caught.value.cause == "one, two"


def test_an_executor_that_cannot_be_loaded_is_told_with_its_package(site: Path) -> None:
    install(site, "rocwright-broken", "broken = rocwright_is_not_there:make")
    with pytest.raises(InputError, match="'broken' of rocwright-broken cannot be loaded") as caught:
        find_maker("broken")
    assert caught.value.cause.startswith("ModuleNotFoundError: No module named 'rocwright_is_not_there'")


def test_the_command_takes_the_name_of_an_executor(rocwright: Command) -> None:
    assert "--executor NAME" in rocwright("build", "--help").stdout
