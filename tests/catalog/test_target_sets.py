"""Facts of several targets stand once: sets of targets, and what targets have alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocbase.toml.read import Reader
from rocwheel_samples.trees import write_tree
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import load_catalog, load_edits
from rocwright.catalog.target_sets import row_with_sets, shared_facts
from rocwright.catalog_lint.tables import check

TARGETS = """
[set]
small  = ["gfx1", "gfx2"]
both   = ["small", "gfx3", "circle"]
circle = ["both", "gfx4"]

[[shared]]
targets  = ["small"]
wave     = 64
failures = ["x"]
therock  = { build = true, excluded = { a = "#1" } }

[[shared]]
targets = ["gfx2"]
therock = { excluded = { b = "#2" } }

[default.target]
by = "name"
[target.gfx1]
[target.gfx2]
"""


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader((write_tree(tmp_path / "own", {"targets.toml": TARGETS}),))


def test_a_set_stands_for_its_targets_and_for_those_of_its_sets(reader: Reader) -> None:
    assert row_with_sets(reader, {"targets": ["gfx9", "small"]}) == {"targets": ["gfx9", "gfx1", "gfx2"]}
    # one that leads back to itself ends there, as a name that nobody knows
    expanded = row_with_sets(reader, {"targets": ["both"]})
    assert expanded == {"targets": ["gfx1", "gfx2", "gfx3", "both", "gfx4"]}


def test_sets_of_sets_do_not_double_with_each_level(tmp_path: Path) -> None:
    sets = [f's{number} = ["s{number + 1}", "s{number + 1}"]' for number in range(3000)]
    text = "\n".join(["[set]", *sets, 's3000 = ["gfx1", "gfx2"]'])
    reader = Reader((write_tree(tmp_path / "own", {"targets.toml": text}),))
    assert row_with_sets(reader, {"targets": ["s0"]}) == {"targets": ["gfx1", "gfx2"]}


def test_what_targets_have_alike_is_merged(reader: Reader, tmp_path: Path) -> None:
    facts = shared_facts(reader, tmp_path / "own/targets.toml")
    assert facts["gfx1"] == {
        "wave": 64,
        "failures": ["x"],
        "therock": {"build": True, "excluded": {"a": "#1"}},
    }
    assert facts["gfx2"]["therock"]["excluded"] == {"a": "#1", "b": "#2"}


def test_a_row_of_a_target_stands_over_what_it_shares(tmp_path: Path) -> None:
    row = 'kfd_version = 1\ngeneration = "x"\nproducts = ["x"]\nsource = ["s"]\n'
    text = TARGETS.replace("gfx1]\n", f"gfx1]\nwave = 32\nfailures = ['y']\ntherock.label = 'l'\n{row}")
    text = text.replace("gfx2]\n", f"gfx2]\ntherock.label = 'l'\n{row}").replace(
        "build =", "families = [], build ="
    )
    own = write_tree(tmp_path / "own", {"targets.toml": text})
    target = load_catalog(own, DATA).target("gfx1")
    assert (target.wave, target.failures) == (32, ("x", "y"))


def test_an_edit_that_asks_for_the_wave_is_one_for_each_size_of_it(tmp_path: Path) -> None:
    edit = '[[edit]]\nfile = "a.h"\nliteral = "LANES x"\nwith = "LANES {wave}"\nwhy = "w"\nsource = "s"\n'
    waves = '[set]\nwave32 = ["gfx1030"]\nwave64 = ["gfx803", "gfx906"]\n'
    own = write_tree(tmp_path / "own", {"edits/mine.toml": edit, "targets.toml": waves})
    assert [(one.replacement, one.targets) for one in load_edits(own, "mine")] == [
        ("LANES 32", ("gfx1030",)),
        ("LANES 64", ("gfx803", "gfx906")),
    ]


def test_an_unknown_name_is_refused(tmp_path: Path) -> None:
    own = write_tree(tmp_path / "own", {"targets.toml": TARGETS.replace('["gfx2"]', '["gfx3"]')})
    with pytest.raises(InputError, match=r"targets\.toml has an error") as caught:
        load_catalog(own, DATA)
    assert "shared.1.targets: gfx3 is not known" in caught.value.cause


def test_the_check_names_a_set_that_is_not_there(tmp_path: Path) -> None:
    provider = (DATA / "providers/therock-source.toml").read_text()
    own = write_tree(
        tmp_path / "own", {"providers/therock-source.toml": provider.replace('k-7.9"', 'k-7.8"')}
    )
    assert "therock-7.8 is not known" in [fault.what for fault in check((own, DATA))]
