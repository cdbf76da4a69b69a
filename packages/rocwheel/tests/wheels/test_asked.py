"""The GPUs that are asked for: by a table of one's own, by what the machine has, and where it has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocwheel.wheels.asked import chosen_targets, code_targets, every_gpu, here, strongest
from rocwheel.wheels.gpu_table import gpu_table, only_targets
from rocwheel_samples.trees import write_tree

OLD = only_targets(gpu_table(), {"gfx803", "gfx900"})


def card(number: int, device: str) -> dict[str, str]:
    """A DRM device of AMD's."""
    folder = f"class/drm/card{number}/device"
    return {f"{folder}/vendor": "0x1002\n", f"{folder}/device": f"{device}\n"}


def test_a_gpu_of_the_machine_that_the_table_does_not_know_is_passed_over(tmp_path: Path) -> None:
    sysfs = write_tree(tmp_path, card(0, "0x15bf") | card(1, "0x67df"))
    assert here(sysfs=sysfs) == ("gfx1103", "gfx803")
    assert here(OLD, sysfs) == ("gfx803",)
    assert strongest(OLD, sysfs) == "gfx803"
    assert code_targets(["auto", "gfx900:xnack-"], OLD, sysfs) == ("gfx803", "gfx900:xnack-")


def test_where_no_gpu_is_code_is_made_for_the_one_that_the_data_names(tmp_path: Path) -> None:
    told: list[str] = []
    assert chosen_targets(["auto"], told.append, sysfs=tmp_path) == (gpu_table().fallback,)
    assert told == [f"no AMD GPU found here: building for {gpu_table().fallback}"]


def test_a_users_table_says_which_gpu_that_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(tmp_path, {"gpu_names.toml": '[fallback]\ntarget = "gfx803"\nsource = ["mine"]\n'})
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(tmp_path))
    table = gpu_table.__wrapped__()
    assert table.fallback == "gfx803"
    assert chosen_targets(["auto"], print, table, tmp_path) == ("gfx803",)


@pytest.mark.parametrize(
    ("text", "said"),
    [("fallback = 3", "does not name"), ('[fallback]\ntarget = "gfx1"', "names no GPU of this table")],
)
def test_a_fallback_that_is_no_gpu_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    write_tree(tmp_path, {"gpu_names.toml": text})
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(tmp_path))
    with pytest.raises(InputError, match=rf"gpu_names\.toml: fallback\S* {said}"):
        gpu_table.__wrapped__()


def test_where_the_gpu_is_not_known_it_is_told_what_was_seen_and_what_to_name(tmp_path: Path) -> None:
    sysfs = write_tree(tmp_path, card(0, "0xffff"))
    with pytest.raises(InputError, match="no AMD GPU that is known was found here") as caught:
        strongest(sysfs=sysfs)
    assert caught.value.cause == "found: unknown target (1002:ffff)"
    assert f"--gpu {every_gpu().fallback}" in caught.value.next_step
