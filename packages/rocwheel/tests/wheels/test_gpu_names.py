"""One matcher for what people call a GPU: products, code names, PCI ids, targets; and what is not AMD's."""

from __future__ import annotations

import random
import re
import shlex
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocbase.errors import InputError
from rocwheel.wheels.gpu_names import find, find_one, target_id
from rocwheel.wheels.gpu_table import GpuTable, gpu_table
from rocwheel_samples.command import Command
from rocwheel_samples.tables import each

TABLE = gpu_table()
PAIRS = [(name, one.target) for one in TABLE.gpus for name in one.names]


@each(
    ("text", "target"),
    [
        ("RX 580", "gfx803"),
        ("RX580", "gfx803"),
        ("rx580", "gfx803"),
        ("RX 580 8GB", "gfx803"),
        ("rx580 8 gb", "gfx803"),
        ("Ellesmere [Radeon RX 470/480/570/570X/580/580X/590]", "gfx803"),
        ("Ellesmere [Radeon RX 470/480/570/570X/580/580X/590] [1002:67df] (rev e7)", "gfx803"),
        ("Unnamed Chip [Radeon RX 580/590]", "gfx803"),
        (
            "03:00.0 VGA compatible controller: Advanced Micro Devices, Inc. [AMD/ATI] "
            "Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M] (rev c8)",
            "gfx1100",
        ),
        ("Strix Halo [Radeon Graphics / Radeon 8050S Graphics / Radeon 8060S Graphics]", "gfx1151"),
        ("Strix [Radeon 880M / 890M]", "gfx1150"),
        ("Vega 10 XL/XT [Radeon RX Vega 56/64]", "gfx900"),
        ("rx-580", "gfx803"),
        ("AMD Radeon RX 580 Graphics (RADV POLARIS10)", "gfx803"),
        ("polaris10", "gfx803"),
        ("fury", "gfx803"),
        ("7900XTX", "gfx1100"),
        ("RX 7900", "gfx1100"),
        ("Navi 31", "gfx1100"),
        ("Radeon 780M", "gfx1103"),
        ("780m", "gfx1103"),
        ("AMD Radeon(TM) 780M Graphics", "gfx1103"),
        ("Strix Halo", "gfx1151"),
        ("strixhalo", "gfx1151"),
        ("Ryzen AI Max+ 395", "gfx1151"),
        ("AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", "gfx1151"),
        ("Ryzen AI 9 HX 370", "gfx1150"),
        ("Radeon VII", "gfx906"),
        ("vega 20", "gfx906"),
        ("Steam Deck", "gfx1033"),
        ("W6800", "gfx1030"),
        ("R9700", "gfx1201"),
        ("MI300X", "gfx942"),
        ("gfx1151", "gfx1151"),
        ("GFX1151", "gfx1151"),
        ("gfx 1151", "gfx1151"),
        ("1151", "gfx1151"),
        ("90a", "gfx90a"),
        ("gfx90a:xnack-", "gfx90a:xnack-"),
        ("amdgcn-amd-amdhsa--gfx1151", "gfx1151"),
        ("amdgcn-amd-amdhsa--gfx906:sramecc+:xnack-", "gfx906:sramecc+:xnack-"),
        ("RADV GFX1151", "gfx1151"),
        ("AMD Radeon Graphics (RADV GFX1103)", "gfx1103"),
        ("110003", "gfx1103"),
        ("90010", "gfx90a"),
        ("Phoenix1", "gfx1103"),
        ("HawkPoint1", "gfx1103"),
        ("AMD Ryzen 7 8845HS", "gfx1103"),
        ("AMD Ryzen 7 7840U w/ Radeon 780M Graphics", "gfx1103"),
        ("Framework Desktop", "gfx1151"),
        ("MI250X:xnack-:sramecc+", "gfx90a:sramecc+:xnack-"),
        ("1002:67df", "gfx803"),
        ("[1002:67DF]", "gfx803"),
        ("0x67df", "gfx803"),
        ("67DF", "gfx803"),
        ("0x1002:0x67DF", "gfx803"),
        # what is named exactly goes before what it only begins to name
        ("RX 6700", "gfx1031"),
        ("RX 6700S", "gfx1032"),
        ("RX 6800", "gfx1030"),
        ("RX 6800M", "gfx1031"),
        ("RX 6750 GRE 12GB", "gfx1031"),
        ("amDrx 6750 gRE 12GB", "gfx1031"),
        ("6750 GRE 10 GB", "gfx1032"),
    ],
)
def test_a_name_means_its_target(text: str, target: str) -> None:
    assert target_id(text, TABLE) == target


def test_every_name_finds_its_target_however_it_is_spelt() -> None:
    mixed = random.Random(0)
    spellings = product(
        PAIRS,
        ["", "AMD ", "amd", "Radeon ", "AMD Radeon(TM) ", "  "],
        ["", " Graphics", "graphics", " Series", " "],
        ["", " ", "-", "_", "  "],
    )
    for (name, target), before, after, between in spellings:
        spelt = before + name.replace(" ", between) + after
        text = "".join(mixed.choice((one.upper(), one.lower())) for one in spelt)
        assert target in [one.target for one in find(text, TABLE)], text


@given(text=st.text(max_size=120) | st.from_regex(r"[A-Za-z0-9 :+()\[\]x-]{0,30}", fullmatch=True))
def test_any_text_means_a_target_or_is_refused_in_words(text: str) -> None:
    try:
        name, *features = target_id(text, TABLE).split(":")
        assert name in {one.target for one in TABLE.gpus}
        assert all(re.fullmatch(r"[a-z]+[+-]", one) for one in features)
    except InputError as error:
        assert error.message
        assert error.cause
        assert error.next_step


