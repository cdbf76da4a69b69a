"""The list of a name, in a CMake file, a Python file or a shell script, and entries added to it."""

from __future__ import annotations

import re

from rocwright.model.edits import Edit
from rocwright.patching.found import Match, TextChange

_QUOTED = r"\"[^\"\n]*\"|'[^'\n]*'"


def find_list(edit: Edit, text: str) -> Match:
    """The entries that the lists of that name lack, at the end of each.

    A list is `set(NAME a b)` or `set(NAME "a;b")` as CMake has it, `NAME = ["a", "b"]` (also with round or
    curly brackets), or one quoted text with `;`, `,` or spaces between its entries.
    """
    name = re.escape(edit.variable)
    forms = (
        rf"^[ \t]*(?i:set|list)[ \t]*\(\s*(?:(?i:APPEND)\s+)?{name}\b(?P<words>[^()#]*)\)",
        rf"^[ \t]*(?:export[ \t]+)?{name}[ \t]*(?::[^=\n]+)?=[ \t]*[\[({{](?P<items>[^\])}}]*)[\])}}]",
        rf"^[ \t]*(?:export[ \t]+)?{name}[ \t]*(?::[^=\n]+)?=[ \t]*(?P<text>{_QUOTED})",
    )
    changes, there = [], 0
    for match in re.finditer("|".join(forms), text, re.MULTILINE):
        group = match.lastgroup or ""
        start, body = match.start(group), match[group]
        change = _missing(body, start, edit.add) if group != "items" else _items(body, start, edit.add)
        if change is None:
            there += 1
        else:
            changes.append(change)
    return Match(
        changes=tuple(changes),
        there=there,
        wanted=f"a list named {edit.variable}",
        needle=f'set({edit.variable} "")' if not text.count(f"{edit.variable} =") else f"{edit.variable} = ",
    )


def _missing(body: str, start: int, add: tuple[str, ...]) -> TextChange | None:
    """CMake's words, or one quoted text with the entries in it."""
    quoted = re.match(rf"\s*({_QUOTED})", body)
    if quoted:
        inner = quoted[1][1:-1]
        between = next((sign for sign in ";, " if sign in inner), ";")
        known = [one.strip() for one in inner.split(between) if one.strip()]
        new = [one for one in add if one not in known]
        at = start + quoted.end(1) - 1
        return TextChange(at, at, between.join(["", *new] if known else new)) if new else None
    # what follows these words is not of the list
    words = re.match(r"(?s)(?:(?!\s(?:CACHE|PARENT_SCOPE)\b).)*", body)
    inner = words[0].rstrip() if words else ""
    new = [one for one in add if one not in inner.split()]
    at = start + len(inner)
    return TextChange(at, at, "".join(f" {one}" for one in new)) if new else None


def _items(body: str, start: int, add: tuple[str, ...]) -> TextChange | None:
    """Quoted items with commas between them."""
    items = list(re.finditer(_QUOTED, body))
    known = [item[0][1:-1] for item in items]
    new = [one for one in add if one not in known]
    if not new:
        return None
    quote = items[-1][0][0] if items else '"'
    at = start + (items[-1].end() if items else 0)
    text = ", ".join(f"{quote}{one}{quote}" for one in new)
    return TextChange(at, at, f", {text}" if items else text)
