"""`rocwright patch`: a table of edits against trees, that nothing is written to, and what it ends with."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from tests.conftest import Command

from rocwheel_samples.trees import write_tree

FILE = "torchvision/csrc/io/decoder/video_stream.cpp"
BEFORE = "header->keyFrame = frame_->key_frame;\n"
AFTER = "header->keyFrame = ((frame_->flags & AV_FRAME_FLAG_KEY) != 0);\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "tree", {FILE: BEFORE})


def test_edits_that_apply_are_told_and_nothing_is_written(rocwright: Command, tree: Path) -> None:
    done = rocwright("patch", "check", "torchvision", "--source", str(tree))
    assert done.returncode == 0, done.stderr
    assert "applies" in done.stdout
    assert (tree / FILE).read_text() == BEFORE


def test_an_archive_can_be_looked_at(rocwright: Command, tree: Path) -> None:
    archive = tree.parent / "vision.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(tree, "vision-0.21.0")
    done = rocwright("patch", "check", "torchvision", "--source", str(archive), "--versions", "0.21.0")
    assert done.returncode == 0, done.stderr
    assert "applies" in done.stdout
    assert list(tree.parent.glob("vision*")) == [archive]


@pytest.mark.parametrize(
    ("text", "state", "told"),
    [
        ("header->keyFrame = frame->key_frame;\n", "drifted", "1: header->keyFrame = frame->key_frame;"),
        (BEFORE * 2, "drifted", "matches 2 times, 1 expected"),
        (AFTER, "absorbed, undeclared", "applied already"),
        (None, "file gone", "names a file that does not exist"),
        (BEFORE + "\x00\udcff", "refused", "not UTF-8"),
    ],
)
def test_an_edit_that_would_end_a_build_ends_the_check_with_a_patch_failure(
    rocwright: Command, tree: Path, text: str | None, state: str, told: str
) -> None:
    if text is None:
        (tree / FILE).unlink()
    else:
        (tree / FILE).write_bytes(text.encode(errors="surrogateescape"))
    done = rocwright("patch", "check", "torchvision", "--source", str(tree), "--versions", "0.21.0")
    assert done.returncode == 5, done.stderr
    assert state in done.stdout
    assert told in done.stdout


def test_an_edit_for_other_versions_is_left_out(rocwright: Command, tree: Path) -> None:
    done = rocwright("patch", "check", "torchvision", "--source", str(tree), "--versions", "0.21.0,9.0")
    assert done.returncode == 0, done.stderr
    row = next(line for line in done.stdout.splitlines() if FILE in line)
    assert row.split()[-2:] == ["applies", "-"]


def test_the_table_is_there_as_json(rocwright: Command, tree: Path) -> None:
    done = rocwright("patch", "check", "torchvision", "--source", str(tree), "--json")
    told = json.loads(done.stdout)
    assert told["edits"][0]["subject"] == FILE
    assert told["trees"][0]["verdicts"][0]["state"] == "applies"
    assert not told["trees"][0]["verdicts"][0]["ends-a-build"]


def test_a_version_that_the_recipe_has_not_is_refused(rocwright: Command) -> None:
    done = rocwright("patch", "check", "torchvision", "--versions", "9.9")
    assert done.returncode == 2
    assert "9.9" in done.stderr


def test_what_is_no_version_is_refused(rocwright: Command, tree: Path) -> None:
    done = rocwright("patch", "check", "torchvision", "--source", str(tree), "--versions", "x")
    assert done.returncode == 2
    assert "'x' is not a version" in done.stderr


def test_a_component_that_is_not_there_is_refused_with_the_nearest(rocwright: Command) -> None:
    done = rocwright("patch", "check", "torchvison")
    assert done.returncode == 2
    assert "torchvision" in done.stderr


DIFF = f"--- a/{FILE}\n+++ b/{FILE}\n@@ -9,1 +9,1 @@\n-{BEFORE}+nothing\n"


def test_a_patch_of_the_users_is_tried_on_a_source(rocwright: Command, tree: Path) -> None:
    path = tree.parent / "my.patch"
    path.write_text(DIFF)
    done = rocwright("patch", "check", "torchvision", str(path), "--source", str(tree), "--json")
    assert done.returncode == 5, done.stderr
    told = json.loads(done.stdout)
    assert [(one["state"], one["offset"]) for one in told["patches"]] == [("applies", 8)]
    assert [one["breaks"] for one in told["overlaps"]] == [True]
    shown = rocwright("patch", "check", "torchvision", str(path), "--source", str(tree))
    assert "in the way: the edit of" in shown.stdout
    other = rocwright("patch", "check", "torchvision", str(path), "--source", str(tree), "--versions", "0.9")
    assert other.returncode == 0, other.stdout
    assert (tree / FILE).read_text() == BEFORE


def test_options_for_patches_without_one_are_refused(rocwright: Command) -> None:
    done = rocwright("patch", "check", "torchvision", "--strip", "0")
    assert done.returncode == 2
    assert "name a patch or a series" in done.stderr


def test_a_base_chooses_among_the_sources_of_the_recipe(rocwright: Command, tree: Path) -> None:
    done = rocwright("patch", "check", "torchvision", "--base", "debian:sid", "--source", str(tree))
    assert done.returncode == 2 and "--base chooses" in done.stderr
    assert "unknown base" in rocwright("patch", "check", "torchvision", "--base", "debian:sd").stderr


def test_a_program_that_no_package_brings_is_named(rocwright: Command, tree: Path) -> None:
    """Of programs that commands of CMake begin with; the compiler's own package brings the second."""
    calls = """ExternalProject_Add(elfutils
  BUILD_COMMAND
  COMMAND
    "${CMAKE_COMMAND}" -E env "CPPFLAGS=-O2" -- flex --version
  COMMAND
    ninja install
)
"""
    write_tree(tree, {"third_party/CMakeLists.txt": calls})
    (tree / "linked.cmake").symlink_to("/etc/passwd")
    done = rocwright("patch", "check", "torchvision", "--source", str(tree))
    assert done.returncode == 5
    assert "flex is called (third_party/CMakeLists.txt:4)" in done.stdout
    assert "ninja is called" not in done.stdout
    done = rocwright("patch", "check", "torchvision", "--source", str(tree), "--json")
    assert json.loads(done.stdout)["trees"][0]["lacking"] == {"flex": "third_party/CMakeLists.txt:4"}
