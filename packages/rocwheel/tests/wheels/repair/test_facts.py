"""The table of what ROCm's libraries load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rocbase.errors import InputError
from rocbase.toml.folders import read_table
from rocwheel.tables import DATA
from rocwheel.wheels.repair.facts import matches, the_facts
from rocwheel_samples.tables import each


def test_libraries_are_known_by_their_files_in_any_version() -> None:
    facts = the_facts()
    for name in ("librocblas.so", "librocblas.so.4", "librocblas.so.4.4.60403"):
        known = facts.elf_library(name)
        assert known is not None
        assert known.name == "librocblas"
    assert facts.elf_library("librocblas_other.so.1") is None


@each(
    ("name", "known"),
    [
        ("amdhip64_7.dll", "libamdhip64"),
        ("rocblas.dll", "librocblas"),
        ("libhipblaslt.dll", "libhipblaslt"),
        ("MIOpen.dll", "libMIOpen"),
        ("hipblas.dll", "libhipblas"),
    ],
)
def test_dlls_are_known_by_patterns_without_case(name: str, known: str) -> None:
    for one in (name, name.upper()):
        found = the_facts().dll_library(one)
        assert found is not None
        assert found.name == known


def test_what_no_wheel_may_bring_says_why() -> None:
    facts = the_facts()
    for name in (
        "libpython3.11.so.1.0",
        "libGL.so.1",
        "libibverbs.so.1",
        "KERNEL32.dll",
        "api-ms-win-core-x.dll",
    ):
        assert facts.why_never(name)
    for name in ("libamdhip64.so.6", "libdrm.so.2", "amdhip64_7.dll"):
        assert facts.why_never(name) == ""


def test_torch_brings_its_own_where_it_is_required() -> None:
    facts = the_facts()
    assert facts.brought_by("libc10_hip.so", ["numpy", "torch"]) == "torch"
    assert facts.brought_by("libc10_hip.so", ["numpy"]) == ""
    assert facts.brought_by("libamdhip64.so.6", ["torch"]) == ""


def test_every_row_says_where_it_is_from() -> None:
    table: Any = read_table(DATA / "libraries.toml")
    rows = [*table["library"], *table["elsewhere"], *table["never"], table["layout"]]
    assert all(row["source"] and all(text.strip() for text in row["source"]) for row in rows)
    reads = [read for row in table["library"] for read in row.get("reads", [])]
    assert all(not at.startswith(("/", "../../")) for read in reads for at in read["at"])


def test_a_users_own_table_stands_over_the_carried_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libraries.toml").write_text('[[library]]\nname = "libnew"\nsource = ["a test"]\n')
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(tmp_path))
    the_facts.cache_clear()
    try:
        assert the_facts().elf_library("libnew.so.1") is not None
        assert the_facts().elf_library("librocblas.so.4") is not None
        (tmp_path / "libraries.toml").write_text('[[library]]\nname = "libnew"\n')
        the_facts.cache_clear()
        with pytest.raises(InputError, match=r"libraries\.toml"):
            the_facts()
    finally:
        the_facts.cache_clear()


def test_patterns_mind_the_case_of_elf_names_only() -> None:
    assert matches("ROCBLAS.DLL", ("rocblas.dll",))
    assert not matches("LIBX.so", ("libx.so",))
