"""An edit: one declared change of a source tree, with its reason and its source."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from rocbase.model import Frozen

# In `with` the targets asked for, separated by `;`; as an entry of `add` one entry for each of them.
TARGETS = "{targets}"


class EditKind(StrEnum):
    """How an edit says what it changes; each word is the field that says it."""

    LITERAL = "literal"
    REGEX = "regex"
    CMAKE_MINIMUM = "cmake-minimum"
    INCLUDE = "include"
    LIST = "list"
    RULE = "rule"
    DIFF = "diff"


# Of the languages that ast-grep reads, those in use here; it ends the process for one it does not know.
Language = Literal[
    "bash", "c", "cpp", "go", "javascript", "json", "lua", "python", "rust", "typescript", "yaml"
]


class Rule(Frozen):
    """A structural change by ast-grep: what `pattern` matches in `language` becomes `rewrite`.

    `$NAME` stands for one node and `$$$NAME` for several, in both.
    """

    language: Language
    pattern: str = Field(min_length=1)
    rewrite: str


_BOUND = r"(?:[<>]=?|[=!]=)[0-9]+(?:\.[0-9]+)*"
_PLAIN_RANGE = re.compile(rf"{_BOUND}(?:, ?{_BOUND})*")


def _check_range(value: str) -> str:
    if _PLAIN_RANGE.fullmatch(value):
        # most are, and what reads the others takes long to load
        return value
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(value)
    except InvalidSpecifier as error:
        raise ValueError(f"{value!r} is not a version range such as '>=2.5,<2.7' (PEP 440)") from error
    return value


def check_inside(value: str) -> str:
    """The path of a file in a tree, as it is. Raises ValueError where it leads out of the tree."""
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or "\\" in value or "\0" in value:
        raise ValueError(f"{value!r} points outside the source tree: absolute, or with ..")
    return value


Range = Annotated[str, AfterValidator(_check_range)]

_MINIMUM = r"^\d+\.\d+(\.\d+)?(\.\.\.\d+\.\d+(\.\d+)?)?$"


class Edit(Frozen):
    """One change of `file`, said in one of seven ways; see docs/edits.md for each.

    `expect` is the number of places that must match, `for` the versions that need the edit, `absorbed` those
    in which upstream may have it already, `marker` a text that the file holds afterwards (a default is
    derived), `absent` one that it holds no more where upstream did the same in another way, `patch` the text
    of the file that `diff` names (filled in when the recipe is read), `phase` when it is applied: at once, or
    after the recipe's `prepare` commands.

    `places`, `targets` and `beside` limit it to some kinds of source place, to builds for one of some
    targets, and to stacks in which other components have a version in a range. `why` and `source` tell the
    reason and where that is known from, `upstream` the change that makes the edit needless.
    """

    file: str = ""
    literal: str = ""
    regex: str = ""
    replacement: str | None = Field(default=None, alias="with")
    minimum: str = Field(default="", alias="cmake-minimum", pattern=rf"^$|{_MINIMUM}")
    include: str = Field(default="", pattern=r'^$|^<[^<>"\n]+>$|^"[^<>"\n]+"$')
    below: str = ""
    variable: str = Field(default="", alias="list", pattern=r"^$|^[A-Za-z_][A-Za-z0-9_]*$")
    add: tuple[str, ...] = ()
    rule: Rule | None = None
    diff: Annotated[str, AfterValidator(check_inside)] = ""
    patch: str = ""
    expect: int = Field(default=1, ge=1)
    versions: Range = Field(default="", alias="for")
    absorbed: Range = ""
    marker: str = ""
    absent: str = ""
    phase: Literal["", "prepared"] = ""
    line_ends: Literal["lf", "crlf"] = Field(default="lf", alias="line-ends")
    places: tuple[Literal["git", "sdist", "debian", "archive", "builtin"], ...] = ()
    targets: tuple[str, ...] = ()
    beside: dict[str, Range] = {}
    why: str
    source: str = ""
    upstream: str = ""
    confidence: str = ""

    @property
    def kind(self) -> EditKind:
        """Which of the seven ways it is."""
        return self._ways()[0]

    def _ways(self) -> list[EditKind]:
        fields = {
            EditKind.LITERAL: self.literal,
            EditKind.REGEX: self.regex,
            EditKind.CMAKE_MINIMUM: self.minimum,
            EditKind.INCLUDE: self.include,
            EditKind.LIST: self.variable,
            EditKind.RULE: self.rule,
            EditKind.DIFF: self.diff,
        }
        return [kind for kind, value in fields.items() if value]

    @model_validator(mode="after")
    def _one_way(self) -> Edit:
        ways = self._ways()
        if len(ways) != 1:
            raise ValueError(
                f"an edit needs exactly one of {', '.join(EditKind)}, not {' and '.join(ways) or 'none'}"
            )
        (kind,) = ways
        if (self.replacement is not None) != (kind in (EditKind.LITERAL, EditKind.REGEX)):
            raise ValueError("`with` goes with `literal` or `regex`, and with no other kind")
        if bool(self.add) != (kind is EditKind.LIST):
            raise ValueError("`add` goes with `list`, and with no other kind")
        if self.below and kind is not EditKind.INCLUDE:
            raise ValueError("`below` goes with `include` only")
        if bool(self.file) == (kind is EditKind.DIFF):
            raise ValueError("`file` names the file to edit; a diff names its files itself")
        if self.patch and kind is not EditKind.DIFF:
            raise ValueError("`patch` is the text of a diff: name its file with `diff`")
        if kind is EditKind.REGEX:
            _check_regex(self.regex)
        return self

    @property
    def subject(self) -> str:
        """The file, or the diff, in words."""
        return self.file or self.diff

    def material(self) -> dict[str, Any]:
        """What can change the tree, for the key: not the reason, sources, version ranges or a diff's name."""
        excluded = {
            "why",
            "source",
            "upstream",
            "confidence",
            "versions",
            "absorbed",
            "absent",
            "beside",
            "places",
            "targets",
            "diff",
        }
        data = self.model_dump(mode="json", exclude=excluded, exclude_defaults=True)
        return data | {"file": self.file, "expect": self.expect}

    def for_targets(self, targets: tuple[str, ...]) -> Edit:
        """The edit with `{targets}` filled in."""
        add = [word for name in self.add for word in (targets if name == TARGETS else (name,))]
        filled: dict[str, Any] = {"add": tuple(add)}
        if self.replacement is not None:
            filled["replacement"] = self.replacement.replace(TARGETS, ";".join(targets))
        return self.model_copy(update=filled)


def _check_regex(regex: str) -> None:
    try:
        compiled = re.compile(regex, re.MULTILINE)
    except re.error as error:
        raise ValueError(f"{regex!r} is not a regular expression: {error}") from error
    if compiled.match(""):
        raise ValueError(f"{regex!r} matches the empty text, so it matches everywhere")
