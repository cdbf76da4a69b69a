"""Memory as the machine, its cgroups and its pressure tell."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.diagnosis.machine.machines import GIB

from rocwheel_samples.trees import write_tree
from rocwright.diagnosis.machine.memory import read_memory
from rocwright.diagnosis.machine.model import Memory
from rocwright.diagnosis.machine.tree import Tree

TOTAL = f"MemTotal: {32 * GIB // 1024} kB\n"
MEMINFO = {"proc/meminfo": TOTAL + "MemAvailable: 1024 kB\nSwapTotal: 8 kB\nSwapFree: 4 kB\n"}
V1 = "31 22 0:35 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
V2 = "30 22 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
BESIDE = "39 22 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"


def read(root: Path, files: dict[str, str]) -> Memory:
    with Tree(write_tree(root, MEMINFO | files)) as tree:
        found = read_memory(tree)
    assert found is not None
    return found


def test_sizes_are_bytes(tmp_path: Path) -> None:
    found = read(tmp_path, {})
    assert (found.total, found.available, found.swap, found.swap_free) == (32 * GIB, 1024**2, 8192, 4096)
    assert (found.limit, found.cgroups, found.pressure) == (None, "none", None)


def test_the_least_limit_above_a_cgroup_of_version_2_counts(tmp_path: Path) -> None:
    files = {
        "proc/self/mountinfo": V2,
        "proc/self/cgroup": "0::/user.slice/session\n",
        "sys/fs/cgroup/user.slice/memory.max": f"{4 * GIB}\n",
        "sys/fs/cgroup/user.slice/session/memory.max": "max\n",
    }
    found = read(tmp_path, files)
    assert (found.limit, found.limited_by) == (4 * GIB, "/sys/fs/cgroup/user.slice/memory.max")
    assert found.cgroups == "v2"


@pytest.mark.parametrize(("mounts", "kind"), [(V1, "v1"), (V1 + BESIDE, "hybrid")])
def test_a_limit_of_version_1_counts_also_beside_version_2(tmp_path: Path, mounts: str, kind: str) -> None:
    files = {
        "proc/self/mountinfo": mounts,
        "proc/self/cgroup": "4:memory:/box\n0::/\n",
        "sys/fs/cgroup/memory/box/memory.limit_in_bytes": f"{2 * GIB}\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    }
    found = read(tmp_path, files)
    assert (found.limit, found.cgroups) == (2 * GIB, kind)


def test_a_container_sees_its_own_cgroup_as_the_root(tmp_path: Path) -> None:
    files = {
        "proc/self/mountinfo": "30 22 0:30 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
        "proc/self/cgroup": "0::/docker/abc\n",
        "sys/fs/cgroup/memory.max": f"{GIB}\n",
    }
    assert read(tmp_path, files).limit == GIB


def test_pressure_is_read_where_the_kernel_tells_it(tmp_path: Path) -> None:
    files = {"proc/pressure/memory": "some avg10=12.50 avg60=1.00 avg300=0.10 total=5\nfull avg10=0.00\n"}
    assert read(tmp_path, files).pressure == 12.5


def test_a_kernel_that_tells_no_memory_is_no_crash(tmp_path: Path) -> None:
    with Tree(tmp_path) as tree:
        assert read_memory(tree) is None


@pytest.mark.parametrize(("folder", "delegated"), [("user/own", True), ("user", True), ("other", False)])
def test_a_cgroup_is_delegated_if_one_may_be_made_below_it_or_next_to_it(
    folder: str, delegated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tree, "live", True, raising=False)
    files = {"proc/self/mountinfo": V2, "proc/self/cgroup": "0::/user/own\n"}
    files[f"sys/fs/cgroup/{folder}/cgroup.procs"] = ""
    assert read(tmp_path, files).delegated is delegated
