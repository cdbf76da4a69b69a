"""The kinds of edit of one file's text: each a pure function from a text to what was found in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from rocbase.errors import PatchError
from rocwright.model.edits import Edit, EditKind
from rocwright.sources.patching.found import Match, TextChange, line_of, occurrences, outside
from rocwright.sources.patching.lists import find_list
from rocwright.sources.patching.rules import find_rule


def find(edit: Edit, text: str) -> Match:
    """Where the edit changes the text. Raises PatchError where it cannot say."""
    return _KINDS[edit.kind](edit, text)


def derived_marker(edit: Edit) -> str:
    """The text that a file must hold after the edit, where that can be told from the edit alone."""
    match edit.kind:
        case EditKind.LITERAL:
            return edit.marker or edit.replacement or ""
        case EditKind.REGEX:
            # a replacement that uses groups is not known beforehand
            return edit.marker or ("" if "\\" in (edit.replacement or "") else edit.replacement or "")
        case EditKind.INCLUDE:
            return edit.marker or f"#include {edit.include}"
        case _:
            return edit.marker


def _literal(edit: Edit, text: str) -> Match:
    present = occurrences(text, derived_marker(edit))
    # what is put in may hold what is looked for: places that are done already do not count
    places = outside(occurrences(text, edit.literal), present)
    return Match(
        changes=tuple(TextChange(start, end, edit.replacement or "") for start, end in places),
        there=len(present),
        wanted=repr(edit.literal),
        needle=edit.literal,
    )


def _regex(edit: Edit, text: str) -> Match:
    pattern = re.compile(edit.regex, re.MULTILINE)
    present = occurrences(text, derived_marker(edit))
    matches = [match for match in pattern.finditer(text) if outside([match.span()], present)]
    try:
        changes = tuple(TextChange(*match.span(), match.expand(edit.replacement or "")) for match in matches)
    except (re.error, IndexError) as error:
        raise PatchError(
            f"the replacement {edit.replacement!r} cannot be filled in",
            cause=f"regex {edit.regex!r}: {error}",
            next_step="correct `with` of the edit: \\1 stands for the first group",
            subject=edit.file,
        ) from error
    return Match(
        changes=changes,
        there=len(present),
        wanted=f"regex {edit.regex!r}",
        needle=re.sub(r"\\[a-zA-Z]|[\\^$*+?()\[\]{}|]", " ", edit.regex),
    )


# CMake's commands are named in any case, and a line may be a comment
_MINIMUM = re.compile(
    r"^(?P<before>[ \t]*cmake_minimum_required[ \t]*\([ \t\n]*VERSION[ \t]+)"
    r"(?P<least>[0-9]+(?:\.[0-9]+)*)(?:\.\.\.(?P<most>[0-9]+(?:\.[0-9]+)*))?",
    re.MULTILINE | re.IGNORECASE,
)


def _cmake_minimum(edit: Edit, text: str) -> Match:
    minimum = _numbers(edit.minimum.partition("...")[0])
    changes, present = [], 0
    for match in _MINIMUM.finditer(text):
        # CMake takes the upper end of a range for its policies
        if _numbers(match["most"] or match["least"]) >= minimum:
            present += 1
        else:
            changes.append(TextChange(match.start("least"), match.end(), edit.minimum))
    return Match(
        changes=tuple(changes),
        there=present,
        wanted=f"cmake_minimum_required with a version below {edit.minimum}",
        needle="cmake_minimum_required(VERSION 2.8)",
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?P<what><[^<>\n]+>|"[^"\n]+")', re.MULTILINE)


def _include(edit: Edit, text: str) -> Match:
    line = f"#include {edit.include}"
    present = sum(match["what"] == edit.include for match in _INCLUDE.finditer(text))
    description = f"the line {edit.below!r}" if edit.below else "an #include"
    match = Match(there=present, wanted=description, needle=edit.below or "#include <")
    if present:
        return match
    if edit.below:
        places = [
            match.end() for match in re.finditer(rf"^{re.escape(edit.below)}[ \t]*$", text, re.MULTILINE)
        ]
        changes = tuple(TextChange(place, place, f"\n{line}") for place in places)
    else:
        first = _INCLUDE.search(text)
        changes = (TextChange(first.start(), first.start(), f"{line}\n"),) if first else ()
        if first and _conditionals(text[: first.start()]):
            raise PatchError(
                f"{line} cannot be put above the first #include of {edit.file}",
                cause=f"line {line_of(text, first.start())} is inside a conditional",
                next_step="set `below` of the edit to the line under which it goes",
                subject=edit.file,
            )
    return Match(changes=changes, wanted=match.wanted, needle=match.needle)


def _conditionals(text: str) -> int:
    """How many conditionals are open at the end of a text, a header's own guard left out."""
    opened = re.findall(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef)\b", text, re.MULTILINE)
    closed = re.findall(r"^[ \t]*#[ \t]*endif\b", text, re.MULTILINE)
    guard = re.search(r"^[ \t]*#[ \t]*ifndef[ \t]+(\w+)\s+#[ \t]*define[ \t]+\1[ \t]*$", text, re.MULTILINE)
    return len(opened) - len(closed) - (guard is not None)


# Every kind but a diff, which is about several files.
_KINDS: Mapping[EditKind, Callable[[Edit, str], Match]] = {
    EditKind.LITERAL: _literal,
    EditKind.REGEX: _regex,
    EditKind.CMAKE_MINIMUM: _cmake_minimum,
    EditKind.INCLUDE: _include,
    EditKind.LIST: find_list,
    EditKind.RULE: find_rule,
}