@each(
    ("text", "maker"),
    [
        ("RTX 4090", "NVIDIA"),
        ("rtx4090", "NVIDIA"),
        ("NVIDIA GeForce GT 1030", "NVIDIA"),
        ("H100", "NVIDIA"),
        ("10de:2684", "NVIDIA"),
        ("Arc A770", "Intel"),
        ("arca770", "Intel"),
        ("8086:56a0", "Intel"),
        ("Apple M4 Max", "Apple"),
        ("1234:5678", "PCI vendor 1234"),
    ],
)
def test_a_card_of_another_maker_is_told_to_be_one(text: str, maker: str) -> None:
    with pytest.raises(InputError, match=f"is a GPU of another maker: {maker}"):
        find(text, TABLE)


@each(("name", "target"), PAIRS)
def test_no_name_of_amd_is_taken_for_another_makers(name: str, target: str) -> None:
    alone = GpuTable((), TABLE.makers)
    with pytest.raises(InputError, match="unknown GPU target"):
        find(name, alone)


@each(
    ("text", "each"),
    [
        ("strix", ["gfx1150 (Strix Point", "gfx1151 (Strix Halo"]),
        ("Radeon 840M", ["gfx1152 (Radeon 840M", "gfx1153 (Radeon 840M"]),
        ("5600M", ["gfx1010 (RX 5600M", "gfx1011 (Radeon Pro 5600M"]),
        ("vega", ["gfx803 (RX Vega M", "gfx900 (RX Vega 56", "gfx90c", "gfx906"]),
    ],
)
def test_a_name_of_several_lists_each_with_its_products(text: str, each: list[str]) -> None:
    with pytest.raises(
        InputError, match="means more than one target: " + ", ".join(one.split()[0] for one in each)
    ) as caught:
        find_one(text, TABLE)
    assert all(one in caught.value.cause for one in each), caught.value.cause


@each(
    ("text", "near"),
    [
        ("RX 5800 XT", "RX 5700 XT (gfx1010)"),
        ("RX 650", "RX 6500 (gfx1034)"),  # the number of a card is not begun with another
        ("Strixx Halo", "Strix Halo (gfx1151)"),
        ("gfx1104", "gfx1103"),
        ("790M", "Radeon 890M (gfx1150)"),
    ],
)
def test_a_near_miss_offers_the_nearest_names(text: str, near: str) -> None:
    with pytest.raises(InputError, match="unknown GPU target") as caught:
        find(text, TABLE)
    assert near in caught.value.cause


@each(
    ("text", "name", "kernel"),
    [
        ("R9 290", "GCN 2 (Sea Islands)", "amdgpu.cik_support=1"),
        ("AMD Radeon HD 7970 3GB", "GCN 1 (Southern Islands)", "amdgpu.si_support=1"),
        ("Tahiti XT [Radeon HD 7970/8970 OEM / R9 280X]", "GCN 1 (Southern Islands)", "amdgpu.si_support=1"),
        ("Kaveri [Radeon R7 Graphics] [1002:130c]", "GCN 2 (Sea Islands)", "amdgpu.cik_support=1"),
        ("hawaii", "GCN 2 (Sea Islands)", "amdgpu.cik_support=1"),
        ("gfx701", "GCN 2 (Sea Islands)", "amdgpu.cik_support=1"),
        ("1002:67b0", "GCN 2 (Sea Islands)", "amdgpu.cik_support=1"),
        ("67B0", "GCN 2 (Sea Islands)", "amdgpu.cik_support=1"),
        ("R9 380 4GB", "GCN 3 before Fiji (Volcanic Islands)", "Vulkan"),
    ],
)
def test_a_card_that_rocm_never_ran_on_is_told_with_what_does(text: str, name: str, kernel: str) -> None:
    with pytest.raises(InputError) as caught:
        find(text, replace(TABLE, without="use Vulkan"))
    assert str(caught.value) == f"ROCm does not run on {text!r}: {name}"
    assert caught.value.next_step.startswith("use Vulkan")
    assert kernel in caught.value.next_step
    with pytest.raises(InputError) as caught:
        find(text, TABLE)
    assert "rocwheel targets" in caught.value.next_step


def test_no_card_is_both_supported_and_not() -> None:
    for old in TABLE.unsupported:
        for said in (*old.names, *old.targets, *old.pci_ids):
            with pytest.raises(InputError, match="ROCm does not run on"):
                find(said, TABLE)


def test_a_pci_id_that_is_unknown_and_a_text_that_is_too_long_say_so() -> None:
    with pytest.raises(InputError, match="unknown GPU target") as caught:
        find("1002:ffff", TABLE)
    assert "no known GPU has the PCI id 1002:ffff" in caught.value.cause
    with pytest.raises(InputError) as caught:
        find("RX 580" * 100_000, TABLE)
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("text", ["strix", "RX 5800 XT", "RTX 4090", "nothing like it"])
def test_the_next_step_is_a_command_that_works(rocwheel: Command, text: str) -> None:
    with pytest.raises(InputError) as caught:
        find_one(text, TABLE)
    [said] = re.findall(r"rocwheel (targets(?: gfx\w+)?)", caught.value.next_step)
    assert rocwheel(*shlex.split(said)).returncode == 0


# the data
