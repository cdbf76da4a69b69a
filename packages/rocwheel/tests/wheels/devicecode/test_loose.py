from __future__ import annotations

import pytest

from rocwheel.wheels.devicecode.loose import loose

FOUND = {
    "torch/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat": ("rocBLAS", {"gfx1100"}, ()),
    "library/TensileLibrary_Type_ZZ_Contraction_l_Ailk_fallback_gfx1030.hsaco": ("Tensile", {"gfx1030"}, ()),
    "library/Kernels.so-000-gfx90a-xnack+.hsaco": ("Tensile", {"gfx90a"}, ("xnack+",)),
    "library/extop_gfx942.co": ("hipBLASLt", {"gfx942"}, ()),
    "db/gfx1030_36.HIP.fdb.txt": ("MIOpen", {"gfx1030"}, ()),
    "db/gfx115128.db.txt": ("MIOpen", {"gfx1151"}, ()),
    "db/gfx90a68.kdb": ("MIOpen", {"gfx90a"}, ()),
    "db/gfx942_3d_metadata.tn.model": ("MIOpen models", {"gfx942"}, ()),
    "gfx908_ConvAsm1x1U_decoder.ktn.model": ("MIOpen models", {"gfx908"}, ()),
    "lib/aotriton.images/amd-gfx120x/flash/a.aks2": ("AOTriton", {"gfx1200", "gfx1201"}, ()),
    "lib/aotriton.images/amd-gfx90a/flash/a.aks2": ("AOTriton", {"gfx90a"}, ()),
}


@pytest.mark.parametrize("path", FOUND)
def test_a_loose_file_is_known_by_its_path(path: str) -> None:
    found = loose(path)
    assert found is not None
    assert (found.kind, set(found.targets), found.features) == FOUND[path]


def test_a_folder_for_a_family_of_gpus_stands_for_each_of_them() -> None:
    found = loose("lib/aotriton.images/amd-gfx11xx/flash/attn_fwd/a.aks2")
    assert found is not None
    assert {"gfx1100", "gfx1103", "gfx1151"} <= found.targets
    assert not {"gfx1030", "gfx1200", "gfx90a"} & found.targets


@pytest.mark.parametrize(
    "path",
    [
        "library/TensileLibrary.dat",
        "library/hipblasltExtOpLibrary.dat",
        "library/hipblasltTransform.hsaco",
        "x/gfx1100.py",
        "library/TensileLibrary_gfx11000.co",
        "docs/amd-gfx1100/readme",
    ],
)
def test_other_files_are_not(path: str) -> None:
    assert loose(path) is None
