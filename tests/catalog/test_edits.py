"""The edits of the catalog: each belongs to a component, says why and from where, and names what there is."""

from __future__ import annotations

import pytest

from rocwheel_samples.tables import each
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import builtin_catalog
from rocwright.model.edits import Edit
from rocwright.plan.edits import edits_as_written

CATALOG = builtin_catalog()
EDITS = [
    pytest.param(edit, id=f"{component.name}-{number}")
    for component in CATALOG.components.values()
    for number, edit in enumerate(component.edit, 1)
]


def test_every_file_of_edits_and_every_diff_belongs_to_a_component() -> None:
    assert {path.stem for path in (DATA / "edits").glob("*.toml")} <= set(CATALOG.components)
    used = {edit.diff for component in CATALOG.components.values() for edit in component.edit if edit.diff}
    assert {str(path.relative_to(DATA)) for path in DATA.glob("patches/**/*.patch")} == used


def test_edits_that_lie_apart_come_after_those_of_the_recipe() -> None:
    pytorch = CATALOG.component("pytorch")
    assert any(edit.file.endswith("FindBLIS.cmake") for edit in pytorch.edit)


def edited(version: str, gpu: str) -> set[str]:
    """The files of PyTorch that are edited for a GPU, in a checkout of a version."""
    edits = edits_as_written(CATALOG.component("pytorch").edit, version, "git", {})
    return {one.file for one in edits if not one.targets or gpu in one.targets}


def test_kernels_that_take_the_wrong_wave_are_mended_for_each_gpu_that_has_the_other() -> None:
    header, layer = "torch/headeronly/macros/Macros.h", "aten/src/ATen/native/cuda/layer_norm_kernel.cu"
    for gpu, target in CATALOG.targets.items():
        assert (header in edited("2.14.1", gpu)) == (header in edited("2.9.1", gpu)) == gpu.startswith("gfx8")
        assert header not in edited("2.8.0", gpu)
        assert (layer in edited("2.12.1", gpu)) == (target.wave == 32)
        assert layer not in edited("2.11.0", gpu) | edited("2.13.0", gpu)


def test_the_size_of_a_wave_is_a_constant_beside_rocm_7() -> None:
    edits = CATALOG.component("pytorch").edit
    for gpu, target in CATALOG.targets.items():
        for rocm in ("6.4.4", "7.2.4"):
            found = [
                one.replacement
                for one in edits_as_written(edits, "2.6.0", "debian", {"rocm": rocm})
                if one.file == "c10/macros/Macros.h" and gpu in one.targets
            ]
            assert found == ([f"#define C10_WARP_SIZE {target.wave}"] if rocm == "7.2.4" else [])


@pytest.mark.parametrize(("rocm", "edited"), [("6.4.4", False), ("7.2.4", True)])
def test_hips_own_data_types_are_taken_beside_hipblas_3(rocm: str, edited: bool) -> None:
    found = edits_as_written(CATALOG.component("pytorch").edit, "2.6.0", "debian", {"rocm": rocm})
    assert any(one.file.endswith("tunable/GemmHipblaslt.h") for one in found) == edited


@each("edit", EDITS)
def test_an_edit_says_why_and_from_where(edit: Edit) -> None:
    assert edit.why
    assert edit.source
    assert edit.confidence


@each("edit", EDITS)
def test_an_edit_names_targets_and_components_that_there_are(edit: Edit) -> None:
    assert set(edit.targets) <= set(CATALOG.targets)
    assert set(edit.beside) <= set(CATALOG.components)


@each("edit", EDITS)
def test_what_an_edit_may_find_done_can_be_recognised(edit: Edit) -> None:
    """A replacement by nothing, or with groups, needs a marker or what upstream took away."""
    if edit.replacement is not None and (not edit.replacement or "\\" in edit.replacement):
        assert edit.marker or edit.absent
