"""Which targets a file of kernels is for, by names that ROCm's own packages use."""

from __future__ import annotations

from rocwheel.wheels.repair.reads import covered, is_for, targets_named
from rocwheel_samples.tables import each


@each(
    ("path", "named"),
    [
        ("rocblas/library/TensileLibrary_lazy_gfx1151.dat", ("gfx1151",)),
        ("rocblas/library/Kernels.so-000-gfx90a-xnack+.hsaco", ("gfx90a",)),
        ("rocblas/library/TensileManifest.txt", ()),
        ("miopen/db/gfx90a68.HIP.fdb.txt", ("gfx90a",)),
        ("miopen/db/gfx1030_36.kdb", ("gfx1030",)),
        ("aotriton.images/amd-gfx11xx/flash/attn_fwd.aks2", ("gfx11xx",)),
        ("hipblaslt/library/gfx942/Kernels.so-000-gfx942.hsaco", ("gfx942",)),
        ("kernels-gfx11-generic.co", ("gfx11-generic",)),
    ],
)
def test_targets_in_a_path(path: str, named: tuple[str, ...]) -> None:
    assert targets_named(path) == named


def test_a_file_serves_its_own_targets_and_one_that_names_none_serves_all() -> None:
    assert is_for("a_gfx1151.co", ["gfx1151"])
    assert is_for("a_gfx90a.co", ["gfx90a:xnack-"])
    assert not is_for("a_gfx1151.co", ["gfx1150", "gfx115"])
    assert is_for("a.dat", ["gfx1151"])
    assert is_for("a_gfx1151.co", [])


def test_a_family_serves_its_members() -> None:
    assert is_for("amd-gfx11xx/a", ["gfx1151"])
    assert is_for("amd-gfx120x/a", ["gfx1201"])
    assert not is_for("amd-gfx120x/a", ["gfx1151"])
    assert not is_for("amd-gfx90a/a", ["gfx908"])


def test_a_generic_target_serves_what_it_covers() -> None:
    assert is_for("a-gfx11-generic.co", ["gfx1151"])
    assert not is_for("a-gfx11-generic.co", ["gfx1201"])


def test_files_cover_a_target_where_one_names_it_or_none_names_any() -> None:
    assert covered(["a_gfx1151.co", "a_gfx1100.co"], "gfx1151")
    assert not covered(["a_gfx1151.co", "b.dat"], "gfx1103")
    assert covered(["a.dat"], "gfx1103")
