"""The floor plan that CONTRIBUTING tells is that of the folders, and that which `make lint` holds."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rocwheel_samples.tables import each

ROOT = Path(__file__).parents[1]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
LAYERS = {one["containers"][0]: one["layers"] for one in CONTRACTS if "containers" in one}
PACKAGES = {"rocwright": ROOT / "src/rocwright"} | {
    name: ROOT / f"packages/{name}/src/{name}" for name in ("rocbase", "rocwheel")
}


@each("package", PACKAGES)
def test_contributing_names_every_room_the_highest_first(package: str) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    table = page.partition(f"| room of {package} |")[2].partition("\n\n")[0]
    told = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", table, re.MULTILINE)
    floors = [re.split(r" [|:] ", floor) for floor in LAYERS[package]]
    assert sorted(told) == sorted(room for floor in floors for room in floor if room != "__main__")
    place = {room: at for at, floor in enumerate(floors) for room in floor}
    assert told == sorted(told, key=place.__getitem__)


@each("package", PACKAGES)
def test_every_room_says_in_a_line_what_it_is_for(package: str) -> None:
    rooms = [path.parent for path in PACKAGES[package].glob("*/__init__.py")]
    assert rooms
    silent = [room.name for room in rooms if not (room / "__init__.py").read_text().startswith('"""')]
    assert not silent


def test_no_module_is_longer_than_400_lines() -> None:
    """Programs that steps carry along are one file each: those may be longer."""
    sources = list(PACKAGES.values())
    carried = ROOT / "src/rocwright/catalog/data"
    long = {
        str(path.relative_to(ROOT)): lines
        for folder in sources
        for path in folder.rglob("*.py")
        if not path.is_relative_to(carried) and (lines := len(path.read_text().splitlines())) > 400
    }
    assert long == {}


FILLERS = frozenset(
    re.findall(
        r"\w+",
        """found told one two kept held had made asked said seen wanted known meant given taken done begun
        gone left came beside below there here now before after rest way lot whole each other others more most
        least such same about at on of by who what why where""",
    )
)


def _bound(module: ast.AST) -> Iterator[str]:
    for node in ast.walk(module):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def test_few_names_are_words_that_say_nothing() -> None:
    """What is left are fields of files and lines of programs in the keys of steps."""
    modules = [ast.parse(path.read_bytes()) for folder in PACKAGES.values() for path in folder.rglob("*.py")]
    names = [name for module in modules for name in _bound(module) if name not in ("self", "cls", "_")]
    fillers = [name for name in names if name.strip("_").lower() in FILLERS]
    assert len(fillers) <= len(names) * 0.02, Counter(fillers).most_common(20)


def test_no_class_name_is_defined_more_than_twice() -> None:
    """A name that three classes have says nothing about any of them."""
    modules = [ast.parse(path.read_bytes()) for folder in PACKAGES.values() for path in folder.rglob("*.py")]
    classes = (node.name for module in modules for node in ast.walk(module) if isinstance(node, ast.ClassDef))
    assert [name for name, count in Counter(classes).items() if count > 2] == []


def test_few_modules_have_fewer_than_25_lines() -> None:
    """What a reader opens should say something. The rest are verbs and files that load alone."""
    modules = (path for folder in PACKAGES.values() for path in folder.rglob("*.py"))
    own = (path for path in modules if "__" not in path.stem and "catalog/data" not in str(path))
    short = [path.name for path in own if len(path.read_text().splitlines()) < 25]
    assert len(short) <= 10, short
