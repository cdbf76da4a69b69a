"""Wheels that others published: planned as a fetch, checked, installed, one of each project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.execution.test_install import make_wheel
from tests.making import lock_of, record_of

from rocbase.errors import CheckError
from rocwright.execution.install import install, installed
from rocwright.home import Home
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project, published_wheels
from rocwright.store.model import Output
from rocwright.verify.run import verify

TORCH, TUNER = "pytorch-wheels", "bitsandbytes"


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    return tmp_path / "env"


def fetched(tmp_path: Path, home: Home, **wheels: list[Path]) -> tuple[Project, Lock]:
    """The stack bitsandbytes, as if these wheels had been fetched for its components."""
    lock = lock_of("bitsandbytes")
    project = Project(request=lock.request, lock_path=tmp_path / "lock", output=tmp_path / "out", home=home)
    for step in make_plan(lock, project.catalog).steps:
        outputs = []
        for wheel in wheels.get(step.component.replace("-", "_"), ()):
            digest, size = project.store.put_file(wheel)
            outputs.append(Output(name=wheel.name, filename=wheel.name, sha256=digest, size=size))
        project.store.put_record(record_of(step, *outputs))
    return project, lock


def test_nothing_is_built() -> None:
    lock = lock_of("bitsandbytes")
    plan = make_plan(lock, Project(request=lock.request, lock_path=Path(), output=Path()).catalog)
    assert [(one.name, one.kind) for one in plan.steps] == [
        ("packages/check", "fetch"),
        ("root/check", "base"),
        (f"wheels/{TORCH}", "fetch"),
        (f"wheels/{TUNER}", "fetch"),
    ]
    assert plan.artifacts == (f"wheels/{TORCH}", f"wheels/{TUNER}")


def test_they_are_installed_and_the_first_component_that_brings_a_project_has_it(
    environment: Path, tmp_path: Path, home: Home
) -> None:
    (tmp_path / "later").mkdir()
    torch = [make_wheel(tmp_path, "torch", "2.13.0"), make_wheel(tmp_path, "helper", "1.0")]
    tuner = [make_wheel(tmp_path, "bitsandbytes", "0.50.2"), make_wheel(tmp_path / "later", "helper", "2.0")]
    project, lock = fetched(tmp_path, home, pytorch_wheels=torch, bitsandbytes=tuner)
    assert [len(one) for one in published_wheels(project, make_plan(lock, project.catalog)).values()] == [
        2,
        2,
    ]
    install(project, lock, environment, lambda _: None)
    assert installed(environment / "bin/python") == {
        "torch": "2.13.0", "helper": "1.0", "bitsandbytes": "0.50.2",
    }  # fmt: skip


def test_a_package_that_does_not_import_is_refused_by_the_guard(
    environment: Path, tmp_path: Path, home: Home
) -> None:
    torch = [make_wheel(tmp_path, "torch", "2.13.0")]
    tuner = [make_wheel(tmp_path, "bitsandbytes", "0.50.2", code="raise ImportError('no library')")]
    project, lock = fetched(tmp_path, home, pytorch_wheels=torch, bitsandbytes=tuner)
    with pytest.raises(CheckError):
        install(project, lock, environment, lambda _: None)


def test_their_checks_are_evidence(tmp_path: Path, home: Home) -> None:
    torch = [make_wheel(tmp_path, "torch", "2.13.0")]
    tuner = [make_wheel(tmp_path, "bitsandbytes", "0.50.2")]
    project, lock = fetched(tmp_path, home, pytorch_wheels=torch, bitsandbytes=tuner)
    found = verify(project, lock, None, lambda _: None)
    assert [(one.component, one.check, one.ok) for one in found] == [
        (TORCH, "check-gpu", False),
        (TUNER, "check-gpu", False),
    ]
    assert "no wheel amd-torch-device-gfx1151" in found[0].detail
