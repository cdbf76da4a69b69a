"""Targets by any name: target, PCI id, family, code name, or what is printed on the box."""

from __future__ import annotations

import re

from rocwright.catalog.load import Catalog
from rocwright.catalog.target import Target
from rocwright.errors import InputError

MAKER = frozenset({"amd", "ati", "radeon", "instinct", "ryzen", "graphics", "igpu", "gpu"})
"""Words on the box that do not tell one card from another; they may be left out, or be said."""


def find_targets(catalog: Catalog, name: str) -> list[Target]:
    """The targets that `name` means: those it names exactly, else those that its words fit.

    Raises InputError, with the nearest names, where it means none.
    """
    wanted = " ".join(name.lower().split())
    every = list(catalog.targets.values())
    pci_id = wanted.replace("0x", "")
    found = [one for one in every if wanted == one.name or pci_id in one.pci_ids]
    found = found or [one for one in every if wanted in map(str.lower, one.families)]
    words = _words(wanted)
    for fits in (_same, _among, _begin):
        found = found or [
            one for one in every if words and any(fits(words, _words(text)) for text in _names(one))
        ]
    if not found:
        known = {text.lower(): one for one in every for text in (one.name, *_names(one))}
        raise _unknown(name, known)
    return found


def _names(target: Target) -> tuple[str, ...]:
    return (*target.products, *target.codenames)


def _words(text: str) -> list[str]:
    words = re.sub(r"\((r|tm)\)|[®™]", " ", text.lower()).split()
    return [word for word in words if word not in MAKER] or words


def _same(words: list[str], text: list[str]) -> bool:
    return words == text


def _among(words: list[str], text: list[str]) -> bool:
    return set(words) <= set(text)


def _begin(words: list[str], text: list[str]) -> bool:
    return all(any(one.startswith(word) for one in text) for word in words)


def _unknown(name: str, known: dict[str, Target]) -> InputError:
    from difflib import get_close_matches

    near = list(dict.fromkeys(get_close_matches(name.lower(), known, n=3, cutoff=0.6)))
    return InputError(
        f"unknown GPU target {name!r}",
        cause="near it: " + ", ".join(f"{one} ({known[one].name})" for one in near)
        if near
        else "no target, product, code name, family or PCI id in the catalog is like it",
        next_step="rocwright targets lists all",
    )
