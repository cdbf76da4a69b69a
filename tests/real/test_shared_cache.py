"""Machines that share a folder of compiled objects: a real ccache, in a real sandbox."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.execution.conftest import Workshop, put_root
from tests.real.standins import CMAKE, STANDINS, UNITS, step_of

from rocbase.files.atomic import sha256_file
from rocwright.catalog.load import builtin_catalog
from rocwright.execution.compiler_cache import SIGNER
from rocwright.execution.exec_step import execute
from rocwright.execution.options import StepOptions
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

CACHED = """#!/bin/sh
exec ccache /usr/bin/gcc -I/build/src "$@"
"""
DOMAIN = "d" * 64


class Lab:
    """Machines with a home each, which run the same step and share `folder`."""

    def __init__(self, path: Path, engine: str, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.path, self.engine, self.root, self.patch = path, engine, root, patch
        self.folder = path / "shared"
        self.folder.mkdir()
        self.lines: list[str] = []

    @property
    def reads(self) -> str:
        return f'[farm]\ncompiler_cache = "{self.folder}"\n'

    @property
    def writes(self) -> str:
        return f"{self.reads}compiler_cache_writes = true\n"

    def objects(self) -> dict[str, str]:
        files = (file for file in self.folder.rglob("*") if file.is_file())
        return {str(file.relative_to(self.folder)): sha256_file(file) for file in files}

    def step(self, home: Home, local: LocalStore) -> Step:
        shop = Workshop(home, local, self.engine, home.path, put_root(local, self.root))
        recipe = builtin_catalog().component("llama.cpp")
        commands = tuple(command.replace("{architecture}", "x86_64") for command in recipe.run)
        shutil.rmtree(home.path / "tree", ignore_errors=True)
        step = step_of(
            shop,
            recipe.name,
            commands,
            recipe.resume,
            STANDINS["llama.cpp"],
            recipe.output[0].pattern,
            compiler=CACHED,
        )
        return step.model_copy(update={"domain": DOMAIN})

    def run(self, name: str, config: str, *, compiler_cache: bool = True) -> Record:
        """Build on a machine whose store has not what was built before."""
        home = Home(self.path / name)
        home.path.mkdir(exist_ok=True)
        (home.path / "config.toml").write_text(config)
        self.patch.setenv("ROCWRIGHT_HOME", str(home.path))
        shutil.rmtree(home.store, ignore_errors=True)
        local = LocalStore(home.store)
        step = self.step(home, local)
        local.put_step(step.key, step.model_dump_json(by_alias=True).encode())
        self.lines.clear()
        options = StepOptions(engine=self.engine, compiler_cache=compiler_cache)
        return execute(step.key, local, home, self.lines.append, options=options, jobs=2)


@pytest.fixture
def lab(tmp_path: Path, engine: str, compiler_root: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return Lab(tmp_path, engine, compiler_root, monkeypatch)


def test_a_reader_compiles_nothing_gives_the_same_bytes_writes_nothing_and_says_so(lab: Lab) -> None:
    first = lab.run("trusted", lab.writes)
    assert first.compiler_cache["miss"] >= len(UNITS)
    objects = lab.objects()
    assert objects and all(name.startswith(f"{DOMAIN}/") for name in objects)
    second = lab.run("reader", lab.reads)
    assert second.outputs == first.outputs
    assert second.compiler_cache.get("miss", 0) == 0, lab.lines
    assert second.cache is not None and second.cache.state == "filled"
    assert second.compiled_by_others() == (SIGNER,)
    # what came into its own cache is named later too, and goes if the folder is not in the settings any more
    assert lab.run("reader", lab.reads).compiler_cache.get("miss", 0) == 0
    alone = lab.run("reader", "")
    assert any("begins anew" in line for line in lab.lines)
    assert alone.compiler_cache["miss"] >= len(UNITS) and alone.compiled_by_others() == ()
    lab.run("other", lab.reads, compiler_cache=False)
    assert lab.objects() == objects


@pytest.mark.nightly
def test_a_domain_that_is_a_link_is_not_shown_to_a_step(lab: Lab, tmp_path: Path) -> None:
    lab.run("trusted", lab.writes)
    (lab.folder / DOMAIN).rename(tmp_path / "elsewhere")
    (lab.folder / DOMAIN).symlink_to(tmp_path / "elsewhere")
    record = lab.run("reader", lab.reads)
    assert any("no shared compiler cache" in line and "is a link" in line for line in lab.lines)
    assert record.compiler_cache["miss"] >= len(UNITS) and record.compiled_by_others() == ()
