"""A target of the catalog is found by whatever a person calls it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.plan.resolve.gpus import targets_named

CATALOG = builtin_catalog()


@each(
    ("name", "target"),
    [
        ("gfx1103", "gfx1103"),
        ("gfx906:sramecc+:xnack-", "gfx906"),
        ("GFX1103", "gfx1103"),
        ("RX 580", "gfx803"),
        ("rx  580", "gfx803"),
        ("AMD Radeon RX 580", "gfx803"),
        ("Polaris 20", "gfx803"),
        ("1002:67df", "gfx803"),
        ("0x1002:0x67DF", "gfx803"),
        ("780M", "gfx1103"),
        ("AMD Radeon(TM) 780M Graphics", "gfx1103"),
        ("Phoenix", "gfx1103"),
        ("Strix Halo", "gfx1151"),
        ("strix", "gfx1150 gfx1151"),
        ("Steam Deck", "gfx1033"),
        ("MI50", "gfx906"),
        ("RX 6800", "gfx1030"),
        ("7900 XTX", "gfx1100"),
        ("Radeon 840M", "gfx1152 gfx1153"),
        ("gfx120X-all", "gfx1200 gfx1201"),
        ("GFX110x-igpu", "gfx1103"),
    ],
)
def test_a_target_is_found_by_any_name(name: str, target: str) -> None:
    assert [one.name for one in targets_named(name, CATALOG)] == target.split()


@pytest.mark.parametrize(("name", "near"), [("gfx1104", "gfx110"), ("Strixx Halo", "gfx1151")])
def test_a_name_that_is_none_is_refused_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(InputError, match="unknown GPU target") as caught:
        targets_named(name, CATALOG)
    assert near in caught.value.cause


def test_the_bc_250_is_sent_to_vulkan() -> None:
    with pytest.raises(InputError, match="BC-250") as caught:
        targets_named("gfx1013", CATALOG)
    assert caught.value.next_step == "use it through Vulkan: rocwright run llama-vulkan"


def test_a_card_that_rocm_does_not_run_on_is_sent_to_vulkan() -> None:
    with pytest.raises(InputError, match="GCN 2") as caught:
        targets_named("R9 290", CATALOG)
    assert caught.value.next_step == (
        "use it through Vulkan: rocwright run llama-vulkan; start Linux with amdgpu.cik_support=1 "
        "radeon.cik_support=0, or its amdgpu driver leaves the card alone"
    )


@each("name", ["", " ", "(r)"])
def test_no_name_at_all_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="unknown GPU target"):
        targets_named(name, CATALOG)


@given(name=st.text(max_size=20))
def test_any_text_finds_targets_or_is_refused_in_words(name: str) -> None:
    try:
        assert targets_named(name, CATALOG)
    except InputError as error:
        assert error.cause
        assert error.next_step


@each("target", CATALOG.targets)
def test_every_name_of_a_target_finds_it(target: str) -> None:
    one = CATALOG.targets[target]
    for name in (one.name, *one.products, *one.codenames, *one.pci_ids, *one.families):
        assert one in targets_named(name, CATALOG), name
