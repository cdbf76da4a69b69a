"""The table of what people call GPUs, as its file gives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocwheel.wheels.devicecode.gpu import machines
from rocwheel.wheels.gpu_names import find, find_one
from rocwheel.wheels.gpu_table import gpu_table, only_targets
from rocwheel_samples.tables import each
from rocwheel_samples.trees import write_tree

TABLE = gpu_table()


@each("one", TABLE.gpus, ids=lambda one: one.target)
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
        '[[unsupported]]\nname = "x"\nnames = "y"',
    ],
)
def test_a_file_that_is_wrong_is_refused_by_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    write_tree(tmp_path, {"gpu_names.toml": text})
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(tmp_path))
    with pytest.raises(InputError, match=r"gpu_names\.toml: (gpu|maker|unsupported)\.0 does not name"):
        gpu_table.__wrapped__()
