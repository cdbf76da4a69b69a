from __future__ import annotations

from rocwheel.wheels.devicecode.loose import loose
from rocwheel.wheels.members import HEAD
from rocwheel_samples.fatbin import gpu_elf
from rocwheel_samples.tables import each

FOUND = {
    "torch/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat": ("rocBLAS", {"gfx1100"}, ()),
    "library/TensileLibrary_Type_ZZ_Contraction_l_Ailk_fallback_gfx1030.hsaco": ("Tensile", {"gfx1030"}, ()),
    "library/Kernels.so-000-gfx90a-xnack+.hsaco": ("Tensile", {"gfx90a"}, ("xnack+",)),
    "library/extop_gfx942.co": ("hipBLASLt", {"gfx942"}, ()),
    "db/gfx1030_36.HIP.fdb.txt": ("MIOpen", {"gfx1030"}, ()),
    "db/gfx115128.db.txt": ("MIOpen", {"gfx1151"}, ()),
    "db/gfx90a68.kdb": ("MIOpen", {"gfx90a"}, ()),
    "miopen/gfx90a6e.ukdb": ("MIOpen", {"gfx90a"}, ()),
    "miopen/gfx1030_.HIP.3_4_0_.ufdb.txt": ("MIOpen", {"gfx1030"}, ()),
    "miopen/gfx906_60.HIP.2_6_0_8145-rocm-rel-3.7-20-c16087a4.ufdb.txt": ("MIOpen", {"gfx906"}, ()),
    "miopen/gfx803_36.cd.pdb.txt": ("MIOpen", {"gfx803"}, ()),
    "db/gfx942_3d_metadata.tn.model": ("MIOpen models", {"gfx942"}, ()),
    "gfx908_ConvAsm1x1U_decoder.ktn.model": ("MIOpen models", {"gfx908"}, ()),
    "lib/aotriton.images/amd-gfx120x/flash/a.aks2": ("AOTriton", {"gfx1200", "gfx1201"}, ()),
    "lib/aotriton.images/amd-gfx90a/flash/a.aks2": ("AOTriton", {"gfx90a"}, ()),
}


@each("path", FOUND)
def test_a_loose_file_is_known_by_its_path(path: str) -> None:
    found = loose(path)
    assert found is not None
    assert (found.kind, set(found.targets), found.features) == FOUND[path]


def test_a_folder_for_a_family_of_gpus_stands_for_each_of_them() -> None:
    found = loose("lib/aotriton.images/amd-gfx11xx/flash/attn_fwd/a.aks2")
    assert found is not None
    assert {"gfx1100", "gfx1103", "gfx1151"} <= found.targets
    assert not {"gfx1030", "gfx1200", "gfx90a"} & found.targets


@each(
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


ENTRY = "comgr/llvmcache-0A1B2C3D4E5F"


def cached(content: bytes) -> bytes:
    """An entry of comgr's cache: its output and its log, each behind its size."""
    log = b"compiled\n"
    return len(content).to_bytes(8, "little") + content + len(log).to_bytes(8, "little") + log


def test_what_comgr_has_cached_is_told_by_the_code_object_in_it() -> None:
    found = loose(ENTRY, cached(gpu_elf(0x4A))[:HEAD])
    assert found is not None
    assert (found.kind, found.named, found.needed) == ("comgr cache", "gfx1151", False)


@each(
    ("path", "head"),
    [
        (ENTRY, b""),
        (ENTRY, cached(b"BC\xc0\xde" + bytes(200))),
        (ENTRY, cached(gpu_elf(0x4A))[: 8 + 63]),
        (ENTRY, cached(gpu_elf(0xFE))),
        (ENTRY, gpu_elf(0x4A)),
        ("comgr/llvmcache.timestamp", cached(gpu_elf(0x4A))),
        ("comgr/other", cached(gpu_elf(0x4A))),
    ],
    ids=["nothing", "bitcode", "cut short", "unknown GPU", "elsewhere", "timestamp", "name"],
)
def test_what_names_no_gpu_there_is_not(path: str, head: bytes) -> None:
    assert loose(path, head[:HEAD]) is None
