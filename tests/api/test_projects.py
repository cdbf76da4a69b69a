"""The facade from a request to a plan: names as people say them, paths as text, a lock that comes along."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, Self

import pytest

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwright import api
from rocwright.catalog.load import the_catalog
from rocwright.model.architecture import Architecture, host_architecture
from rocwright.plan.decide import State
from rocwright.plan.resolve.lock import versions_in
from rocwright.plan.resolve.shipped import rows
from rocwright.plan.resolve.upstream import OfflineUpstream


def test_a_request_has_targets_in_the_place_of_names() -> None:
    asked = api.request("gfx-smoke", ["RX 580, strixhalo", "gfx803"], "debian:sid", versions={"x": "1"})
    assert (asked.gpu, asked.base, asked.versions) == (("gfx803", "gfx1151"), "debian:sid", {"x": "1"})
    assert api.request("gfx-smoke", "1002:67df", "debian:sid").gpu == ("gfx803",)


def test_the_base_where_none_is_named_is_that_of_a_row_for_the_gpu_unless_the_row_goes_without() -> None:
    for stack, row in rows(the_catalog()):
        whole = [one.base for one in stack.row if one.gpu == row.gpu and not one.accept_missing]
        name = f"{stack.name}:built" if stack.origins else stack.name
        assert api.request(name, row.gpu).base in (whole or stack.bases)
    several = api.request("gfx-smoke", ["gfx803", "gfx1151"])
    assert several.base == the_catalog().stack("gfx-smoke").bases[0]


def test_the_architecture_where_none_is_named_is_that_of_this_machine() -> None:
    assert api.request("gfx-smoke", "gfx803").architecture is host_architecture()
    asked = api.project("gfx-smoke", "gfx803", architecture="aarch64").request
    assert asked.architecture is Architecture.AARCH64
    with pytest.raises(InputError, match="'sparc' is not an architecture"):
        api.request("gfx-smoke", "gfx803", architecture="sparc")


@each(
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
    monkeypatch.delattr("rocwright.plan.resolve.network.NetworkUpstream")
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


class OutsideOffline(OfflineUpstream):
    """In the place of the network: answers as the catalog says."""

    def __init__(self, *_: object, architecture: Architecture, **__: object) -> None:
        super().__init__(architecture)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


FIRST = {
    (stack.name, row.gpu, row.base, row.extra, row.accept_missing): row
    for stack, row in reversed([*rows(the_catalog())])
}


@pytest.mark.parametrize(("stack", "gpu", "base", "extra", "without"), FIRST)
def test_a_lock_without_versions_has_those_that_the_plan_of_its_row_shows(
    stack: str,
    gpu: str,
    base: str,
    extra: tuple[str, ...],
    without: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rocwright.plan.resolve.network.NetworkUpstream", OutsideOffline)
    project = api.project(
        stack,
        gpu,
        base,
        extra=extra,
        accept_missing=without,
        architecture="x86_64",
        folder=tmp_path,
        home=tmp_path,
    )
    planned = api.lock(project)
    assert not project.lock_path.exists()
    locked = api.resolve(project)
    assert versions_in(locked) == versions_in(planned)
    keys = [{one.step.key for one in api.plan(project, lock)} for lock in (planned, locked)]
    assert keys[0] == keys[1]


def test_what_the_user_pins_goes_before_the_versions_of_the_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocwright.plan.resolve.network.NetworkUpstream", OutsideOffline)
    asked: dict[str, Any] = {"architecture": "x86_64", "folder": tmp_path, "home": tmp_path}
    pinned = api.project("ollama", "gfx1151", "debian:trixie", versions={"ollama": "0.32.15"}, **asked)
    assert api.resolve(pinned).versions["ollama"] == "0.32.15"


@pytest.mark.parametrize(
    ("gpu", "base", "extra"),
    [("gfx1103", "arch:2025-10-28", ("triton",)), ("gfx908", "debian:sid", ())],
)
def test_what_no_row_is_of_is_planned_without_a_network_and_says_what_its_versions_are(
    gpu: str, base: str, extra: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("rocwright.plan.resolve.network.NetworkUpstream")
    project = api.project(
        "pytorch", gpu, base, extra=extra, architecture="x86_64", folder=tmp_path, home=tmp_path
    )
    told: list[str] = []
    locked = api.lock(project, network=False, say=told.append)
    assert locked.pending
    assert "those seen when the catalog was written" in told[0]
    assert "pytorch" in [one.step.name for one in api.plan(project)]
    assert locked.python is not None
    assert {*extra} <= {one.partition("==")[0] for one in locked.python.wanted}
    assert not project.lock_path.exists()
    if extra:
        row = api.lock(api.project("pytorch", gpu, base, architecture="x86_64", home=tmp_path))
        assert row.versions.items() <= locked.versions.items()
