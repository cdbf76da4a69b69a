from __future__ import annotations

from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocwheel.wheels.devicecode.generic import covering, covers, generic_targets
from rocwheel.wheels.devicecode.gpu import machines
from rocwheel_samples.trees import write_tree


def test_each_generic_target_covers_processors_that_have_a_number() -> None:
    known = set(machines().values())
    assert set(generic_targets()) == {name for name in known if name.endswith("-generic")}
    assert all(set(covered) <= known for covered in generic_targets().values())


def test_no_processor_is_covered_twice() -> None:
    everyone = [one for covered in generic_targets().values() for one in covered]
    assert len(everyone) == len(set(everyone))


def test_gfx11_generic_covers_what_has_no_code_of_its_own() -> None:
    assert {"gfx1103", "gfx1151"} <= set(covers("gfx11-generic"))
    assert covering("gfx1151") == ("gfx11-generic",)
    assert (covers("gfx1151"), covering("gfx90a"), covering("gfx803")) == ((), (), ())


def test_a_table_of_the_users_own_adds_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(tmp_path))
    write_tree(tmp_path, {"generic_targets.toml": '[covers]\ngfx13-generic = ["gfx1310"]\n'})
    assert generic_targets.__wrapped__()["gfx13-generic"] == ("gfx1310",)
    write_tree(tmp_path, {"generic_targets.toml": 'covers = "everything"\n'})
    with pytest.raises(InputError, match="not a table"):
        generic_targets.__wrapped__()
