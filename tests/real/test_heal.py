"""Known failures in real sources, each from failing to built by `rocwright build --heal`."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest
from tests.real.healing import CATALOG, Case
from tests.real.stacks import rocwright

from rocwright.catalog.remedy import AddPackages, CompilerFlags
from rocwright.home import Home

pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def _catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(CATALOG))


def test_a_tree_of_an_old_cmake_is_built_with_cmake_4(home: Home, tmp_path: Path) -> None:
    case = Case(home=home, folder=tmp_path / "psimd", stack="psimd")
    case.begin()
    failure = case.fails()
    assert (failure["class"], failure["issue"]) == ("compile", "cmake-minimum")
    assert "CMAKE_POLICY_VERSION_MINIMUM" in failure["heal"]
    made = case.heals("cmake-minimum")
    with tarfile.open(made) as archive:
        assert "usr/include/psimd.h" in archive.getnames()
    case.builds_elsewhere()


@pytest.mark.nightly
def test_a_header_that_a_new_compiler_no_longer_brings_along_is_included(home: Home, tmp_path: Path) -> None:
    case = Case(home=home, folder=tmp_path / "gloo", stack="gloo")
    case.begin()
    assert case.fails()["issue"] == "cmake-minimum"
    made = case.heals("cmake-minimum", "gloo-cstdint")
    assert "uint8_t" in case.lock.remedies[1].failed
    symbols = subprocess.run(["nm", "-C", made], capture_output=True, text=True, check=True).stdout
    assert "T gloo::allreduce(gloo::AllreduceOptions const&)" in symbols
    case.builds_elsewhere()


@pytest.mark.nightly
def test_a_header_is_brought_by_the_package_that_the_archives_index_names(home: Home, tmp_path: Path) -> None:
    case = Case(home=home, folder=tmp_path / "picture", stack="picture")
    case.begin()
    failure = case.fails()
    assert (failure["class"], failure["issue"]) == ("compile", "missing-header")
    made = case.heals("missing-header")
    (remedy,) = case.lock.remedies
    assert isinstance(remedy.action, AddPackages)
    assert remedy.action.names == ("png",)
    symbols = subprocess.run(["nm", made], capture_output=True, text=True, check=True).stdout
    assert "T picture_version" in symbols
    case.builds_elsewhere()


@pytest.mark.nightly
def test_a_warning_that_new_compilers_take_for_an_error_is_let_pass_by_a_wrapper(
    home: Home, tmp_path: Path
) -> None:
    """Its build takes in no variable: those are tried first, and change nothing."""
    case = Case(home=home, folder=tmp_path / "strict", stack="strict")
    case.begin()
    failure = case.fails()
    assert (failure["class"], failure["issue"]) == ("compile", "warning-is-error")
    assert "-Wno-error=incompatible-pointer-types to CFLAGS" in failure["heal"]
    made = case.heals("warning-is-error", useless=("warning-is-error",))
    (kept,) = case.lock.in_force
    assert isinstance(kept.action, CompilerFlags)
    assert kept.action.flags == ("-Wno-error=incompatible-pointer-types",)
    assert "by a wrapper" in rocwright(home, case.folder, "heal", "--explain")
    symbols = subprocess.run(["nm", made], capture_output=True, text=True, check=True).stdout
    assert "T strict_bytes" in symbols
    case.builds_elsewhere()


@pytest.mark.nightly
def test_a_tool_that_is_too_new_is_taken_in_an_older_version(home: Home, tmp_path: Path) -> None:
    case = Case(home=home, folder=tmp_path / "policy", stack="policy")
    case.begin()
    assert case.lock.python is not None
    assert "cmake==4.4.4" in case.lock.python.wanted
    failure = case.fails()
    assert (failure["class"], failure["issue"]) == ("compile", "cmake-policy-old")
    made = case.heals("cmake-policy-old")
    assert case.lock.python is not None
    assert "cmake==3.31.10" in case.lock.python.wanted
    symbols = subprocess.run(["nm", made], capture_output=True, text=True, check=True).stdout
    assert "T policy_answer" in symbols
    case.builds_elsewhere()


def read_compilers(home: Home) -> None:
    """Have the compilers' own pages counted here: who reads a file first is charged for it, and in a cgroup
    at its limit the kernel would throw them out again and again before it ends a process."""
    for path in home.roots.glob("*/usr/libexec/gcc/*/*/cc1plus"):
        path.read_bytes()


def forget_jobs(home: Home) -> None:
    """Forget how much memory compilers took."""
    home.job_memory.unlink(missing_ok=True)


@pytest.mark.nightly
def test_compilers_that_want_more_memory_than_there_is_are_run_with_fewer_at_once(
    home: Home, tmp_path: Path
) -> None:
    # four compilers of 250 MiB do not fit, and the second try of any build, with half the jobs, has four too
    options = ("--jobs", "8", "--memory", "350MiB", "--no-job-server")
    case = Case(home=home, folder=tmp_path / "tables", stack="tables", options=options)
    case.begin()
    case.stands()
    forget_jobs(home)
    read_compilers(home)
    failure = case.fails()
    assert (failure["class"], failure["issue"]) == ("out of memory", "killed")
    assert "ran out of memory twice" in failure["message"]
    # this machine has learnt from it and would go on with one job; another knows what the lock says
    forget_jobs(home)
    read_compilers(home)
    made = case.heals("killed")
    symbols = subprocess.run(["nm", "-C", made], capture_output=True, text=True, check=True).stdout
    assert all(f" T looked_up_{part}(" in symbols for part in range(1, 5))
    (remedy,) = case.lock.remedies
    assert remedy.action.kind == "jobs"
    assert remedy.memory >= 175 * 1024**2
    forget_jobs(home)
    case.builds_elsewhere()


@pytest.mark.nightly
def test_a_whole_build_holds_its_memory_by_pausing_compilers(home: Home, tmp_path: Path) -> None:
    """The same compilers, all four begun at once, since the recipe thinks that they are small."""
    options = ("--jobs", "8", "--memory", "900MiB")
    case = Case(home=home, folder=tmp_path / "paused", stack="tables", options=options)
    case.begin()
    case.stands()
    forget_jobs(home)
    read_compilers(home)
    run = case.builds()["run"]
    (step,) = (one for one in run["steps"] if one["name"] == "tables")
    assert (step["outcome"], step["jobs"]) == ("built", 8)
    assert 500 * 2**20 < step["peak_memory"] <= 900 * 2**20
    assert step["paused"] > 0


@pytest.mark.nightly
def test_a_compiler_that_alone_is_larger_than_all_there_is_is_told_at_once(
    home: Home, tmp_path: Path
) -> None:
    options = ("--jobs", "1", "--memory", "200MiB")
    case = Case(home=home, folder=tmp_path / "alone", stack="tables", options=options)
    case.begin()
    case.stands()
    forget_jobs(home)
    case.forget()
    read_compilers(home)
    failure = case.fails()
    assert failure["message"] == "a single process needs more memory than the whole build may use"
    assert failure["tries"] == 1
    assert "of at most 200.0 MiB" in failure["cause"]
    assert (failure["heal"], failure["remedy_unavailable"]) == (
        "",
        "fewer jobs do not give a single process more memory",
    )
