"""Wheels into somebody's own environment: one working copy of what they need stays."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.guards.conftest import copy_of_torch
from tests.making import lock_of, record_of

from rocbase.errors import CheckError, ConflictError, InputError
from rocwright.execution.install import check_versions, environment_python, install, installed, read_wheel
from rocwright.home import Home
from rocwright.model.steps import Plan
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project
from rocwright.store.model import Output


def make_wheel(folder: Path, name: str, version: str, *needs: str, code: str = "") -> Path:
    """A wheel with one module."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    said = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    said += "".join(f"Requires-Dist: {one}\n" for one in needs)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/__init__.py", code)
        archive.writestr(f"{info}/METADATA", said)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(
            f"{info}/RECORD", f"{name}/__init__.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
        )
    return path


def plain_wheels(folder: Path) -> tuple[Path, Path]:
    """Wheels that say nothing of torch."""
    return make_wheel(folder, "torchvision", "0.21.0"), make_wheel(folder, "torchaudio", "2.6.0")


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment without pip, as thin as they come."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    return tmp_path / "env"


def site(environment: Path) -> Path:
    return next((environment / "lib").glob("python3.*")) / "site-packages"


Build = Callable[..., "tuple[Project, Lock]"]


@pytest.fixture
def built(tmp_path: Path, home: Home) -> Build:
    """The stack torch-extensions, as if these wheels had been built."""

    def make(*wheels: Path) -> tuple[Project, Lock]:
        lock = lock_of("torch-extensions")
        project = Project(
            request=lock.request, lock_path=tmp_path / "lock", output=tmp_path / "out", home=home
        )
        plan: Plan = make_plan(lock, project.catalog)
        for step in plan.steps:
            if step.name not in plan.artifacts:
                continue
            (wheel,) = [one for one in wheels if one.name.startswith(step.name)]
            digest, size = project.store.put_file(wheel)
            output = Output(name="wheel", filename=wheel.name, sha256=digest, size=size)
            project.store.put_record(record_of(step, output))
        return project, lock

    return make


def test_wheels_go_in_beside_the_torch_that_they_were_built_for(
    environment: Path, built: Build, tmp_path: Path
) -> None:
    copy_of_torch(site(environment), "2.6.0", installed_by="pip")
    project, lock = built(
        make_wheel(tmp_path, "torchvision", "0.21.0", "torch==2.6.0"),
        make_wheel(tmp_path, "torchaudio", "2.6.0", "torch==2.6.0"),
    )
    said: list[str] = []
    wheels = install(project, lock, environment, said.append)
    assert sorted(one.name for one in wheels) == ["torchaudio", "torchvision"]
    assert installed(environment / "bin/python") == {
        "torch": "2.6.0", "torchvision": "0.21.0", "torchaudio": "2.6.0",
    }  # fmt: skip
    assert any("guard: one torch" in line for line in said)
    bills = site(environment).glob("*.dist-info/sboms/rocwright.cdx.json")
    assert len(list(bills)) == 2


def test_another_torch_is_a_conflict_and_nothing_is_installed(
    environment: Path, built: Build, tmp_path: Path
) -> None:
    copy_of_torch(site(environment), "2.13.0", installed_by="pip")
    project, lock = built(
        make_wheel(tmp_path, "torchvision", "0.21.0", "torch==2.6.0"),
        make_wheel(tmp_path, "torchaudio", "2.6.0"),
    )
    with pytest.raises(ConflictError, match="do not fit the packages in") as caught:
        install(project, lock, environment, lambda _: None)
    assert "torchvision 0.21.0 needs torch==2.6.0; there is 2.13.0" in caught.value.cause
    assert installed(environment / "bin/python") == {"torch": "2.13.0"}


def test_a_second_copy_of_torch_stops_before_anything_is_installed(
    environment: Path, built: Build, tmp_path: Path
) -> None:
    copy_of_torch(site(environment), "2.6.0", installed_by="pip")
    copy_of_torch(tmp_path / "elsewhere", "2.5.0")
    (site(environment) / "more.pth").write_text(f"{tmp_path / 'elsewhere'}\n")
    project, lock = built(
        make_wheel(tmp_path, "torchvision", "0.21.0"), make_wheel(tmp_path, "torchaudio", "2.6.0")
    )
    with pytest.raises(CheckError) as caught:
        install(project, lock, environment, lambda _: None)
    assert "more.pth" in caught.value.detail
    assert installed(environment / "bin/python") == {"torch": "2.6.0"}


def test_a_torch_that_does_not_import_is_shown_with_its_first_traceback(
    environment: Path, built: Build, tmp_path: Path
) -> None:
    copy_of_torch(
        site(environment), "2.6.0", init="raise OSError('libamdhip64.so.6 is missing')\n", installed_by="pip"
    )
    project, lock = built(
        make_wheel(tmp_path, "torchvision", "0.21.0"), make_wheel(tmp_path, "torchaudio", "2.6.0")
    )
    with pytest.raises(CheckError) as caught:
        install(project, lock, environment, lambda _: None)
    assert "libamdhip64.so.6 is missing" in caught.value.detail


def test_a_wheel_whose_requirements_are_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="METADATA of odd-1-py3-none-any"):
        read_wheel(make_wheel(tmp_path, "odd", "1", "!!!"))


def test_a_source_distribution_is_refused_and_nothing_of_it_runs(
    environment: Path, home: Home, tmp_path: Path
) -> None:
    """pip would run its setup.py on the host, as the user."""
    marker, sdist = tmp_path / "ran", tmp_path / "evil-1.tar.gz"
    (tmp_path / "setup.py").write_text(f"open({str(marker)!r}, 'w')\n")
    with tarfile.open(sdist, "w:gz") as tar:
        tar.add(tmp_path / "setup.py", "evil-1/setup.py")
    lock = lock_of("pytorch-wheels")
    project = Project(request=lock.request, lock_path=tmp_path / "lock", output=tmp_path / "out", home=home)
    digest, size = project.store.put_file(sdist)
    output = Output(name="wheel", filename=sdist.name, sha256=digest, size=size)
    plan = make_plan(lock, project.catalog)
    project.store.put_record(record_of({one.name: one for one in plan.steps}[plan.artifacts[0]], output))
    with pytest.raises(InputError, match="is not a wheel"):
        install(project, lock, environment, lambda _: None)
    assert not marker.exists()


def test_a_folder_that_is_no_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a virtual environment"):
        environment_python(tmp_path)


def test_requirements_of_other_systems_and_of_what_is_not_guarded_do_not_count(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, "it", "1", 'torch==1; sys_platform == "win32"', "numpy>=99")
    check_versions([read_wheel(path)], {"torch": "2.6.0"}, ("torch",), tmp_path)
