from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel_samples.tables import each
from rocwright.execution.jobs import room as module
from rocwright.execution.jobs.room import Pressure, Sums, pressure_of, read_room, text
from rocwright.sandbox import cgroup
from rocwright.sandbox.cgroup import Cgroup

GIB = 1024**3
FULL = "some avg10=9.00 avg60=0 avg300=0 total=9\nfull avg10=12.50 avg60=0.00 avg300=0.00 total=2500000\n"


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 16 GiB of which 10 are free, without cgroups or pressure."""
    memory = f"MemTotal: {16 * GIB // 1024} kB\nHugePages_Total: 0\nMemAvailable: {10 * GIB // 1024} kB\n"
    (tmp_path / "meminfo").write_text(memory)
    monkeypatch.setattr(module, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(module, "PRESSURE", tmp_path / "pressure")
    monkeypatch.setattr(cgroup, "MOUNT", tmp_path / "cgroup")
    monkeypatch.setattr(cgroup, "places", lambda _: [])
    return tmp_path / "cgroup"


def first(folder: Path, limit: str, rss: int, cache: int = 0) -> Cgroup:
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").write_text(f"{limit}\n")
    (folder / "memory.stat").write_text(
        f"cache 1\nrss 1\ntotal_cache {cache}\ntotal_rss {rss}\ntotal_shmem 0\n"
    )
    return Cgroup(folder=folder, path="/x", version=1)


def second(folder: Path, limit: str, anon: int, high: str = "max") -> Cgroup:
    folder.mkdir(parents=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.high").write_text(f"{high}\n")
    (folder / "memory.stat").write_text(f"anon {anon}\nfile {3 * GIB}\nslab_unreclaimable 100\n")
    (folder / "memory.pressure").write_text(FULL)
    return Cgroup(folder=folder, path="/x", version=2)


def test_the_machine_alone_has_what_is_available_and_no_pressure_on_old_kernels(mount: Path) -> None:
    found = read_room(None, None)
    assert (found.total, found.used, found.available, found.bound) == (16 * GIB, 6 * GIB, 10 * GIB, "machine")
    assert found.pressure is None
    assert not mount.exists()


def test_the_limit_of_the_user_counts_what_the_build_has(mount: Path) -> None:
    group = first(mount / "build", "9223372036854771712", GIB)
    assert read_room(4 * GIB, group).available == 3 * GIB
    assert read_room(4 * GIB, None, own=3 * GIB).available == GIB
    assert read_room(4 * GIB, None, own=5 * GIB).available == 0
    assert read_room(4 * GIB, group).bound == "limit"


def test_what_processes_were_seen_to_have_counts_before_the_kernel_has_added_it_up(mount: Path) -> None:
    """Also what other builds have, where the bound is theirs too; a sandbox's own limit is not."""
    group = first(mount / "build", str(8 * GIB), GIB)
    assert read_room(None, group, own=3 * GIB, foreign=GIB).available == 5 * GIB
    above = first(mount / "user", str(6 * GIB), GIB)
    (mount / "user/build").mkdir()
    build = Cgroup(folder=mount / "user/build", path="/user/build", version=1)
    found = read_room(None, build, own=3 * GIB, foreign=GIB)
    assert (found.bound, found.available) == (str(above.folder), 2 * GIB)
    box = first(mount / "user/build/box", str(5 * GIB), GIB)
    assert read_room(None, build, [box.folder], own=5 * GIB).bound == str(above.folder)
    assert read_room(None, build, [box.folder], own=1 * GIB).bound == str(box.folder)


def test_what_else_is_in_a_cgroup_counts_also_where_the_kernel_has_not_added_up_yet(mount: Path) -> None:
    """Two builds hold 1 GiB of their own, beside the compilers: it is not hidden by what those came to."""
    first(mount / "user", str(8 * GIB), GIB)
    group = Cgroup(folder=mount / "user/build", path="/user/build", version=1)
    sums = Sums()
    assert read_room(None, group, sums=sums).available == 7 * GIB
    assert read_room(None, group, own=3 * GIB, foreign=GIB, sums=sums).used == 5 * GIB
    assert read_room(None, group, own=GIB, sums=sums).used == 2 * GIB


