"""What the kernels of a wheel take of their processors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rocwheel.cli.inspect import command
from rocwheel.wheels.audit.resources import resources
from rocwheel_samples.fatbin import host_elf, write_wheel
from rocwheel_samples.gpu_assembly import assemble, kernel_source


def code(folder: Path, name: str, target: str, **told: int) -> bytes:
    """One kernel of that name for `target`, that spills where it has scratch."""
    spills = {"vgpr_spill_count": 3} if told.get("private_segment_fixed_size") else {}
    wide = {"wavefront_size32": 1} if target.startswith("gfx11") else {}
    source = kernel_source(
        name, descriptor={**wide, **told}, metadata={"max_flat_workgroup_size": 256, **spills}
    )
    return assemble(folder, source, target, name=name).read_bytes()


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    small = code(tmp_path, "small", "gfx1103", group_segment_fixed_size=1024)
    large = code(tmp_path, "large", "gfx1103", next_free_vgpr=200, private_segment_fixed_size=64)
    old = code(tmp_path, "old", "gfx803", next_free_vgpr=100)
    files = {"x/small.hsaco": small, "x/large.hsaco": large, "x/old.hsaco": old}
    return write_wheel(tmp_path / "x-1-py3-none-any.whl", files)


def test_the_most_of_each_resource_is_told_with_the_kernel_that_takes_it(wheel: Path) -> None:
    new, old = resources(wheel)
    assert (new.target, new.kernels, new.spilling, new.scratch, new.excesses) == ("gfx1103", 2, 1, 1, ())
    by_name = {one.resource: one for one in new.uses}
    registers, lds, scratch = by_name["vector registers"], by_name["LDS"], by_name["scratch"]
    assert (registers.median, registers.most, registers.limit, registers.kernel) == (8, 200, 256, "large")
    assert (lds.most, lds.limit, lds.kernel) == (1024, 65536, "small")
    assert (scratch.most, scratch.kernel) == (64 * 32, "large")
    assert (old.target, old.kernels, {one.resource: one.most for one in old.uses}["vector registers"]) == (
        "gfx803",
        1,
        100,
    )


def test_the_fewest_waves_that_a_unit_holds_are_told(wheel: Path) -> None:
    new, old = resources(wheel)
    # 1,024 registers given out by 16: 208 for the large kernel, so four waves; of 256 by 4 two of 100 fit
    waves = [next(one for one in each.uses if one.resource == "waves") for each in (new, old)]
    assert [(one.most, one.limit, one.kernel) for one in waves] == [(4, 16, "large"), (2, 10, "old")]


def test_a_kernel_that_asks_for_more_than_there_is_is_an_excess(tmp_path: Path) -> None:
    (tmp_path / "k.hsaco").write_bytes(code(tmp_path, "greedy", "gfx1103", group_segment_fixed_size=100_000))
    (found,) = resources(tmp_path / "k.hsaco")
    assert found.excesses == ("greedy: a work-group takes 100,000 bytes of LDS; gfx1103 has 65,536",)


def test_a_table_and_json_say_the_same(wheel: Path) -> None:
    shown = CliRunner().invoke(command, ["--resources", str(wheel)])
    assert shown.exit_code == 0, shown.output
    assert "gfx1103: 2 kernels; 1 move registers to memory, 1 use scratch" in shown.output
    assert "gfx803: 1 kernel; " in shown.output
    row = next(line.split() for line in shown.output.splitlines() if line.startswith("vector registers"))
    assert row == ["vector", "registers", "a", "work-item", "8", "200", "256", "large"]
    told = json.loads(CliRunner().invoke(command, ["--resources", "--json", str(wheel)]).output)
    assert [(one["target"], one["kernels"], len(one["uses"])) for one in told] == [
        ("gfx1103", 2, 5),
        ("gfx803", 1, 5),
    ]


def test_a_file_without_kernels_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "k.so").write_bytes(host_elf(b"x", name=b".text"))
    assert (
        CliRunner()
        .invoke(command, ["--resources", str(tmp_path / "k.so")])
        .output.startswith("no kernels in")
    )
