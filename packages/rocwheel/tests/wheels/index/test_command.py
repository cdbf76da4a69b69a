"""`rocwheel index` as it is typed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rocwheel_samples.index_making import make_wheel

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    make_wheel(folder, "plain")
    make_wheel(folder, "kernels", targets=("gfx1151",))
    return folder


def test_build_says_what_it_did_and_ends_with_12_where_files_were_left_out(
    rocwheel: Command, wheels: Path
) -> None:
    done = rocwheel("index", "build", str(wheels))
    assert done.returncode == 0
    assert "2 wheels listed, 2 read" in done.stdout
    assert "gfx1151/simple" in done.stdout
    (wheels / "bad-1.0-py3-none-any.whl").write_bytes(b"bad")
    done = rocwheel("index", "build", str(wheels), "--json")
    assert done.returncode == 12
    told = json.loads(done.stdout)
    assert (told["listed"], told["read"], told["written"]["views"]) == (2, 1, ["gfx1151"])
    assert [one["path"] for one in told["problems"]] == ["bad-1.0-py3-none-any.whl"]
    assert "left out  bad-1.0-py3-none-any.whl" in done.stderr


def test_list_shows_which_gpu_each_wheel_is_for(rocwheel: Command, wheels: Path) -> None:
    done = rocwheel("index", "list", str(wheels))
    rows = {line.split()[0]: line for line in done.stdout.splitlines()[1:]}
    assert "gfx1151" in rows["kernels"]
    assert "every GPU" in rows["plain"]
    told = json.loads(rocwheel("index", "list", str(wheels), "--gpu", "gfx1030", "--json").stdout)
    assert [one["project"] for one in told["wheels"]] == ["plain"]


def test_check_ends_with_12_where_something_is_wrong(rocwheel: Command, wheels: Path) -> None:
    rocwheel("index", "build", str(wheels))
    assert rocwheel("index", "check", str(wheels)).stdout == "no problems found\n"
    (wheels / "plain-1.0-py3-none-any.whl").unlink()
    done = rocwheel("index", "check", str(wheels), "--json")
    assert done.returncode == 12
    assert {one["place"] for one in json.loads(done.stdout)} == {
        "simple/plain/index.v1_json",
        "gfx1151/simple/plain/index.v1_json",
    }


def test_all_mends_pages_that_were_changed_by_hand(rocwheel: Command, wheels: Path) -> None:
    rocwheel("index", "build", str(wheels))
    (wheels / "simple/plain/index.html").write_text("")
    assert "0 pages written" in rocwheel("index", "build", str(wheels)).stdout
    assert "1 page written" in rocwheel("index", "build", str(wheels), "--all").stdout
    assert rocwheel("index", "check", str(wheels)).returncode == 0


def test_a_yank_and_back(rocwheel: Command, wheels: Path) -> None:
    words = ("index", "yank", "Plain", "1.0", "--in", str(wheels))
    assert rocwheel(*words, "--reason", "wrong").returncode == 0
    assert "wrong" in rocwheel("index", "list", str(wheels)).stdout
    assert rocwheel(*words, "--reason", "wrong").returncode == 2
    assert rocwheel(*words, "--undo").returncode == 0
    assert rocwheel(*words, "--undo").returncode == 2
    assert rocwheel("index", "yank", "plain", "new", "--in", str(wheels)).returncode == 2


def test_serve_names_a_server_of_static_files(rocwheel: Command, wheels: Path) -> None:
    done = rocwheel("index", "serve", str(wheels), "--port", "0", "--quiet")
    assert done.returncode == 2
    assert "rocwheel index build FOLDER" in done.stderr and "python -m http.server" in done.stderr
