"""Recipes that can be resumed: killed at three points, each ends with the bytes of a clean build.

The commands are those of the recipe, the compiler, CMake and ninja are real; what they build is a small
project that stands in for the recipe's own. Its compiler leaves half an object while it works, as one that is
killed does.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.execution.conftest import Workshop, put_root
from tests.real.standins import CMAKE, STANDINS, StandIn, nightly_but, step_of

from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.model import Component
from rocwright.execution.exec_step import execute
from rocwright.execution.options import StepOptions
from rocwright.home import Home
from rocwright.model.steps import Step
from rocwright.store.local import LocalStore
from rocwright.store.model import Record

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        not (CMAKE and shutil.which("cmake") and shutil.which("ninja") and shutil.which("gcc")),
        reason="gcc, cmake or ninja is not installed",
    ),
]

RECIPES = [one for one in builtin_catalog().components.values() if one.resume]


@pytest.fixture
def shop(home: Home, engine: str, compiler_root: Path, tmp_path: Path) -> Workshop:
    store = LocalStore(home.store)
    return Workshop(home, store, engine, tmp_path, put_root(store, compiler_root))


def killed_at(shop: Workshop, step: Step, line: str) -> list[str]:
    """Run the step in a process of its own, and kill that where it says this; what it said until then."""
    words = (sys.executable, "-m", "rocwright", "exec-step", step.key, "--store", shop.store.url)
    running = subprocess.Popen(
        (*words, "--engine", shop.engine),
        env=os.environ | {"ROCWRIGHT_HOME": str(shop.home.path), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    said: list[str] = []
    for told in running.stdout:
        said.append(told.rstrip("\n"))
        if re.match(line, told):
            # in the middle of what comes next
            time.sleep(0.1)
            break
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL, "\n".join(said)
    running.stdout.close()
    return said


def built_again(shop: Workshop, record: Record) -> Record:
    """The step built from nothing."""
    for key in {record.key, record.content_key}:
        shop.store.local.remove("record", key)
    options = StepOptions(engine=shop.engine, resume=False)
    return execute(record.key, shop.store, shop.home, shop.lines.append, options=options)


@pytest.mark.parametrize("recipe", nightly_but("llama.cpp", RECIPES))
def test_a_recipe_killed_at_three_points_ends_with_the_bytes_of_a_clean_build(
    shop: Workshop, recipe: Component
) -> None:
    stand_in = STANDINS[recipe.name]
    commands = tuple(one.replace("{architecture}", "x86_64") for one in recipe.run)
    step = step_of(shop, recipe.name, commands, recipe.resume, stand_in, recipe.output[0].pattern)
    for number, line in enumerate((r"\[1/", r"\[2/", stand_in.packs)):
        said = killed_at(shop, step, line)
        went_on = any(one.startswith("goes on in its kept tree") for one in said)
        assert went_on is (number > 0), "\n".join(said)
    record = shop.run(step)
    assert record.resumed == 3
    clean = built_again(shop, record)
    assert clean.resumed == 0
    assert record.outputs == clean.outputs


def test_a_recipe_that_breaks_its_promise_is_found_out(shop: Workshop) -> None:
    """What the test above would show of one that takes half an object for a whole one, as make does."""
    compiles = "for one in a b c; do [ -e $one.o ] || gcc -c $one.c -o $one.o; echo [$one]; done"
    stand_in = StandIn(files={"x": ""}, env={}, packs="")
    step = step_of(shop, "broken", ("true", compiles, "cat *.o > $OUT/result"), 2, stand_in, "result")
    killed_at(shop, step, r"\[a\]")
    record = shop.run(step)
    assert record.resumed == 1
    assert record.outputs != built_again(shop, record).outputs
