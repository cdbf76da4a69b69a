"""The picture of a plan."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.making import chain, lock_of, put_output, small_plan

from rocwright.catalog.load import builtin_catalog
from rocwright.plan.decide import decide
from rocwright.plan.graph import svg
from rocwright.plan.make import make_plan
from rocwright.store.local import LocalStore

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("stack", sorted(builtin_catalog().stacks))
def test_the_picture_is_xml_and_shows_each_step_once(stack: str, store: LocalStore) -> None:
    plan = make_plan(lock_of(stack), builtin_catalog())
    drawing = ElementTree.fromstring(svg(decide(plan, store), stack))
    boxes = drawing.findall(f"{SVG}g")
    assert [box.findall(f"{SVG}text")[0].text for box in boxes] == [step.name for step in plan.steps]


def test_each_step_stands_right_of_what_it_needs(store: LocalStore) -> None:
    plan = small_plan()
    drawing = ElementTree.fromstring(svg(decide(plan, store), "title"))
    left = {
        box.findall(f"{SVG}text")[0].text: float(box.findall(f"{SVG}rect")[0].attrib["x"])
        for box in drawing.findall(f"{SVG}g")
    }
    names = {step.key: step.name for step in plan.steps}
    for step in plan.steps:
        assert all(left[names[item.key]] < left[step.name] for item in step.inputs)


def test_every_box_lies_within_the_picture_and_none_on_another(store: LocalStore) -> None:
    drawing = ElementTree.fromstring(svg(decide(chain(150), store), "long"))
    places = [box.findall(f"{SVG}rect")[0].attrib for box in drawing.findall(f"{SVG}g")]
    assert len({(one["x"], one["y"]) for one in places}) == 150
    for one in places:
        assert float(one["x"]) + float(one["width"]) <= float(drawing.attrib["width"])
        assert float(one["y"]) + float(one["height"]) <= float(drawing.attrib["height"])


def test_the_colour_tells_what_a_build_would_do(store: LocalStore, tmp_path: Path) -> None:
    plan = small_plan()
    put_output(store, plan.steps[1], "root", b"x", tmp_path)
    drawing = ElementTree.fromstring(svg(decide(plan, store), "title"))
    fills = [box.findall(f"{SVG}rect")[0].attrib["fill"] for box in drawing.findall(f"{SVG}g")]
    assert len(set(fills)) == 3
    assert fills[2] == fills[3] == fills[4]


def test_names_with_signs_of_xml_are_escaped(store: LocalStore) -> None:
    plan = small_plan()
    odd = plan.steps[0].model_copy(update={"name": "<&>\"'"})
    drawing = ElementTree.fromstring(
        svg(decide(plan.model_copy(update={"steps": (odd, *plan.steps[1:])}), store), "a < b & c")
    )
    assert drawing.findall(f"{SVG}g")[0].findall(f"{SVG}text")[0].text == "<&>\"'"
