"""Recipes whose ninja can be split: what shards compiled apart gives the bytes of a build without them."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.execution.conftest import Workshop, put_root
from tests.real.standins import CMAKE, LLAMA, STANDINS, UNITS, StandIn, nightly_but, step_of

from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.model import Component
from rocwright.execution.exec_step import execute
from rocwright.execution.options import StepOptions
from rocwright.execution.shards import shards_of
from rocwright.home import Home
from rocwright.model.steps import Step
from rocwright.store.local import LocalStore
from rocwright.store.model import Record

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        not (CMAKE and all(map(shutil.which, ("cmake", "ninja", "gcc", "ccache")))),
        reason="gcc, cmake, ninja or ccache is not installed",
    ),
]

RECIPES = [one for one in builtin_catalog().components.values() if one.split and one.name in STANDINS]
CACHED = """#!/bin/sh
exec ccache /usr/bin/gcc -I/build/src "$@"
"""


@pytest.fixture
def shop(home: Home, engine: str, compiler_root: Path, tmp_path: Path) -> Workshop:
    store = LocalStore(home.store)
    return Workshop(home, store, engine, tmp_path, put_root(store, compiler_root))


def split_step(shop: Workshop, recipe: Component, stand_in: StandIn, name: str = "") -> Step:
    """A step of the recipe's commands; `name` tells it from others of the same store."""
    stand_in = replace(stand_in, env={**stand_in.env, "NAMED": name})
    commands = tuple(one.replace("{architecture}", "x86_64") for one in recipe.run)
    return step_of(
        shop,
        name or recipe.name,
        commands,
        recipe.resume,
        stand_in,
        recipe.output[0].pattern,
        split=recipe.split,
        compiler=CACHED,
    )


def run(shop: Workshop, step: Step, shards: tuple[str, ...] = ()) -> Record:
    """On a machine that has compiled nothing yet."""
    shutil.rmtree(shop.home.compiler_caches, ignore_errors=True)
    shop.store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    options, say = StepOptions(engine=shop.engine), shop.lines.append
    return execute(step.key, shop.store, shop.home, say, options=options, jobs=2, shards=shards)


@pytest.mark.parametrize("recipe", nightly_but("llama.cpp", RECIPES))
def test_what_shards_compiled_is_not_compiled_again_and_gives_the_same_bytes(
    shop: Workshop, recipe: Component
) -> None:
    step = split_step(shop, recipe, STANDINS[recipe.name])
    alone = run(shop, step)
    objects = len([one for one in shop.lines if re.search(r"Building C object .*\.o$", one)])
    shop.lines.clear()
    made = [run(shop, one) for one in shards_of(step, 2)]
    told = [int(found[1]) for one in shop.lines if (found := re.match(r"shard ./2: (\d+) objects", one))]
    assert sum(told) == objects and min(told) > 0
    for key in {alone.key, alone.content_key}:
        shop.store.local.remove("record", key)
    record = run(shop, step, tuple(one.key for one in made))
    assert record.outputs == alone.outputs
    # no more than what configuring compiles, in folders with names of their own
    assert record.compiler_cache.get("miss", 0) <= alone.compiler_cache["miss"] - len(UNITS)
    assert [one.key for one in record.shards] == [one.key for one in made]
    assert record.cache is not None and record.cache.state == "filled"


@pytest.mark.nightly
def test_a_shard_that_does_not_compile_a_unit_compiles_the_rest_and_the_step_tells_of_it(
    shop: Workshop,
) -> None:
    recipe = builtin_catalog().component("llama.cpp")
    more = "add_library(x SHARED x.c)\nadd_dependencies(llama-server x)\n"
    files = {**STANDINS["llama.cpp"].files, "CMakeLists.txt": LLAMA + more, "x.c": "int x(\n"}
    broken = StandIn(files=files, env=STANDINS["llama.cpp"].env, packs="")
    step = split_step(shop, recipe, broken, "broken")
    made = [run(shop, one) for one in shards_of(step, 2)]
    assert any("some did not compile" in one for one in shop.lines)
    with pytest.raises(Exception, match="ended with status") as caught:
        run(shop, step, tuple(one.key for one in made))
    assert "x.c" in str(caught.value.detail)  # type: ignore[attr-defined]


@pytest.mark.nightly
def test_a_shard_that_is_not_in_the_store_is_done_without(shop: Workshop) -> None:
    step = split_step(shop, builtin_catalog().component("llama.cpp"), STANDINS["llama.cpp"], "one")
    [first, second] = shards_of(step, 2)
    run(shop, first)
    record = run(shop, step, (first.key, second.key))
    assert [one.key for one in record.shards] == [first.key]
    assert record.compiler_cache["miss"] > 0
