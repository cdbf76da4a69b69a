"""Which errors do not say their cause and a next step where they are made, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

BASE = "ExplainedError"
"""The class that all failures are made from."""

RIDDLES = ("see the end of the log", "see the log", "see below", "see above", "look at the file", "report it")
"""Texts that fill the field and help nobody."""


def parsed(package: Path) -> dict[str, ast.Module]:
    """The modules of a package, by path from the folder that it lies in."""
    return {
        path.relative_to(package.parent).as_posix(): ast.parse(path.read_text())
        for path in sorted(package.rglob("*.py"))
    }


def faults(modules: Mapping[str, ast.Module], others: Iterable[ast.Module] = ()) -> list[str]:
    """Each place in `modules` that makes an error without a cause or next step.

    Classes of errors may stand in `others` too.
    """
    wanted = kinds([*modules.values(), *others])
    return [
        f"{name}:{call.lineno} {function}: {ast.unparse(call.func)} without {' and '.join(lacks)}"
        for name, module in modules.items()
        for function, call in made(module, wanted)
        if (lacks := lacking(call))
    ]


def kinds(modules: Iterable[ast.Module]) -> set[str]:
    """The names of the base class, of all classes that are made from it, and other names of these."""
    over: dict[str, set[str]] = {}
    for node in (node for module in modules for node in ast.walk(module)):
        match node:
            case ast.ClassDef(name=name, bases=bases):
                over.setdefault(name, set()).update(map(_last, bases))
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name() | ast.Attribute() as value):
                over.setdefault(name, set()).add(_last(value))
    found = {BASE}
    while more := {name for name, bases in over.items() if bases & found} - found:
        found |= more
    return found


def made(module: ast.AST, wanted: set[str], function: str = "") -> Iterator[tuple[str, ast.Call]]:
    """Each call that makes an error of these classes, with the function that it is in."""
    for node in ast.iter_child_nodes(module):
        inside = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        if isinstance(node, ast.Call) and _last(node.func) in wanted:
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
    """Whether a text is empty, or one that helps nobody."""
    return not text.strip() or text.strip().rstrip(".").lower() in RIDDLES


def _last(name: ast.expr) -> str:
    return ast.unparse(name).rpartition(".")[2]
