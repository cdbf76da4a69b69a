"""The list of a name, in a CMake file, a Python file or a shell script, and entries added to it."""

from __future__ import annotations

import re

from rocwright.model.edits import Edit
from rocwright.sources.patching.found import Match, TextChange

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
    changes, present = [], 0
    for match in re.finditer("|".join(forms), text, re.MULTILINE):
        group = match.lastgroup or ""
        start, body = match.start(group), match[group]
        change = _missing(body, start, edit.add) if group != "items" else _items(body, start, edit.add)
        if change is None:
            present += 1
        else:
            changes.append(change)
    return Match(
        changes=tuple(changes),
        there=present,
        wanted=f"a list named {edit.variable}",
        needle=f'set({edit.variable} "")' if not text.count(f"{edit.variable} =") else f"{edit.variable} = ",
    )


def _missing(body: str, start: int, add: tuple[str, ...]) -> TextChange | None:
    """CMake's words, or one quoted text with the entries in it."""
    quoted = re.match(rf"\s*({_QUOTED})", body)
    if quoted:
        inner = quoted[1][1:-1]
        between = next((sign for sign in ";, " if sign in inner), ";")
        existing = [entry.strip() for entry in inner.split(between) if entry.strip()]
        new = [entry for entry in add if entry not in existing]
        position = start + quoted.end(1) - 1
        return TextChange(position, position, between.join(["", *new] if existing else new)) if new else None
    # what follows these words is not of the list
    words = re.match(r"(?s)(?:(?!\s(?:CACHE|PARENT_SCOPE)\b).)*", body)
    inner = words[0].rstrip() if words else ""
    new = [entry for entry in add if entry not in inner.split()]
    position = start + len(inner)
    return TextChange(position, position, "".join(f" {entry}" for entry in new)) if new else None


def _items(body: str, start: int, add: tuple[str, ...]) -> TextChange | None:
    """Quoted items with commas between them."""
    items = list(re.finditer(_QUOTED, body))
    existing = [item[0][1:-1] for item in items]
    new = [entry for entry in add if entry not in existing]
    if not new:
        return None
    quote = items[-1][0][0] if items else '"'
    position = start + (items[-1].end() if items else 0)
    text = ", ".join(f"{quote}{entry}{quote}" for entry in new)
    return TextChange(position, position, f", {text}" if items else text)
