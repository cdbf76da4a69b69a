"""Structural edits: ast-grep finds code by its shape, whatever its spaces and line ends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocbase.errors import InputError, PatchError
from rocwright.model.edits import Edit, Rule
from rocwright.plugins import install_command
from rocwright.sources.patching.found import Match, TextChange, occurrences, outside

if TYPE_CHECKING:
    from ast_grep_py import SgNode

_VARIABLE = re.compile(r"(?P<several>\$\$\$)(?P<all>[A-Z_][A-Z0-9_]*)|\$(?P<one>[A-Z_][A-Z0-9_]*)")


def find_rule(edit: Edit, text: str) -> Match:
    """What the rule's pattern matches, places that are as rewritten left out.

    Raises InputError where ast-grep is not installed, PatchError where it cannot read the rule.
    """
    assert edit.rule is not None
    rewritten = _matches(edit, edit.rule.rewrite, text) if edit.rule.rewrite else []
    present = [_span(node) for node in rewritten] + occurrences(text, edit.marker)
    nodes = [node for node in _matches(edit, edit.rule.pattern, text) if outside([_span(node)], present)]
    return Match(
        changes=tuple(TextChange(*_span(node), _rewritten(edit.rule, node, text)) for node in nodes),
        there=len(present),
        wanted=f"{edit.rule.language} code like {edit.rule.pattern!r}",
        needle=_VARIABLE.sub("", edit.rule.pattern),
    )


def _matches(edit: Edit, pattern: str, text: str) -> list[SgNode]:
    assert edit.rule is not None
    try:
        from ast_grep_py import SgRoot
    except ImportError as error:
        raise InputError(
            f"the edit of {edit.file} is a structural rule, and ast-grep is not installed here",
            cause=str(error),
            next_step=install_command("rules"),
            subject=edit.file,
        ) from error
    try:
        return SgRoot(text, edit.rule.language).root().find_all(pattern=pattern)
    except RuntimeError as error:
        causes = re.findall(r"^ +\d: (.+)$", str(error).partition("\n\nStack")[0], re.MULTILINE)
        raise PatchError(
            f"the rule of the edit of {edit.file} cannot be used",
            cause=f"{pattern!r} as {edit.rule.language}: {causes[-1] if causes else error}",
            next_step="correct `language`, `pattern` or `rewrite` of the rule",
            subject=edit.file,
        ) from error


def _span(node: SgNode) -> tuple[int, int]:
    place = node.range()
    return place.start.index, place.end.index


def _rewritten(rule: Rule, node: SgNode, text: str) -> str:
    """The rewrite with what its variables matched."""

    def fill(match: re.Match[str]) -> str:
        if match["several"]:
            several = node.get_multiple_matches(match["all"])
            return text[_span(several[0])[0] : _span(several[-1])[1]] if several else ""
        capture = node.get_match(match["one"])
        return capture.text() if capture else match[0]

    return _VARIABLE.sub(fill, rule.rewrite)
