"""One matcher for what people call a GPU: products, code names, PCI ids, targets; and what is not AMD's."""

from __future__ import annotations

import random
import re
import shlex
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.errors import InputError
from rocwheel.wheels.devicecode.gpu import machines
from rocwheel.wheels.gpu_names import GpuTable, find, find_one, gpu_table, only_targets, target_id
from rocwheel_samples.command import Command
from rocwheel_samples.trees import write_tree

TABLE = gpu_table()
PAIRS = [(name, one.target) for one in TABLE.gpus for name in one.names]


@pytest.mark.parametrize(
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
        ("MI250X:xnack-:sramecc+", "gfx90a:sramecc+:xnack-"),
        ("1002:67df", "gfx803"),
        ("[1002:67DF]", "gfx803"),
        ("0x67df", "gfx803"),
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_no_name_of_amd_is_taken_for_another_makers(name: str, target: str) -> None:
    alone = GpuTable((), TABLE.makers)
    with pytest.raises(InputError, match="unknown GPU target"):
        find(name, alone)


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("one", TABLE.gpus, ids=lambda one: one.target)
def test_every_gpu_has_a_product_and_is_a_processor_that_code_can_name(one: object) -> None:
    assert getattr(one, "products", ())
    assert getattr(one, "target", "") in machines().values()


def test_of_some_processors_the_others_are_not_found() -> None:
    some = only_targets(TABLE, {"gfx803", "gfx700"})
    assert [one.target for one in some.gpus] == ["gfx803", "gfx700"]
    assert find_one("gfx700", some).target == "gfx700"
    with pytest.raises(InputError, match="unknown GPU target"):
        find("780M", some)


@pytest.mark.parametrize(
    "text",
    [
        "gpu = 3",
        "gpu = [3]",
        "[[gpu]]\ntarget = 3",
        '[[gpu]]\ntarget = "gfx1"\nproducts = "x"',
        '[[gpu]]\ntarget = "gfx1"\npci_ids = [1]',
        "[[maker]]\n",
        '[[maker]]\nname = "x"\nwords = [["y"]]',
    ],
)
def test_a_file_that_is_wrong_is_refused_by_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    write_tree(tmp_path, {"gpu_names.toml": text})
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(tmp_path))
    with pytest.raises(InputError, match=r"gpu_names\.toml: (gpu|maker)\.0 does not name"):
        gpu_table.__wrapped__()
