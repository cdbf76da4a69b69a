"""Every error that a user can meet says its likely cause and a next step, where it is made."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import rocwheel
import rocwright

PACKAGES = (Path(rocwright.__file__).parent, Path(rocwheel.__file__).parent)
RIDDLES = ("see the end of the log", "see the log", "see below", "see above", "look at the file", "report it")
"""Texts that fill the field and help nobody."""
ELSEWHERE = {
    "rocwright/catalog/data": "runs in steps",
    "rocwheel/wheels": "the wheel tools have pages of their own",
    "rocwheel/cli": "the wheel tools have pages of their own",
}
"""Folders that this does not read, and why."""


def parsed() -> dict[str, ast.Module]:
    found = {
        path.relative_to(package.parent).as_posix(): path
        for package in PACKAGES
        for path in sorted(package.rglob("*.py"))
    }
    left_out = tuple(f"{folder}/" for folder in ELSEWHERE)
    return {
        name: ast.parse(path.read_text()) for name, path in found.items() if not name.startswith(left_out)
    }


def kinds(modules: Iterable[ast.Module]) -> set[str]:
    """The names of RocwrightError and of all classes that are made from it."""
    bases = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for module in modules
        for node in ast.walk(module)
        if isinstance(node, ast.ClassDef)
    }
    found = {"RocwrightError"}
    while more := {name for name, over in bases.items() if over & found} - found:
        found |= more
    return found


def made(module: ast.AST, wanted: set[str], function: str = "") -> Iterator[tuple[str, ast.Call]]:
    """Each call that makes an error of these classes, with the function that it is in."""
    for node in ast.iter_child_nodes(module):
        inside = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in wanted:
            yield function, node
        yield from made(node, wanted, inside)


def lacking(call: ast.Call) -> list[str]:
    """What the call does not say, or says with a riddle."""
    given = {one.arg: one.value for one in call.keywords if one.arg}
    if any(one.arg is None for one in call.keywords):
        return []
    return [
        name
        for name in ("cause", "next_step")
        if name not in given or any(map(is_riddle, texts(given[name])))
    ]


def texts(value: ast.expr) -> Iterator[str]:
    """The texts that a value can be as a whole: itself, or one of the ways of a choice."""
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=body, orelse=other):
            yield from texts(body)
            yield from texts(other)
        case ast.BoolOp(values=values):
            yield from texts(values[-1])
        case ast.Call(args=[_, fallback]) if ast.unparse(value.func) == "next":
            yield from texts(fallback)


def is_riddle(text: str) -> bool:
    return not text.strip() or text.strip().rstrip(".").lower() in RIDDLES


def faults(modules: dict[str, ast.Module]) -> list[str]:
    wanted = kinds(modules.values())
    return [
        f"{name}:{call.lineno} {function}: {ast.unparse(call.func)} without {' and '.join(lacks)}"
        for name, module in modules.items()
        for function, call in made(module, wanted)
        if (lacks := lacking(call))
    ]


def test_each_error_says_its_cause_and_a_next_step() -> None:
    assert faults(parsed()) == []


BASE = "class RocwrightError(Exception): ...\nclass InputError(RocwrightError): ...\n"


@pytest.mark.parametrize(
    "call",
    [
        'InputError("x", cause="c")',
        'InputError("x", next_step="n")',
        'errors.InputError("x", cause="", next_step="n")',
        'InputError("x", cause=next(lines, "see the end of the log"), next_step="n")',
        'InputError("x", cause=said or "", next_step="n")',
        'InputError("x", cause="c", next_step="Report it." if odd else "n")',
    ],
)
def test_an_error_that_lacks_one_is_found(call: str) -> None:
    assert len(faults({"x.py": ast.parse(f"{BASE}def f():\n    raise {call}\n")})) == 1


@pytest.mark.parametrize(
    "call",
    [
        'InputError("x", cause="c", next_step="n")',
        'InputError("x", cause=str(error), next_step=next_step)',
        'InputError("x", cause=said or "no message", next_step="a" if odd else "b")',
        'ValueError("x")',
    ],
)
def test_an_error_with_both_passes(call: str) -> None:
    assert faults({"x.py": ast.parse(f"{BASE}def f():\n    raise {call}\n")}) == []
