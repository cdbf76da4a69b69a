"""Choosing a GPU: by name, by commas, or the one that is in the machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.catalog.test_detect import CPU, card, node

from rocbase.errors import InputError
from rocwheel_samples.trees import write_tree
from rocwright.api.gpus import (
    chosen_targets,
    code_target,
    code_targets,
    gpus_here,
    target,
)


def test_auto_takes_the_gpu_that_is_there(tmp_path: Path) -> None:
    sysfs = write_tree(tmp_path, CPU | node(1, 110003, 24, 0x15BF) | node(2, 80003, 144, 0x67DF))
    assert chosen_targets(["auto"], print, sysfs=sysfs) == ("gfx803",)
    assert chosen_targets([], print, sysfs=sysfs) == ("gfx803",)


def test_auto_takes_a_stand_in_where_no_gpu_is(tmp_path: Path) -> None:
    told: list[str] = []
    assert chosen_targets(["auto"], told.append, sysfs=tmp_path) == ("gfx1151",)
    assert told == ["no AMD GPU found here: building for gfx1151"]


def test_auto_passes_over_a_gpu_that_the_catalog_does_not_know(tmp_path: Path) -> None:
    sysfs = write_tree(tmp_path, CPU | node(1, 999999, 500, 1) | node(2, 80003, 144, 0x67DF))
    assert chosen_targets(["auto"], print, sysfs=sysfs) == ("gfx803",)


def test_gpus_are_given_one_by_one_or_with_commas_and_each_counts_once(tmp_path: Path) -> None:
    asked = ["gfx803,gfx1151", "gfx803", "auto"]
    assert chosen_targets(asked, print, sysfs=tmp_path) == ("gfx803", "gfx1151")


@pytest.mark.parametrize("asked", ["gfx", "gfx115l", "RX 5800", "auto,gfx9999"])
def test_an_unknown_gpu_is_refused(tmp_path: Path, asked: str) -> None:
    with pytest.raises(InputError, match="unknown GPU target"):
        chosen_targets([asked], print, sysfs=tmp_path)


@pytest.mark.parametrize("asked", [[","], ["", ","]])
def test_no_gpu_at_all_is_refused_or_found(tmp_path: Path, asked: list[str]) -> None:
    assert chosen_targets(asked, print, sysfs=tmp_path) == ("gfx1151",)


def test_gpus_are_chosen_by_what_people_call_them(tmp_path: Path) -> None:
    asked = ["RX 580, 780m", "strixhalo", "1002:67df"]
    assert chosen_targets(asked, print, sysfs=tmp_path) == ("gfx803", "gfx1103", "gfx1151")


def test_a_name_of_several_targets_is_refused_with_all_of_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="more than one target") as caught:
        chosen_targets(["strix"], print, sysfs=tmp_path)
    assert "gfx1150 (Strix Point" in caught.value.cause
    assert "gfx1151 (Strix Halo" in caught.value.cause


def test_the_strongest_gpu_of_the_machine_is_the_one_here(tmp_path: Path) -> None:
    sysfs = write_tree(tmp_path, CPU | node(1, 110003, 24, 0x15BF) | node(2, 80003, 144, 0x67DF))
    assert gpus_here(sysfs=sysfs) == ("gfx803", "gfx1103")
    assert target("auto", sysfs=sysfs).name == "gfx803"
    assert code_target("auto", sysfs=sysfs) == "gfx803"
    assert code_targets(["auto", "gfx90a:xnack-"], sysfs=sysfs) == ("gfx803", "gfx1103", "gfx90a:xnack-")


def test_where_no_gpu_is_known_that_which_was_seen_is_told(tmp_path: Path) -> None:
    for sysfs, told in (
        (write_tree(tmp_path / "one", card(0, "0x1002", "0xffff")), "unknown target (1002:ffff)"),
        (tmp_path, "neither the kernel's KFD topology"),
    ):
        with pytest.raises(InputError, match="no AMD GPU that is known") as caught:
            code_targets(["auto"], sysfs=sysfs)
        assert told in caught.value.cause


def test_machine_code_may_be_meant_of_a_processor_that_the_catalog_has_no_facts_of() -> None:
    assert code_target("gfx700") == "gfx700"
    assert code_target("gfx11-generic") == "gfx11-generic"
    assert code_target("MI250X:xnack-:sramecc+") == "gfx90a:sramecc+:xnack-"
    with pytest.raises(InputError, match="ROCm does not run on"):
        target("gfx700")