def test_the_limit_of_the_user_counts_files_in_memory_as_well(mount: Path) -> None:
    group = first(mount / "build", "9223372036854771712", GIB)
    sums = Sums()
    assert read_room(4 * GIB, group, sums=sums).available == 3 * GIB
    assert read_room(4 * GIB, group, own=2 * GIB, sums=sums).available == GIB


@given(st.integers(0, 100), st.lists(st.tuples(st.integers(0, 1000), st.one_of(st.none(), st.floats(0, 1)))))
def test_whenever_the_kernel_adds_up_what_does_not_change_is_known(
    rest: int, looks: list[tuple[int, float | None]]
) -> None:
    """At any time between two looks, also where processes end or begin in between."""
    sums, told, before = Sums(), rest, 0
    assert sums.now("x", told, 0) == rest
    for seen, when in looks:
        if when is not None:
            told = rest + round(before + when * (seen - before))
        assert sums.now("x", told, seen) == rest + seen
        before = seen


def test_what_changes_is_known_when_the_kernel_has_added_up() -> None:
    sums = Sums()
    assert [sums.now("x", told, 100) for told in (150, 150, 170, 130)] == [150, 150, 170, 130]
    # processes may share what they hold: it was counted twice
    assert sums.now("x", 90, 100) == 100
    assert sums.now("y", 90, 0) == 90


def test_file_cache_is_not_used_in_version_1(mount: Path) -> None:
    group = first(mount / "build", str(4 * GIB), GIB, cache=3 * GIB)
    found = read_room(None, group)
    assert (found.total, found.used, found.available) == (4 * GIB, GIB, 3 * GIB)
    assert found.bound == str(group.folder)


def test_file_cache_is_not_used_in_version_2_and_its_own_pressure_is_read(mount: Path) -> None:
    group = second(mount / "build", str(4 * GIB), GIB)
    found = read_room(None, group)
    assert found.available == 3 * GIB - 100
    assert found.pressure == Pressure(full=0.125, total=2.5)


def test_memory_high_slows_down_before_the_limit_kills(mount: Path) -> None:
    assert read_room(None, second(mount / "build", "max", GIB, high=str(2 * GIB))).total == 2 * GIB


def test_the_tightest_of_all_above_and_below_counts(mount: Path) -> None:
    second(mount / "user", str(6 * GIB), 5 * GIB)
    group = second(mount / "user" / "build", str(5 * GIB), GIB)
    assert read_room(None, group).bound == str(mount / "user")
    second(group.folder / "sandbox", str(2 * GIB), GIB + GIB // 2)
    found = read_room(None, group, [group.folder / "sandbox"])
    assert found.bound == str(group.folder / "sandbox")


def test_a_hybrid_machine_and_one_without_permission(mount: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 2 without a memory controller beside version 1: what cannot be read bounds nothing."""
    (mount / "unified").mkdir(parents=True)
    group = first(mount / "memory" / "build", str(4 * GIB), GIB)
    places = [Cgroup(folder=mount / "unified" / "any", path="/any", version=2)]
    monkeypatch.setattr(cgroup, "places", lambda _: places)
    assert read_room(None, group).available == 3 * GIB
    assert read_room(None, None).bound == "machine"
    secret = first(mount / "memory" / "secret", str(GIB), 0)
    (secret.folder / "memory.limit_in_bytes").chmod(0)
    if os.geteuid() != 0:
        assert read_room(None, secret).bound == "machine"


@each("text", ["", "\0\n", "full\n", "full avg10=x total=1\n", "some avg10=1 total=1\n", "full avg10=1"])
def test_pressure_that_says_nothing(text: str) -> None:
    assert pressure_of(text) is None


def test_this_machine_is_read() -> None:
    found = read_room(None, None)
    assert 0 < found.available <= found.total


def test_what_a_cgroup_uses_is_read_only_where_it_has_a_limit_of_its_own(
    mount: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def noted(path: Path | str) -> str:
        read.append(str(path))
        return text(path)

    monkeypatch.setattr(module, "text", noted)
    limited = [first(mount / "one/low", str(GIB), 1), second(mount / "two/low", str(GIB), 1)]
    first(mount / "one/high", str(2**63 - 4096), 1)
    second(mount / "two/high", str(64 * GIB), 1)
    read_room(None, None, [mount / one for one in ("one/high", "two/high", "one/low", "two/low")])
    assert {one for one in read if one.endswith("memory.stat")} == {
        str(one.folder / "memory.stat") for one in limited
    }
