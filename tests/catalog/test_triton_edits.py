"""The edits of Triton's wheel: what they write in the place of products that a GPU has no instruction for."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocbase.errors import PatchError
from rocwheel_samples.trees import write_tree
from rocwright.catalog.load import the_catalog
from rocwright.model.versions import version_in
from rocwright.sources.patching.edits import apply_edits

NAME, VERSION = "triton-gfx8", "3.9.0"
FILE = "triton/backends/amd/compiler.py"
PASSES = "amd.passes.ttgpuir.add_it(pm, options.arch)\n"
TEXT = (
    "import re\nfrom pathlib import Path\n\n\ndef run(pm, options, amd, passes, llvm_mod):\n"
    + f"    {PASSES}" * 11
    + '    passes.ttir.add_convert_to_ttgpuir(pm, f"hip:{options.arch}")\n    return str(llvm_mod)\n'
)


def edited(folder: Path, text: str = TEXT) -> dict[str, Any]:
    """Return the names of a backend of this text after the edits of triton-gfx8 for 3.9."""
    write_tree(folder, {FILE: text})
    edits = [edit for edit in the_catalog().component(NAME).edit if version_in(VERSION, edit.versions)]
    apply_edits(folder, edits, NAME, VERSION)
    names: dict[str, Any] = {}
    exec((folder / FILE).read_text(), names)
    return names


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return edited(tmp_path_factory.mktemp("triton"))


def evaluate(text: str, result: str, values: dict[str, int]) -> int:
    """Return what LLVM's instructions on 32-bit numbers come to."""
    steps: dict[str, Callable[[int, int], int]] = {
        "shl": lambda a, b: a << b,
        "ashr": lambda a, b: ctypes.c_int32(a).value >> b,
        "lshr": lambda a, b: (a & 0xFFFFFFFF) >> b,
        "mul": lambda a, b: a * b,
        "add": lambda a, b: a + b,
    }
    for name, kind, *words in re.findall(r'(%"[^"]+"|%\d+) = (\w+) i32 (\S+), (\S+)', text):
        first, second = (values[word] if word in values else int(word) for word in words)
        values[name] = ctypes.c_int32(steps[kind](first, second)).value
    return values[result]


@given(st.lists(st.integers(-128, 127), min_size=8, max_size=8), st.integers(-(2**20), 2**20))
def test_a_product_of_four_bytes_is_what_the_instruction_computes(
    backend: dict[str, Any], lanes: list[int], total: int
) -> None:
    line = "  %9 = tail call i32 @llvm.amdgcn.sdot4(i32 %1, i32 %2, i32 %3, i1 false)\n"
    packed = [
        int.from_bytes(bytes(lane & 0xFF for lane in part), "little") for part in (lanes[:4], lanes[4:])
    ]
    text = backend["expand_dots"](line, "gfx803")
    expected = total + sum(a * b for a, b in zip(lanes[:4], lanes[4:], strict=True))
    assert evaluate(text, "%9", {"%1": packed[0], "%2": packed[1], "%3": total}) == expected


def test_a_product_of_two_halves_becomes_two_fused_multiply_adds(backend: dict[str, Any]) -> None:
    factors = "<2 x half> %1, <2 x half> <half 1.0, half 2.0>"
    line = f"  %7 = call float @llvm.amdgcn.fdot2({factors}, float %c, i1 false)\n"
    lines = backend["expand_dots"](line, "gfx900").splitlines()
    sums = [text.split(" = ") for text in lines if "fmuladd" in text and " = " in text]
    assert [name.strip() for name, _ in sums] == ['%"7.a0.s"', "%7"]
    assert sums[0][1].endswith("float %c)")
    assert sums[1][1].endswith('float %"7.a0.s")')
    assert [text.split()[-1] for text in lines if "extractelement" in text] == ["0", "0", "1", "1"]
    assert lines[-1].startswith("declare float @llvm.fmuladd.f32")


def test_what_a_gpu_has_is_left_as_it_is(backend: dict[str, Any]) -> None:
    line = "  %9 = call i32 @llvm.amdgcn.sdot4(i32 %1, i32 %2, i32 %3, i1 false)\n"
    assert backend["expand_dots"](line, "gfx906") == line
    assert backend["pass_arch"]("gfx1103") == "gfx1103"
    assert backend["pass_arch"]("gfx803") == "gfx906"


def test_a_wheel_whose_anchors_moved_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    text = TEXT.replace("return str(llvm_mod)", "return llvm_mod.text()")
    with pytest.raises(PatchError) as refused:
        edited(tmp_path, text)
    assert FILE in str(refused.value)
    assert (tmp_path / FILE).read_text() == text
