"""The command line parses, calls `rocwright.api` and prints: what it can do, a program in Python can do."""

from __future__ import annotations

import ast
from pathlib import Path

from rocwheel_samples.tables import each

CLI = Path(__file__).parents[2] / "src/rocwright/cli"
CALLS = {
    "build": {"build"},
    "diagnose": {"diagnose"},
    "doctor": {"doctor", "apply_remedies"},
    "export": {"export"},
    "heal": {"remedies", "forget_remedies", "lock"},
    "init": {"request"},
    "plan": {"plan", "lock"},
    "verify": {"verify", "verify_environment"},
}
BELOW = (
    "flow",
    "verify.run",
    "remedies.heal",
    "doctor.doctor",
    "doctor.bundle",
    "diagnosis",
    "resolve.files",
)
"""What the facade calls for these verbs."""


@each("verb", CALLS)
def test_a_verb_calls_the_facade(verb: str) -> None:
    called = {
        one.attr
        for one in ast.walk(tree(verb))
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == "api"
    }
    assert called >= CALLS[verb]


@each("verb", ["build", "diagnose", "doctor", "heal", "verify"])
def test_a_verb_goes_past_the_facade_for_nothing(verb: str) -> None:
    imported = {
        one.module.removeprefix("rocwright.")
        for top in tree(verb).body
        if not isinstance(top, ast.If)  # names of types
        for one in ast.walk(top)
        if isinstance(one, ast.ImportFrom) and one.module
    }
    assert not [one for one in imported if one.startswith(BELOW)]


def tree(verb: str) -> ast.Module:
    return ast.parse((CLI / f"{verb}.py").read_text())
