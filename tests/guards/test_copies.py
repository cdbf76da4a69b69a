"""Every way in which a second torch comes to be found is named, with what put it there and what to do."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rocbase import errors
from tests.guards.conftest import Place, copy_of_torch, source_tree_of_torch


def ways(found: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [(copy["path"], copy["from"], copy["wins"]) for copy in found["copies"]]


def test_one_installed_copy_passes(place: Place) -> None:
    copy_of_torch(place.site, "2.6.0", installed_by="pip")
    done = place.guard()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"torch 2.6.0: one copy, {place.site}/torch\n"


def test_a_source_tree_in_the_working_directory_is_told_as_a_page(place: Place) -> None:
    source_tree_of_torch(place.workdir, "2.6.0a0")
    copy_of_torch(place.site, "2.6.0", installed_by="pip")
    done = place.guard()
    assert done.returncode == 12
    lines = done.stdout.splitlines()
    assert lines[0] == "error[check] torch can be imported from 2 places"
    assert lines[1].split("   ")[0].strip() == f"{place.workdir}/torch"
    assert "2.6.0a0 (source tree, no compiled _C)   working directory" in lines[1]
    assert lines[1].endswith("<- wins")
    assert lines[2].split() == [f"{place.site}/torch", "2.6.0", "site-packages,", "installed", "by", "pip"]
    assert lines[3].startswith(f"  cause  Python takes {place.workdir}/torch, which has no compiled _C")
    elsewhere = f"run the step in another directory, or remove {place.workdir}/torch"
    assert lines[4] == f"  next   keep {place.site}/torch; {elsewhere}"


def test_the_working_directory_does_not_count_where_python_leaves_it_out(place: Place) -> None:
    source_tree_of_torch(place.workdir, "2.6.0a0")
    copy_of_torch(place.site, "2.6.0", installed_by="pip")
    assert len(place.found(env={"PYTHONSAFEPATH": "1"})["copies"]) == 1


def test_pythonpath_is_named(place: Place, tmp_path: Path) -> None:
    copy_of_torch(tmp_path / "old", "2.5.1")
    copy_of_torch(place.site, "2.6.0", installed_by="pip")
    found = place.found(env={"PYTHONPATH": f"{tmp_path}/none:{tmp_path}/old"})
    assert ways(found)[0] == (f"{tmp_path}/old/torch", "PYTHONPATH", True)
    assert f"take {tmp_path}/old off PYTHONPATH" in found["errors"][0]["next"]


def test_the_working_directory_on_pythonpath_is_one_copy_with_both_reasons(place: Place) -> None:
    copy_of_torch(place.workdir, "2.5.1")
    found = place.found(env={"PYTHONPATH": str(place.workdir)})
    assert ways(found) == [(f"{place.workdir}/torch", "working directory and PYTHONPATH", True)]


def test_the_user_site_is_named_and_can_be_turned_off(place: Place) -> None:
    copy_of_torch(place.user_site, "2.5.1", installed_by="pip")
    copy_of_torch(place.site, "2.6.0", installed_by="pip")
    found = place.found()
    assert (f"{place.user_site}/torch", "user site, installed by pip", False) in ways(found)
    assert "PYTHONNOUSERSITE=1" in found["errors"][0]["next"]
    assert place.found(env={"PYTHONNOUSERSITE": "1"})["errors"] == []


def test_a_pth_line_is_named_by_file_and_line(place: Place, tmp_path: Path) -> None:
    copy_of_torch(place.site, "2.6.0", installed_by="pip")
    copy_of_torch(tmp_path / "other", "2.5.1")
    (place.site / "mine.pth").write_text(f"# a comment\n\n{tmp_path}/other\n")
    found = place.found()
    assert ways(found)[1] == (f"{tmp_path}/other/torch", "mine.pth line 3", False)
    assert f"remove line 3 of {place.site}/mine.pth" in found["errors"][0]["next"]


def test_a_pth_line_that_runs_code_is_named(place: Place, tmp_path: Path) -> None:
    copy_of_torch(place.site, "2.6.0", installed_by="pip")
    copy_of_torch(tmp_path / "other", "2.5.1")
    (place.site / "first.pth").write_text(f"import sys; sys.path.insert(0, '{tmp_path}/other')\n")
    assert ways(place.found())[0] == (f"{tmp_path}/other/torch", "first.pth line 1", True)


def test_what_sitecustomize_adds_is_told_as_added_at_start_up(place: Place, tmp_path: Path) -> None:
    copy_of_torch(place.site, "2.6.0", installed_by="pip")
    copy_of_torch(tmp_path / "other", "2.5.1")
    # Debian's own Python has a sitecustomize in its library, which is found first
    taken = (
        subprocess.run([sys.executable, "-I", "-c", "import sitecustomize"], capture_output=True).returncode
        == 0
    )
    name = "usercustomize" if taken else "sitecustomize"
    (place.site / f"{name}.py").write_text(f"import sys\nsys.path.append('{tmp_path}/other')\n")
    assert ways(place.found())[1][1].startswith("added at start-up")


def editable_install(place: Place, tree: Path, mode: str) -> None:
    """What setuptools itself makes for `pip install -e`, unpacked as pip unpacks it."""
    (tree / "setup.py").write_text(
        "from setuptools import setup\nsetup(name='torch', version='2.7.0', packages=['torch'])\n"
    )
    build = f"from setuptools import build_meta as b; b.build_editable('out', {{'editable_mode': '{mode}'}})"
    subprocess.run([sys.executable, "-c", build], cwd=tree, check=True, capture_output=True)
    with zipfile.ZipFile(next((tree / "out").glob("*.whl"))) as wheel:
        wheel.extractall(place.site)


def test_an_editable_install_by_finder_is_named(place: Place, tmp_path: Path) -> None:
    copy_of_torch(tmp_path / "checkout", "2.7.0")
    editable_install(place, tmp_path / "checkout", "lenient")
    found = place.found()
    assert found["errors"] == []
    (way,) = ways(found)
    assert way == (
        f"{tmp_path}/checkout/torch",
        "editable install of torch (__editable__.torch-2.7.0.pth line 1)",
        True,
    )


def test_an_editable_install_beside_another_copy_is_told(place: Place, tmp_path: Path) -> None:
    copy_of_torch(tmp_path / "checkout", "2.7.0")
    editable_install(place, tmp_path / "checkout", "lenient")
    copy_of_torch(place.workdir, "2.6.0")
    found = place.found()
    assert [wins for _, _, wins in ways(found)] == [True, False]
    assert found["startup_lines"][0]["file"] == "__editable__.torch-2.7.0.pth"
    assert f"keep {tmp_path}/checkout/torch" in found["errors"][0]["next"]


def test_an_editable_install_by_path_is_named(place: Place, tmp_path: Path) -> None:
    copy_of_torch(tmp_path / "checkout", "2.7.0")
    (place.site / "__editable__.torch-2.7.0.pth").write_text(f"{tmp_path}/checkout\n")
    assert ways(place.found())[0][1] == "editable install of torch (__editable__.torch-2.7.0.pth line 1)"


def test_a_development_install_by_egg_link_is_named(place: Place, tmp_path: Path) -> None:
    copy_of_torch(tmp_path / "checkout", "2.7.0")
    (place.site / "torch.egg-link").write_text(f"{tmp_path}/checkout\n.")
    (place.site / "easy-install.pth").write_text(f"{tmp_path}/checkout\n")
    assert ways(place.found())[0][1] == "editable install of torch (easy-install.pth line 1)"


def test_a_package_in_a_zip_file_is_a_copy(place: Place, tmp_path: Path) -> None:
    copy_of_torch(place.site, "2.6.0", installed_by="pip")
    with zipfile.ZipFile(tmp_path / "old.zip", "w") as archive:
        archive.writestr("torch/__init__.py", "__version__ = '1.13'\n")
    (first, _) = place.found(env={"PYTHONPATH": f"{tmp_path}/old.zip"})["copies"]
    assert (first["path"], first["version"], first["state"]) == (
        f"{tmp_path}/old.zip/torch",
        "1.13",
        "in a zip file",
    )


@pytest.mark.parametrize("name", ["torch.py", "torch.so", "torch.abi3.so"])
def test_a_single_file_of_that_name_is_a_copy(place: Place, name: str) -> None:
    copy_of_torch(place.site, "2.6.0", installed_by="pip")
    (place.workdir / name).touch()
    assert ways(place.found())[0] == (f"{place.workdir}/{name}", "working directory", True)


def test_a_folder_of_data_does_not_count_where_python_passes_over_it(place: Place) -> None:
    copy_of_torch(place.site, "2.6.0", installed_by="pip")
    (place.workdir / "torch").mkdir()
    (place.workdir / "torch/weights.bin").touch()
    found = place.found()
    assert found["errors"] == []
    assert [ignored["path"] for ignored in found["ignored"]] == [f"{place.workdir}/torch"]


def test_a_folder_of_data_counts_where_it_hides_an_editable_install(place: Place, tmp_path: Path) -> None:
    copy_of_torch(tmp_path / "checkout", "2.7.0")
    editable_install(place, tmp_path / "checkout", "lenient")
    (place.workdir / "torch").mkdir()
    assert place.run("-c", "import torch; print(torch.__file__)").stdout == "None\n"
    found = place.found()
    assert ways(found)[0] == (f"{place.workdir}/torch", "working directory", True)
    assert "has no __init__.py and so is empty" in found["errors"][0]["cause"]


def test_a_folder_of_data_alone_is_no_torch(place: Place) -> None:
    (place.workdir / "torch").mkdir()
    assert place.found()["errors"][0]["what"] == "torch is found as a folder that is no package"


def test_links_to_one_real_folder_are_one_copy(place: Place) -> None:
    package = copy_of_torch(place.site, "2.6.0", installed_by="pip")
    (place.workdir / "torch").symlink_to(package)
    found = place.found()
    assert found["errors"] == []
    assert [copy["from"] for copy in found["copies"]] == ["working directory and site-packages"]


def test_metadata_of_two_versions_beside_one_copy_is_a_fault(place: Place) -> None:
    copy_of_torch(place.site, "2.6.0", installed_by="pip")
    stale = place.site / "torch-2.5.1.egg-info"
    stale.mkdir()
    (stale / "PKG-INFO").write_text("Name: torch\nVersion: 2.5.1\n")
    done = place.guard()
    assert done.returncode == 12
    assert "error[check] torch is there once, but with the metadata of 2 versions" in done.stdout
    assert f"{stale}" in done.stdout


def test_no_copy_at_all_names_where_python_looked(place: Place) -> None:
    error = place.found()["errors"][0]
    assert error["what"] == "torch cannot be found"
    assert str(place.site) in error["cause"]


def test_the_errors_as_data_are_those_of_the_project(place: Place) -> None:
    source_tree_of_torch(place.workdir, "2.6.0a0")
    copy_of_torch(place.site, "2.6.0", installed_by="pip")
    error = errors.from_dict(place.found()["errors"][0])
    assert isinstance(error, errors.CheckError)
    assert error.subject == "torch"


def test_nothing_is_imported_while_looking(place: Place, tmp_path: Path) -> None:
    touched = tmp_path / "imported"
    init = f"open({str(touched)!r}, 'w')\n"
    copy_of_torch(place.workdir, "2.5.1", init=init)
    copy_of_torch(place.site, "2.6.0", init=init, installed_by="pip")
    assert place.guard().returncode == 12
    assert not touched.exists()


def test_a_module_in_the_working_directory_cannot_trip_the_guard(place: Place) -> None:
    copy_of_torch(place.site, "2.6.0", installed_by="pip")
    for name in ("json.py", "site.py", "argparse.py"):
        (place.workdir / name).write_text("raise SystemExit('shadowed')\n")
    assert place.found()["errors"] == []
