"""The facade from a request to a plan: names as people say them, paths as text, a lock that comes along."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from rocwheel.errors import InputError
from rocwright import api
from rocwright.catalog.load import the_catalog
from rocwright.machine.architecture import host_architecture
from rocwright.model.architecture import Architecture
from rocwright.plan.decide import State
from rocwright.resolve.shipped import rows


def test_a_request_has_targets_in_the_place_of_names() -> None:
    asked = api.request("gfx-smoke", ["RX 580, strixhalo", "gfx803"], "debian:sid", versions={"x": "1"})
    assert (asked.gpu, asked.base, asked.versions) == (("gfx803", "gfx1151"), "debian:sid", {"x": "1"})
    assert api.request("gfx-smoke", "1002:67df", "debian:sid").gpu == ("gfx803",)


def test_the_base_where_none_is_named_is_that_of_the_row_for_the_gpu() -> None:
    for stack, row in rows(the_catalog()):
        first = next(one for one in stack.row if one.gpu == row.gpu)
        assert api.request(stack.name, row.gpu).base == first.base
    several = api.request("gfx-smoke", ["gfx803", "gfx1151"])
    assert several.base == the_catalog().stack("gfx-smoke").bases[0]


def test_the_architecture_where_none_is_named_is_that_of_this_machine() -> None:
    assert api.request("gfx-smoke", "gfx803").architecture is host_architecture()
    asked = api.project("gfx-smoke", "gfx803", architecture="aarch64").request
    assert asked.architecture is Architecture.AARCH64
    with pytest.raises(InputError, match="'sparc' is not an architecture"):
        api.request("gfx-smoke", "gfx803", architecture="sparc")


@pytest.mark.parametrize(
    ("stack", "gpu", "said"),
    [
        ("gfx-smok", "gfx803", "unknown stack"),
        ("gfx-smoke", "RTX 4090", "another maker"),
        ("gfx-smoke", "strix", "more than one target"),
    ],
)
def test_what_is_not_known_is_refused(stack: str, gpu: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        api.request(stack, gpu)


def test_a_project_lies_where_it_is_told(tmp_path: Path) -> None:
    here = api.project("gfx-smoke", "RX 580", folder=str(tmp_path / "here"), home=str(tmp_path / "state"))
    assert here.output == tmp_path / "here" / "rocwright-out"
    assert here.lock_path.is_relative_to(tmp_path / "state")
    with pytest.raises(InputError, match=r"no rocwright\.toml"):
        api.project(folder=tmp_path)
    (tmp_path / "rocwright.toml").write_text('stack = "gfx-smoke"\ngpu = ["780M"]\nbase = "debian:sid"\n')
    assert api.project(folder=tmp_path).request.gpu == ("gfx1103",)


def test_the_lock_that_comes_along_is_planned_and_exported_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("rocwright.resolve.network.NetworkUpstream")
    told: list[str] = []
    project = api.project("gfx-smoke", "Strix Halo", "debian:sid", folder=tmp_path)
    locked = api.lock(project, say=told.append)
    assert "comes with rocwright" in told[0]
    assert not project.lock_path.exists()
    assert {one.state for one in api.plan(project, locked)} == {State.RUN}
    assert [one.step.key for one in api.plan(project)] == [one.step.key for one in api.plan(project, locked)]
    files = api.export(project, "requirements", str(tmp_path / "out"))
    assert files
    assert all(path.is_relative_to(tmp_path / "out") for path in files)
    with pytest.raises(InputError, match="no format"):
        api.export(project, "floppy", tmp_path / "no")


def test_a_log_is_diagnosed_by_its_path(tmp_path: Path) -> None:
    log = tmp_path / "build.log.gz"
    line = "  Compatibility with CMake < 3.5 has been removed from CMake.\n"
    log.write_bytes(gzip.compress(f"CMake Error at CMakeLists.txt:1:\n{line}".encode()))
    found = api.diagnose(str(log), component="pytorch", gpu="RX 580")
    assert [one.issue.name for one in found.known] == ["cmake-minimum"]


def test_another_machines_folder_is_examined(tmp_path: Path) -> None:
    report = api.doctor("gfx-smoke", root=str(tmp_path))
    assert report.machine.gpus == ()
    with pytest.raises(InputError, match="is not in this machine"):
        api.doctor(gpu="RX 580", root=tmp_path)
