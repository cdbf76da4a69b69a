"""Edits judged against a tree, without a build."""

from __future__ import annotations

from pathlib import Path

from rocwright.model.edits import Edit
from rocwright.sources.patching.check import check_tree
from rocwright.sources.patching.edits import State


def wave(size: int, *targets: str) -> Edit:
    return Edit.model_validate(
        {
            "file": "macros.h",
            "literal": "#define WAVE warpSize",
            "with": f"#define WAVE {size}",
            "targets": targets,
            "why": "",
        }
    )


def states(tree: Path, *edits: Edit) -> list[State | None]:
    column = check_tree(tree, edits, ["gfx1151"])
    assert (tree / "macros.h").read_text() == "#define WAVE warpSize\n"
    return [None if one is None else one.state for one in column.verdicts]


def test_edits_for_different_gpus_do_not_meet(tmp_path: Path) -> None:
    (tmp_path / "macros.h").write_text("#define WAVE warpSize\n")
    narrow, wide = wave(32, "gfx1151", "gfx1103"), wave(64, "gfx803")
    assert states(tmp_path, narrow, wide) == [State.APPLIES, State.APPLIES]
    # of those that a build may have together the second finds nothing
    assert states(tmp_path, narrow, wave(64, "gfx1103")) == [State.APPLIES, State.DRIFTED]
    assert states(tmp_path, narrow, wide, wave(16)) == [State.APPLIES, State.APPLIES, State.DRIFTED]
