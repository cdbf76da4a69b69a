"""The environment of a target; an override never reaches a build."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwright.catalog.environment import environment
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import builtin_catalog, kept_from_builds, load_catalog
from rocwright.catalog.target import Quirk

CATALOG = builtin_catalog()

NEW = (
    '[[target]]\nname = "gfx1104"\nkfd_version = 110004\ngeneration = "x"\nproducts = ["x"]\nsource = ["x"]\n'
)
LEAK = '[[target.quirk]]\nvariable = "HSA_OVERRIDE_GFX_VERSION_1"\nvalue = "11.0.0"\nscope = "build"\n'


def names(target: str, scope: str) -> dict[str, str]:
    found = environment(CATALOG, CATALOG.target(target), "build" if scope == "build" else "run")
    return {one.variable: one.value for one in found}


def test_every_target_is_compiled_for_by_name() -> None:
    assert {names(one, "build")["PYTORCH_ROCM_ARCH"] for one in CATALOG.targets} == set(CATALOG.targets)


def test_what_a_card_needs_to_run_is_there() -> None:
    found = names("gfx803", "run")
    assert (found["ROC_ENABLE_PRE_VEGA"], found["HSA_OVERRIDE_GFX_VERSION"]) == ("1", "8.0.3")
    assert names("gfx1103", "run")["HSA_ENABLE_SDMA"] == "0"


def test_required_variables_come_first() -> None:
    needs = [one.need for one in environment(CATALOG, CATALOG.target("gfx803"), "run")]
    assert needs == sorted(needs, key=("required", "recommended", "optional").index)


@each("target", CATALOG.targets)
def test_no_override_is_in_the_environment_of_a_build(target: str) -> None:
    assert not [name for name in names(target, "build") if name.startswith("HSA_OVERRIDE")]


def test_an_override_that_got_past_the_loader_is_still_kept_from_builds() -> None:
    leak = Quirk(variable="HSA_OVERRIDE_GFX_VERSION", value="11.0.0", scope="build", reason="r", source="s")
    catalog = replace(CATALOG, every=(*CATALOG.every, leak))
    found = environment(catalog, catalog.target("gfx1151"), "build")
    assert [one.variable for one in found] == ["PYTORCH_ROCM_ARCH"]


@pytest.mark.parametrize("variable", ["HSA_OVERRIDE_GFX_VERSION", "HSA_OVERRIDE_GFX_VERSION_0"])
def test_an_override_is_known_by_its_name(variable: str) -> None:
    assert kept_from_builds(CATALOG, variable)
    assert not kept_from_builds(CATALOG, "HSA_ENABLE_SDMA")


def test_a_target_that_brings_an_override_into_builds_is_refused(tmp_path: Path) -> None:
    (tmp_path / "targets.toml").write_text(f'{NEW}{LEAK}reason = "r"\nsource = "s"\n')
    with pytest.raises(InputError, match=r"targets\.toml has an error") as caught:
        load_catalog(tmp_path, DATA)
    assert "HSA_OVERRIDE_GFX_VERSION_1 in the environment of a build" in caught.value.cause


@pytest.mark.parametrize("place", ['[env]\nHSA_OVERRIDE_GFX_VERSION = "11.0.0"\n', ""])
def test_a_recipe_that_brings_an_override_into_builds_is_refused(tmp_path: Path, place: str) -> None:
    text = (DATA / "components" / "gfx-smoke.toml").read_text()
    changed = (
        text.replace("[env]\n", place)
        if place
        else text.replace("[[release]]\n", '[[release]]\nenv = { HSA_OVERRIDE_GFX_VERSION = "11.0.0" }\n')
    )
    (tmp_path / "components").mkdir()
    (tmp_path / "components" / "gfx-smoke.toml").write_text(changed)
    with pytest.raises(InputError, match=r"gfx-smoke\.toml has an error") as caught:
        load_catalog(tmp_path, DATA)
    assert "in the environment of a build" in caught.value.cause


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("variable", "A B"),
        ("variable", "A;id"),
        ("value", "a\nb"),
        ("scope", "both"),
        ("reason", ""),
        ("source", ""),
    ],
)
def test_a_quirk_that_cannot_be_is_refused(tmp_path: Path, field: str, value: str) -> None:
    said = {"variable": "A", "value": "1", "scope": "run", "reason": "r", "source": "s"} | {field: value}
    quirk = "".join(f"{name} = {text!r}\n".replace("'", '"') for name, text in said.items())
    (tmp_path / "targets.toml").write_text(f"{NEW}[[target.quirk]]\n{quirk}")
    with pytest.raises(InputError) as caught:
        load_catalog(tmp_path, DATA)
    assert f"quirk.0.{field}" in caught.value.cause
