"""The exported program edits as `build` does: the same tree, or a refusal where `build` refuses."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.sources.patching.making import diff_of, edit

from rocbase.errors import PatchError
from rocwheel_samples.trees import write_tree
from rocwright.export.edits import edits_file, program
from rocwright.model.edits import Edit
from rocwright.sources.patching.edits import apply_edits

FILES = {
    "CMakeLists.txt": "cmake_minimum_required(VERSION 2.8)\nset(ARCHS gfx900 gfx906)\n",
    "a.cpp": "#include <vector>\nint main() { return frame->key_frame; }\n",
    "setup.py": 'ARCHS = ["gfx90a"]\nx = old(1)\n',
}
EDITS: dict[str, Sequence[Edit]] = {
    "literal": [edit("a.cpp", literal="key_frame", replace="flags")],
    "regex": [edit("a.cpp", regex=r"return (\w+)->key_frame", replace=r"return \1->flags")],
    "cmake-minimum": [edit("CMakeLists.txt", cmake_minimum="3.5")],
    "include": [edit("a.cpp", include="<cstdint>")],
    "list": [
        edit("CMakeLists.txt", list="ARCHS", add=["gfx1151"]),
        edit("setup.py", list="ARCHS", add=["x"]),
    ],
    "rule": [edit("setup.py", rule={"language": "python", "pattern": "old($A)", "rewrite": "new($A)"})],
    "diff": [diff_of({"a.cpp": (FILES["a.cpp"], "int main() {}\n"), "new.txt": (None, "hello\n")})],
    "drifted": [edit("a.cpp", literal="nothing like it", replace="x")],
    "several": [edit("a.cpp", literal="key_frame", replace="x", expect=2)],
    "gone": [edit("no.cpp", literal="a", replace="b")],
}


@pytest.mark.parametrize("kind", EDITS)
def test_the_program_does_what_build_does(kind: str, tmp_path: Path) -> None:
    if kind == "rule":
        pytest.importorskip("ast_grep_py")
    ours, theirs = write_tree(tmp_path / "ours", FILES), write_tree(tmp_path / "theirs", FILES)
    (tmp_path / "apply.py").write_bytes(program().data)
    (tmp_path / "edits.json").write_bytes(edits_file(EDITS[kind], [False] * len(EDITS[kind])).data)
    try:
        apply_edits(ours, EDITS[kind], "edits")
        refused = False
    except PatchError:
        refused = True
    done = subprocess.run(
        [sys.executable, tmp_path / "apply.py", tmp_path / "edits.json", theirs],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode != 0) == refused, done.stderr
    assert "Traceback" not in done.stderr
    assert shutil.which("diff")
    assert subprocess.run(["diff", "-r", ours, theirs], check=False).returncode == 0


def test_no_two_modules_have_the_same_name_in_the_program() -> None:
    names = Counter(
        node.name
        for node in ast.parse(program().text).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    )
    names += Counter(
        target.id
        for node in ast.parse(program().text).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    )
    assert [name for name, count in names.items() if count > 1] == []
