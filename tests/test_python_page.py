"""What the pages show in Python is there, and docs/python.md runs: its blocks in order, for real."""

from __future__ import annotations

import ast
import contextlib
import io
import pkgutil
import re
from pathlib import Path

import pytest
from samples.project import TinyProject, make_sources, put_roots

from rocwheel.wheels.devicecode.gpu import machines
from rocwheel_samples.fatbin import entry_id, gpu_elf, plain_bundle
from rocwheel_samples.tables import each
from rocwheel_samples.wheel_making import FILES, small_wheel
from rocwright import api
from rocwright.home import Home
from rocwright.plan.resolve.files import read_lock

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`(rocw(?:right|heel)(?:\.\w+)+)\(")


def blocks() -> list[tuple[str, str]]:
    return [
        (page.name, text) for page in sorted(DOCS.rglob("*.md")) for text in BLOCK.findall(page.read_text())
    ]


def named() -> list[tuple[str, str]]:
    return [
        (page.name, name) for page in sorted(DOCS.rglob("*.md")) for name in NAMED.findall(page.read_text())
    ]


def test_there_are_pages_for_python() -> None:
    assert {"python.md", "records.md"} <= {page for page, _ in blocks()}
    assert len(named()) > 10


@each(("page", "text"), blocks())
def test_what_a_block_imports_is_there(page: str, text: str) -> None:
    for node in ast.walk(ast.parse(text, page)):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.startswith(("rocwright", "rocwheel"))
        ):
            for alias in node.names:
                assert pkgutil.resolve_name(f"{node.module}:{alias.name}") is not None


@each(("page", "name"), named())
def test_what_a_table_names_can_be_called(page: str, name: str) -> None:
    assert callable(pkgutil.resolve_name(name)), page


# docs/python.md, run

SAYS = re.compile(r"^( *)print\(.*\)  # (.+)$", re.MULTILINE)
"""What a line prints stands behind it."""


def asked_the_network(*_: object, **__: object) -> None:
    pytest.fail("the network was asked")


def test_the_page_for_python_runs_and_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Home, engine: str, tiny_root: Path
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    # nothing on the page needs a network
    monkeypatch.setattr("rocwright.plan.resolve.network.NetworkUpstream.__init__", asked_the_network)
    a_wheel_for_two(here)
    names: dict[str, object] = {}
    for heading, text in chapters(DOCS / "python.md"):
        if heading == "A build":
            a_tiny_project(here, monkeypatch, home, tiny_root)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(text, heading, "exec"), names)
        assert said.getvalue().splitlines() == [told for _, told in SAYS.findall(text)], heading


def test_everything_in_the_facade_has_its_meaning_and_stands_on_the_page() -> None:
    page = (DOCS / "python.md").read_text()
    for name in api.__all__:
        value = getattr(api, name)
        told = value.__doc__
        assert told and (isinstance(value, type) or len(told.splitlines()) == 1 or "Raises" in told), name
        assert re.search(rf"`(?:[^`]*[ .])?{name}\(", page), name


def chapters(page: Path) -> list[tuple[str, str]]:
    """The blocks of a page, each with the heading that it stands below."""
    found, heading = [], ""
    for part in re.split(r"^## (.*)\n", page.read_text(), flags=re.MULTILINE):
        if BLOCK.search(part):
            found += [(heading, text) for text in BLOCK.findall(part)]
        heading = part
    return found


def a_wheel_for_two(folder: Path) -> None:
    number = {name: number for number, name in machines().items()}
    code = [(entry_id(name), gpu_elf(number[name], body=bytes(9000))) for name in ("gfx803", "gfx1103")]
    small_wheel(folder, {**FILES, "small/kernels.hsaco": plain_bundle(code)})


def a_tiny_project(folder: Path, monkeypatch: pytest.MonkeyPatch, home: Home, root: Path) -> None:
    """A stack of two components that builds in seconds, its roots in the store already."""
    make_sources(folder)
    (folder / "rocwright.toml").write_text('stack = "tiny"\ngpu = ["Strix Halo"]\nbase = "debian:sid"\n')
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(folder / "catalog"))
    project = api.project(folder=folder)
    tiny = TinyProject(
        request=project.request,
        lock_path=project.lock_path,
        output=project.output,
        home=home,
        catalog=project.catalog,
        locked=read_lock(project.lock_path, project.request),
    )
    put_roots(tiny, root)
