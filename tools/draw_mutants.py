"""Small changes of a module, by mutmut, of which a seed draws some. Texts for people are left alone: what
is raised, is in the call of an error, or has a space in it is not changed."""

from __future__ import annotations

import difflib
import random
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m
from mutmut.mutation.mutators import mutation_operators

ERROR = m.Name(m.MatchIfTrue(lambda name: name.endswith("Error")))
SAYS = m.MatchIfTrue[str](lambda name: name.strip("_") in ("refuse", "say", "wrong"))
# Where nothing is changed.
LEFT_ALONE = (
    m.Annotation()
    | m.Decorator()
    | m.Raise()
    | m.Call(func=ERROR | m.Name("isinstance") | m.Name(SAYS) | m.Attribute(attr=ERROR | m.Name(SAYS)))
    | m.SimpleString(m.MatchIfTrue(lambda text: " " in text))
)

Change = tuple[cst.CSTNode, cst.CSTNode]


class Changes(cst.CSTVisitor):
    """Finds every change within functions, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Change] = []
        self._functions = 0

    def on_visit(self, node: cst.CSTNode) -> bool:
        if m.matches(node, LEFT_ALONE):
            return False
        self._functions += isinstance(node, cst.FunctionDef)
        if self._functions:
            for kind, operator in mutation_operators:
                if isinstance(node, kind):
                    self.found += [(node, changed) for changed in operator(node)]
        return True

    def on_leave(self, node: cst.CSTNode) -> None:
        self._functions -= isinstance(node, cst.FunctionDef)


@dataclass(frozen=True)
class Mutant:
    """One change of a module: the whole text with it, and the lines that were and that are instead."""

    code: str
    line: int
    was: str
    now: str

    @property
    def diff(self) -> str:
        signs = (("-", self.was), ("+", self.now))
        return "\n".join(f"{sign} {one}" for sign, text in signs for one in text.splitlines())


def made(module: cst.Module, change: Change) -> Mutant | None:
    """The mutant; None where its text is the same, or no Python."""
    text = module.deep_replace(*change)
    assert isinstance(text, cst.Module)
    try:
        compile(text.code, "mutant", "exec")
    except SyntaxError:
        return None
    old, new = module.code.splitlines(), text.code.splitlines()
    parts = [one for one in difflib.SequenceMatcher(None, old, new, False).get_opcodes() if one[0] != "equal"]
    if not parts:
        return None
    (_, begin, _, begins, _), (_, _, end, _, ends) = parts[0], parts[-1]
    return Mutant(text.code, begin + 1, "\n".join(old[begin:end]), "\n".join(new[begins:ends]))


def drawn(path: str, code: str, seed: int, most: int) -> tuple[int, list[Mutant]]:
    """How many there are, and those that the seed draws, as often as one asks."""
    module, changes = cst.parse_module(code), Changes()
    module.visit(changes)
    order = random.Random(f"{seed} {path}").sample(changes.found, len(changes.found))  # noqa: S311 - a sample, no secret
    picked: list[Mutant] = []
    for one in order:
        if len(picked) == most:
            break
        mutant = made(module, one)
        if mutant is not None:
            picked.append(mutant)
    return len(changes.found), picked
