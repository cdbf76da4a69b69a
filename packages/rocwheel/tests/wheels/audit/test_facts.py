from __future__ import annotations

from collections import Counter

from rocwheel.wheels.audit.facts import concerns, isas, table
from rocwheel.wheels.devicecode.gpu import machines
from rocwheel.wheels.gpu_table import gpu_table
from rocwheel_samples.tables import each


def names(code: str, on: str) -> set[str]:
    return {one.name for one in concerns(code, on)} - {one.name for one in table().asks}


def test_every_gpu_that_has_a_name_has_its_features() -> None:
    assert {one.target for one in gpu_table().gpus} <= set(isas())


def test_processors_are_named_as_in_elf_files() -> None:
    assert set(isas()) <= set(machines().values())


def test_every_feature_of_a_processor_has_a_rule_and_every_rule_a_processor() -> None:
    rules = Counter(one.name for one in table().feature)
    assert set(rules.values()) == {1}
    assert set().union(*(isa.features for isa in isas().values())) == set(rules)


@each(
    ("code", "on"),
    [("gfx1030", "gfx1036"), ("gfx900", "gfx90c"), ("gfx1100", "gfx1103"), ("gfx1150", "gfx1152")],
)
def test_siblings_raise_no_concern(code: str, on: str) -> None:
    assert names(code, on) == set()


def test_a_hazard_is_a_concern_only_towards_the_processor_that_has_it() -> None:
    assert "valu-trans-use-hazard" in names("gfx1151", "gfx1100")
    assert "valu-trans-use-hazard" not in names("gfx1100", "gfx1151")


def test_what_is_relied_on_is_a_concern_only_away_from_the_processor_that_has_it() -> None:
    assert "dpp-src1-sgpr" in names("gfx1151", "gfx1100")
    assert "dpp-src1-sgpr" not in names("gfx1100", "gfx1151")


def test_what_differs_is_a_concern_both_ways() -> None:
    assert "packed-tid" in names("gfx1030", "gfx1100") & names("gfx1100", "gfx1030")


def test_cards_with_half_as_many_registers_more_say_so() -> None:
    counts = {name: isa.wave32.vgprs for name, isa in isas().items() if isa.wave32}
    assert (counts["gfx1100"], counts["gfx1151"]) == (1536, 1536)
    assert (counts["gfx1102"], counts["gfx1103"], counts["gfx1150"]) == (1024, 1024, 1024)
