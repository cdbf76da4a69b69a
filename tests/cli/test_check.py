"""`rocwright check`, as people type it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.sources.conftest import Index, served_index

from rocwheel_samples.wheel import make_wheel
from rocwheel_samples.wheel_making import small_wheel
from rocwright.cli.group import cli
from rocwright.plan.resolve.folder import PROJECT

LINES = "torch==2.8.0\nnumpy\nnvidia-nccl-cu12\nmissing\nother\n"


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.txt").write_text(LINES)
    with served_index() as served:
        monkeypatch.setenv("PIP_INDEX_URL", f"{served.url}/simple")
        served.ranges = True
        wheel = make_wheel(tmp_path / "w", "numpy")
        served.files["numpy"] = {wheel.name: wheel.read_bytes()}
        yield served


def check(*words: str) -> Result:
    return CliRunner().invoke(cli, ["check", *words])


def test_findings_are_shown_with_what_to_write_and_the_exit_code_says_that_something_stops() -> None:
    done = check("r.txt", "--gpu", "gfx1151", "--python", "3.12")
    assert done.exit_code == 12
    assert done.stdout.splitlines() == [
        "1  torch: a CUDA build",
        "   write  torch[device-gfx1151]==2.13.0+rocm10.0.0",
        "3  nvidia-nccl-cu12: part of CUDA",
        "   do     leave it out",
        "4  missing: note: not asked: the package index has no project missing",
        "5  other: note: not asked: the package index has no project other",
        "",
        "with  --extra-index-url https://stable.repo.amd.com/rocm/whl-next/",
        done.stdout.splitlines()[-2],
        "next  rocwright check r.txt --gpu gfx1151 --write NEW writes the list that works",
    ]
    summary = "5 packages for gfx1151, Python 3.12: 2 errors, 2 notes; looked into 1 on the index, "
    assert done.stdout.splitlines()[-2].startswith(summary)


def test_the_list_that_works_is_written_and_an_old_file_is_not_overwritten(tmp_path: Path) -> None:
    assert check("r.txt", "--gpu", "gfx1151", "--write", "new.txt").exit_code == 12
    assert (tmp_path / "new.txt").read_text().splitlines() == [
        "--extra-index-url https://stable.repo.amd.com/rocm/whl-next/",
        "torch[device-gfx1151]==2.13.0+rocm10.0.0",
        "numpy",
        "# nvidia-nccl-cu12: part of CUDA; leave it out",
        "missing",
        "other",
    ]
    refused = check("r.txt", "--gpu", "gfx1151", "--write", "r.txt")
    assert "exists, and is not overwritten" in str(refused.exception)
    assert (tmp_path / "r.txt").read_text() == LINES


def test_what_nobody_could_look_into_has_a_code_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("numpy\n")
    assert check("r.txt", "--gpu", "gfx1151").exit_code == 0
    (tmp_path / "r.txt").write_text("missing\n")
    assert check("r.txt", "--gpu", "gfx1151").exit_code == 13


def test_many_notes_of_one_kind_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    done = check("r.txt", "--gpu", "gfx1151")
    assert "3 packages: note: not asked: the package index does not answer\n" in done.stdout


def test_the_projects_gpu_counts_if_none_is_named(tmp_path: Path) -> None:
    (tmp_path / PROJECT).write_text('stack = "pytorch"\ngpu = ["RX 580"]\nbase = "debian:sid"\n')
    data = json.loads(check("r.txt", "--json").stdout)
    assert data["gpu"] == "gfx803"
    assert data["findings"][0]["advice"] == "rocwright build pytorch --gpu gfx803"


def test_a_wheel_and_a_list_in_each_others_place_are_told_the_right_command(tmp_path: Path) -> None:
    wheel = small_wheel(tmp_path)
    refused = check(str(wheel), "--gpu", "gfx1151").exception
    assert getattr(refused, "next_step", "") == f"rocwright wheel check-gpu gfx1151 {wheel}"
    refused = CliRunner().invoke(cli, ["wheel", "check-gpu", "gfx1151", "r.txt"]).exception
    assert getattr(refused, "next_step", "") == "rocwright check r.txt reads lists of packages"
    assert check("r.txt", "--gpu", "gfx1151", "--python", "three").exit_code == 2


def test_texts_of_a_list_do_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("numpy\ntorch\n\x07evil\n")
    done = check("r.txt", "--gpu", "gfx1151")
    assert "\x07" not in done.stdout
    assert "evil" in done.stdout
