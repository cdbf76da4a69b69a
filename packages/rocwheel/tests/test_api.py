"""What Python programs call, and the README's block of it."""

from __future__ import annotations

import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import pytest

import rocwheel
from rocbase.errors import CheckError, InputError
from rocwheel_samples.fatbin import entry_id, fatbin, gpu_elf, host_elf, plain_bundle
from rocwheel_samples.wheel import make_wheel

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel with a library that has code for gfx1151, and a file with some for gfx803."""
    bundle = plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A))])
    kernels = {"torch/new.co": gpu_elf(0x4A), "torch/old.co": gpu_elf(0x2A)}
    return make_wheel(tmp_path, "torch", files={"torch/lib.so": host_elf(fatbin([bundle])), **kernels})


def test_a_name_of_a_card_is_its_target() -> None:
    assert rocwheel.target("RX 580") == "gfx803"
    assert rocwheel.target("MI250X:xnack-") == "gfx90a:xnack-"
    with pytest.raises(InputError):
        rocwheel.target("GeForce 4090")


def test_what_is_in_a_wheel_is_told_and_whether_it_runs(wheel: Path) -> None:
    found = {one.path: one.targets[0].target_id for one in rocwheel.inspect(str(wheel)).libraries}
    assert found == {"torch/lib.so": "gfx1151", "torch/new.co": "gfx1151", "torch/old.co": "gfx803"}
    judged = {one.path: str(one.verdict) for one in rocwheel.runs_on(wheel, "Strix Halo")}
    assert judged == {"torch/lib.so": "native", "torch/new.co": "native", "torch/old.co": "not at all"}


def test_a_wheel_is_made_smaller_and_brought_into_its_one_form(wheel: Path, tmp_path: Path) -> None:
    small = rocwheel.slim(wheel, gpu="Strix Halo")
    assert [one.path for one in rocwheel.inspect(small.out).libraries] == ["torch/lib.so", "torch/new.co"]
    (tmp_path / "once").mkdir()
    assert rocwheel.diff(wheel, rocwheel.canonicalize(wheel, tmp_path / "once").path).same


def test_what_is_damaged_is_told_by_its_class(tmp_path: Path) -> None:
    (tmp_path / "torch-1.0-py3-none-any.whl").write_bytes(b"PK")
    with pytest.raises((CheckError, InputError)) as caught:
        rocwheel.inspect(tmp_path / "torch-1.0-py3-none-any.whl")
    assert caught.value.next_step


def test_the_block_of_the_readme_runs(wheel: Path, tmp_path: Path) -> None:
    [block] = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "small").mkdir()
    block = block.replace('"torch.whl"', repr(str(wheel)))
    done = subprocess.run(
        [sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "torch/old.co ['gfx803']" in done.stdout
    assert "native torch/old.co" in done.stdout


def test_a_name_that_is_not_there_is_no_silent_none() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        attrgetter("nothing")(rocwheel)


def test_every_command_of_the_readme_is_there() -> None:
    from rocwheel.cli import VERBS

    assert set(re.findall(r"`rocwheel ([a-z-]+)", README.read_text())) - {"errors"} == set(VERBS)
