"""Is this machine fit for a stack: what its server opens counts, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from rocbase.errors import CheckError
from rocwheel.wheels.detect import DetectedGpu
from rocwright.api.projects import project
from rocwright.catalog.load import builtin_catalog
from rocwright.diagnosis.facts import host_facts
from rocwright.diagnosis.machine.model import Machine
from rocwright.diagnosis.machine.rights import COMPUTE
from rocwright.diagnosis.machine.tree import Tree
from rocwright.doctor.this_machine import here
from rocwright.home import Home
from rocwright.serving import check, laid
from tests.diagnosis.machine.machines import POLARIS, machine

CATALOG = builtin_catalog()
RENDER = "/dev/dri/renderD128"


def polaris(tmp_path: Path, home: Home, may: Mapping[str, bool], *, kfd: bool = True) -> Machine:
    """A machine with an RX 580, and who may use which of its devices."""
    with Tree(machine(tmp_path / "machine", POLARIS, kfd=kfd)) as tree:
        found = here(tree, CATALOG, host_facts(), home)
    rights = [one.model_copy(update={"may": may.get(one.path, False)}) for one in found.rights]
    return found.model_copy(update={"rights": tuple(rights)})


def test_vulkan_needs_no_right_to_the_compute_node(tmp_path: Path, home: Home) -> None:
    found = polaris(tmp_path, home, {COMPUTE: False, RENDER: True})
    check.check_machine(found, CATALOG, "llama-vulkan", "gfx803", lambda _: None)
    with pytest.raises(CheckError, match="you may not use /dev/kfd"):
        check.check_machine(found, CATALOG, "llama-hip", "gfx803", lambda _: None)


def test_it_needs_the_render_node(tmp_path: Path, home: Home) -> None:
    found = polaris(tmp_path, home, {COMPUTE: True, RENDER: False})
    with pytest.raises(CheckError, match=f"you may not use {RENDER}") as refused:
        check.check_machine(found, CATALOG, "llama-vulkan", "gfx803", lambda _: None)
    assert COMPUTE not in refused.value.message


@pytest.mark.parametrize("stack", ["llama-vulkan", "whisper-vulkan", "stable-diffusion-vulkan"])
def test_no_stack_on_vulkan_misses_the_compute_node(tmp_path: Path, home: Home, stack: str) -> None:
    found = polaris(tmp_path, home, {RENDER: True}, kfd=False)
    check.check_machine(found, CATALOG, stack, "gfx803", lambda _: None)
    with pytest.raises(CheckError, match="there is no /dev/kfd"):
        check.check_machine(found, CATALOG, "llama-hip", "gfx803", lambda _: None)


@pytest.mark.parametrize(
    ("cards", "said"),
    [
        ([], ""),
        (["gfx803"], ""),
        (["gfx10d0", "gfx803"], ""),
        (["gfx10d0"], "nothing is built for it: gfx10d0 (1002:9999)"),
        ([None], "nothing is built for it: no known target (1002:9999)"),
    ],
)
def test_a_card_that_nothing_is_built_for_is_not_passed_over_in_silence(
    cards: list[str | None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [DetectedGpu(one, "1002:9999", "x") for one in cards]
    monkeypatch.setattr(check, "find_gpus", lambda catalog: found)
    assert check.unknown_cards(CATALOG).endswith(said) and bool(said) == bool(check.unknown_cards(CATALOG))


def test_a_stack_of_wheels_is_told_how_it_is_run(home: Home) -> None:
    meant = project("pytorch-wheels", "gfx1151", home=home.path)
    refused = laid.not_served(meant)
    assert refused.next_step == "rocwright run pytorch-wheels -- python x.py, or --shell, or --jupyter"
    assert "--shell" not in laid.not_served(project("rocm", "gfx1103", home=home.path)).next_step
