"""What is said of whole machines."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocbase.errors import InputError
from rocwright.catalog.load import builtin_catalog
from rocwright.diagnosis.facts import host_facts
from rocwright.diagnosis.machine.model import Group, Right
from rocwright.diagnosis.machine.tree import Tree
from rocwright.doctor.doctor import DoctorReport, examine
from rocwright.doctor.findings.model import DoctorFinding
from rocwright.doctor.this_machine import here, only
from rocwright.home import Home
from tests.diagnosis.machine.machines import (
    GIB,
    NAVI31,
    NAVI31_TOO,
    NVIDIA,
    PHOENIX,
    POLARIS,
    STRIX_HALO,
    machine,
)

CATALOG, FACTS = builtin_catalog(), host_facts()
EVERY = tuple(CATALOG.stacks)
# Of each kind that findings tell apart; each costs its plan.
SOME = ("pytorch", "llama-hip", "llama-vulkan", "ollama")


def report(root: Path, *stacks: str) -> DoctorReport:
    with Tree(root) as tree:
        found = here(tree, CATALOG, FACTS, Home(root / "home"))
    return examine(found, CATALOG, FACTS, stacks or EVERY)


def named(root: Path, name: str, *stacks: str) -> list[DoctorFinding]:
    return [one for one in report(root, *(stacks or SOME)).findings if one.name == name and one.grade != "ok"]


def test_a_machine_without_amd_is_told_what_it_has(tmp_path: Path) -> None:
    [one] = named(machine(tmp_path, NVIDIA, kfd=False), "no-gpu")
    assert (one.grade, one.what) == ("note", "no AMD GPU; others: 10de:2684 (nvidia)")


def test_a_card_that_no_driver_took_is_an_error(tmp_path: Path) -> None:
    root = machine(tmp_path, replace(POLARIS, driver="", minor=None), kfd=False)
    [one] = named(root, "not-driven")
    assert one.grade == "error"
    assert one.remedy == "sudo modprobe amdgpu"


def test_a_card_that_the_compute_driver_refused_is_an_error_but_not_for_vulkan(tmp_path: Path) -> None:
    [one] = named(machine(tmp_path, replace(POLARIS, version=0)), "not-in-topology")
    assert one.grade == "error"
    assert "llama-vulkan" not in one.stacks
    assert "llama-hip" in one.stacks


def test_no_compute_device_at_all_is_told(tmp_path: Path) -> None:
    assert [one.what for one in named(machine(tmp_path, POLARIS, kfd=False), "no-kfd")] == [
        "there is no /dev/kfd"
    ]


def test_half_a_topology_names_the_node(tmp_path: Path) -> None:
    root = machine(tmp_path, PHOENIX, NAVI31)
    (root / "sys/class/kfd/kfd/topology/nodes/2/properties").unlink()
    [one] = named(root, "half-topology")
    assert one.what == "3 nodes in the topology, but without their properties: 2"


def test_an_apu_beside_a_card_is_pointed_out_with_the_cards_number(tmp_path: Path) -> None:
    (behind,) = named(machine(tmp_path / "behind", PHOENIX, NAVI31), "several-gpus")
    (before,) = named(machine(tmp_path / "before", NAVI31, PHOENIX), "several-gpus")
    assert behind.remedy == "export ROCR_VISIBLE_DEVICES=1"
    assert before.remedy == "export ROCR_VISIBLE_DEVICES=0"


def test_the_worst_is_said_first(tmp_path: Path) -> None:
    grades = [one.grade for one in report(machine(tmp_path, replace(POLARIS, version=0))).findings]
    assert grades == sorted(grades, key=("error", "warning", "note", "ok").index)


def test_an_empty_tree_is_no_crash(tmp_path: Path) -> None:
    assert [one.name for one in report(tmp_path).findings] == ["sub-ids", "no-memory-told", "no-gpu"]


# rights


def with_device_of(root: Path, group: Group, mode: int = 0o660) -> list[DoctorFinding]:
    """What is said of a compute device of that group to a user who is not in it."""
    with Tree(machine(root, POLARIS)) as tree:
        found = here(tree, CATALOG, FACTS, Home(root))
    closed = Right(path="/dev/kfd", there=True, group=group, mode=mode, may=False)
    judged = examine(found.model_copy(update={"rights": (closed,)}), CATALOG, FACTS, SOME)
    return [one for one in judged.findings if one.name in ("rights", "nameless-group")]


def test_the_group_of_a_device_that_is_closed_is_named_by_number_and_joined_safely(tmp_path: Path) -> None:
    [one] = with_device_of(tmp_path, Group(gid=992, name="render"))
    assert (one.grade, one.safe, one.remedy) == ("error", True, "sudo usermod -aG render grace")
    assert one.what == "you may not use /dev/kfd (group 992 render, mode 660)"


def test_a_group_that_would_not_help_is_not_offered(tmp_path: Path) -> None:
    [one] = with_device_of(tmp_path, Group(gid=992, name="render"), mode=0o600)
    assert (one.safe, one.remedy) == (False, "")


def test_a_group_without_a_name_here_is_told_by_number(tmp_path: Path) -> None:
    rights, nameless = with_device_of(tmp_path, Group(gid=108))
    assert (rights.remedy, rights.safe) == ("", False)
    assert nameless.what == "no group here has the number 108"


# a driver that hangs


def test_a_driver_that_hangs_costs_its_folder_and_nothing_else(tmp_path: Path) -> None:
    root = machine(tmp_path, STRIX_HALO, kernel="6.18.9")
    firmware = root / "sys/bus/pci/devices" / STRIX_HALO.address / "fw_version/mes_fw_version"
    firmware.unlink()
    os.mkfifo(firmware)
    with Tree(root, limit=0.3) as tree:
        found = here(tree, CATALOG, FACTS, Home(root))
    [gpu] = found.gpus
    assert (gpu.target, gpu.gtt, gpu.firmware) == ("gfx1151", STRIX_HALO.gtt, {})
    assert [one.why for one in found.unread] == ["no answer in 0.3 s"]


# kernel, firmware, bus, graphics memory


@pytest.mark.parametrize(
    ("kernel", "name", "grade"),
    [
        ("6.14.0-29-generic", "kernel-bad", "error"),
        ("5.15.0", "kernel-unknown", "warning"),
        ("6.12.25-arch1", "kernel", "ok"),
        ("6.8.0-40-generic", "kernel", "ok"),
    ],
)
def test_a_polaris_card_is_known_to_fail_with_some_kernels(
    tmp_path: Path, kernel: str, name: str, grade: str
) -> None:
    root = machine(tmp_path, POLARIS, kernel=kernel)
    assert [(one.name, one.grade) for one in report(root).findings if "kernel" in one.name] == [(name, grade)]


@pytest.mark.parametrize(
    ("version", "grade"), [("0x00000083", "error"), ("0x00000080", "ok"), ("0x1083", "error")]
)
def test_a_firmware_is_known_to_be_bad(tmp_path: Path, version: str, grade: str) -> None:
    root = machine(tmp_path, replace(STRIX_HALO, firmware={"mes_fw_version": version}), kernel="6.18.9")
    assert [one.grade for one in report(root).findings if one.name == "firmware"] == [grade]


def test_a_firmware_that_cannot_be_read_is_unknown_and_not_good(tmp_path: Path) -> None:
    root = machine(tmp_path, replace(STRIX_HALO, firmware=None))
    assert [one.grade for one in named(root, "firmware-unknown")] == ["note"]


def test_atomics_of_the_bus_matter_to_the_card_that_needs_them(tmp_path: Path) -> None:
    links = {
        f"sys/class/kfd/kfd/topology/nodes/{node}/io_links/0/properties": "flags 13\n" for node in (1, 2)
    }
    root = machine(tmp_path, POLARIS, NAVI31, more=links)
    [one] = [one for one in report(root).findings if one.name == "link"]
    assert one.grade == "error"
    assert one.what.startswith("gfx803")


def test_atomics_that_cannot_be_read_are_said_to_be_unknown(tmp_path: Path) -> None:
    [one] = named(machine(tmp_path, POLARIS), "link")
    assert (one.grade, "cannot be read" in one.what) == ("note", True)


def test_an_apu_that_reaches_half_of_the_memory_is_told_how_to_reach_more(tmp_path: Path) -> None:
    root = machine(tmp_path, STRIX_HALO, memory=124 * GIB)
    [one] = named(root, "graphics-memory")
    assert one.grade == "note"
    assert f"ttm pages_limit={120 * GIB // 4096}'" in one.remedy
    assert not one.safe
    [wanted] = named(root, "graphics-memory", "ollama")
    assert "96.00 GiB" in wanted.what


def test_an_apu_that_reaches_most_of_the_memory_is_well(tmp_path: Path) -> None:
    apu = replace(STRIX_HALO, gtt=120 * GIB)
    limit = {"sys/module/ttm/parameters/pages_limit": f"{120 * GIB // 4096}\n"}
    root = machine(tmp_path, apu, memory=124 * GIB, more=limit)
    assert named(root, "graphics-memory") == []
    assert named(root, "page-limit") == []


def test_a_page_limit_below_the_size_of_gtt_is_told(tmp_path: Path) -> None:
    root = machine(tmp_path, replace(STRIX_HALO, gtt=120 * GIB), memory=124 * GIB)
    assert [one.grade for one in named(root, "page-limit")] == ["warning"]


def test_a_card_with_memory_of_its_own_needs_no_page_limit(tmp_path: Path) -> None:
    assert named(machine(tmp_path, NAVI31), "graphics-memory") == []


def test_who_may_make_no_cgroup_is_told_what_that_costs(tmp_path: Path) -> None:
    with Tree(machine(tmp_path)) as tree:
        found = here(tree, CATALOG, FACTS, Home(tmp_path))
    assert found.memory is not None and found.memory.delegated is None
    told = {}
    for delegated in (None, True, False):
        memory = found.memory.model_copy(update={"delegated": delegated})
        judged = examine(found.model_copy(update={"memory": memory}), CATALOG, FACTS, SOME)
        told[delegated] = [one.grade for one in judged.findings if one.name == "no-delegation"]
    assert told == {None: [], True: [], False: ["warning"]}


# surroundings


def test_user_namespaces_that_are_off_are_told_to_a_user(tmp_path: Path) -> None:
    more = {"proc/sys/user/max_user_namespaces": "0\n", "proc/sys/kernel/unprivileged_userns_clone": "1\n"}
    assert [one.what for one in named(machine(tmp_path, more=more), "setting")] == [
        "/proc/sys/user/max_user_namespaces is 0"
    ]


def test_a_user_without_ranges_for_rootless_engines_is_told_how_to_get_them(tmp_path: Path) -> None:
    [one] = named(machine(tmp_path / "without"), "sub-ids")
    # a root file system is made with them, and a build without one
    assert one.grade == "error" and one.remedy.endswith(" grace")
    ranges = {"etc/subuid": "grace:100000:65536\n", "etc/subgid": "1000:100000:65536\n"}
    assert named(machine(tmp_path / "with", more=ranges), "sub-ids") == []


def test_variables_that_leak_are_told_and_others_are_not_kept(tmp_path: Path) -> None:
    more = {"proc/self/environ": "HSA_OVERRIDE_GFX_VERSION=11.0.0\0TOKEN=secret\0PYTHONPATH=\0"}
    root = machine(tmp_path, more=more)
    [one] = named(root, "variable")
    assert (one.grade, one.remedy) == ("warning", "unset HSA_OVERRIDE_GFX_VERSION")
    assert "secret" not in report(root).model_dump_json()


def test_an_override_to_the_cards_own_identity_is_no_warning(tmp_path: Path) -> None:
    more = {"proc/self/environ": "HSA_OVERRIDE_GFX_VERSION=8.0.3\0"}
    assert [one.grade for one in named(machine(tmp_path / "own", POLARIS, more=more), "variable")] == ["note"]
    other = machine(tmp_path / "other", NAVI31, more=more)
    assert [one.grade for one in named(other, "variable")] == ["warning"]


def test_what_pip_is_configured_to_is_told(tmp_path: Path) -> None:
    more = {"etc/pip.conf": "[global]\nextra-index-url = https://example.org/simple\ntimeout = 5\n"}
    [one] = named(machine(tmp_path, more=more), "configured")
    assert one.what == "/etc/pip.conf: extra-index-url = https://example.org/simple"


def test_a_folder_of_rocm_is_told(tmp_path: Path) -> None:
    root = machine(tmp_path, more={"opt/rocm/.info/version": "6.4.1\n"})
    assert [one.what for one in named(root, "folder")] == ["there is a /opt/rocm"]


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    root = machine(tmp_path)
    (root / "proc/pressure/memory").unlink()
    (root / "proc/pressure/memory").mkdir()
    assert [one.what for one in named(root, "unread")] == ["/proc/pressure/memory: Is a directory"]
    assert named(root, "no-pressure")


def test_too_little_memory_for_one_compiler_is_an_error_for_that_stack(tmp_path: Path) -> None:
    [one] = named(machine(tmp_path, memory=2 * GIB), "memory", "pytorch")
    assert one.grade == "error"
    assert named(machine(tmp_path / "more", memory=64 * GIB), "memory", "pytorch") == []


def test_what_is_too_little_for_some_stacks_is_told_for_those_alone(tmp_path: Path) -> None:
    found = named(machine(tmp_path, memory=2 * GIB), "memory")
    names = [name.split(" (")[0] for name in found[0].what.split("too little for ")[1].split(", ")]
    assert found[0].stacks == tuple(names)
    assert set(names) < set(SOME)


def test_engines_are_judged_where_they_were_tried(tmp_path: Path) -> None:
    with Tree(machine(tmp_path)) as tree:
        found = here(tree, CATALOG, FACTS, Home(tmp_path), {"podman": "not installed", "bubblewrap": ""})
    grades = [one.grade for one in examine(found, CATALOG, FACTS, SOME).findings if one.name == "engine"]
    assert grades == ["ok"]
    none = found.model_copy(update={"engines": {"podman": "not installed"}})
    [one] = [one for one in examine(none, CATALOG, FACTS, SOME).findings if one.name == "engine"]
    assert (one.grade, one.what) == ("error", "no sandbox works (podman: not installed)")


# what it can do


def able(root: Path) -> dict[tuple[str, str], tuple[str, bool]]:
    return {(one.target, one.stack): (one.how, one.row) for one in report(root).able}


def test_what_a_strix_halo_can_do_is_native_or_an_override_as_the_catalog_says(tmp_path: Path) -> None:
    found = able(machine(tmp_path, STRIX_HALO))
    assert found["gfx1151", "llama-hip"] == ("native", True)
    assert found["gfx1151", "vllm-spoof"][0] == "override"
    assert len(found) == len(EVERY)


def test_two_cards_of_one_kind_are_one_line_and_a_machine_without_amd_has_none(tmp_path: Path) -> None:
    assert len(able(machine(tmp_path / "two", NAVI31, NAVI31_TOO))) == len(EVERY)
    assert able(machine(tmp_path / "none", NVIDIA)) == {}


def test_a_gpu_that_is_asked_for_is_judged_alone(tmp_path: Path) -> None:
    with Tree(machine(tmp_path, PHOENIX, NAVI31)) as tree:
        found = here(tree, CATALOG, FACTS, Home(tmp_path))
    assert [gpu.target for gpu in only(found, {"gfx1103"}).gpus] == ["gfx1103"]
    assert only(found, ()) == found
    with pytest.raises(InputError, match="gfx803 is not in this machine"):
        only(found, {"gfx803"})


def test_what_no_release_serves_says_why_and_what_no_recipe_says_is_unknown(tmp_path: Path) -> None:
    found = {one.stack: one for one in report(machine(tmp_path, POLARIS)).able}
    assert found["ollama"].how == "not served"
    assert found["ollama"].why.endswith(" more")
    assert found["llama-vulkan"].need.disk > 0


def test_what_a_card_has_not_is_weighed_in_what_it_can_do(tmp_path: Path) -> None:
    found = {one.stack: one for one in report(machine(tmp_path, POLARIS)).able}
    assert (found["vllm"].how, found["vllm"].lacks) == ("not served", {"flash-attention": "no"})
    assert not found["llama-vulkan"].lacks


def test_what_building_for_a_card_took_others_stands_where_no_recipe_says_it(tmp_path: Path) -> None:
    found = {one.stack: one for one in report(machine(tmp_path, PHOENIX)).able}
    takes = CATALOG.target("gfx1103").takes
    assert takes.jobs == 8
    for one in found.values():
        assert one.others == (None if one.need.disk else takes)
        assert one.jobs <= takes.jobs
    assert {one.others is None for one in found.values()} == {True, False}


JUNK = (
    "proc/self/status",
    "proc/self/cgroup",
    "proc/self/mountinfo",
    "proc/meminfo",
    "proc/cmdline",
    "etc/modprobe.d/gpu.conf",
    "run/.containerenv",
    "var/log/dmesg",
    "var/lib/dkms/amdgpu/1/build/make.log",
    "proc/pressure/memory",
    "proc/sys/kernel/osrelease",
    "etc/passwd",
    "etc/group",
    "etc/docker/daemon.json",
    "sys/devices/system/cpu/online",
    "sys/module/ttm/parameters/pages_limit",
    "sys/class/kfd/kfd/topology/nodes/1/properties",
)
WORDS = st.sampled_from(
    (
        "Uid:",
        "Groups:",
        "MemTotal:",
        "kB",
        "-1",
        "²",
        "0-x",
        "1,",
        ":",
        "::",
        " - ",
        "cgroup2",
        "/",
        "\n",
        "x:y:z",
        "options",
        "amdgpu.mes=",
        "Linux version ",
    )
)
TEXTS = st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=12).map(" ".join))


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from(JUNK), TEXTS, min_size=1))
def test_junk_in_the_kernels_files_is_no_crash(junk: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = machine(Path(folder), STRIX_HALO)
        for name, text in junk.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(text.encode(errors="replace"))
        assert report(root, "llama-hip").findings
