"""The field's known failures, and how tools tell those that nobody knows: signatures of logs, as data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import cache, lru_cache
from typing import Annotated, Any, Literal

import re2
from pydantic import AfterValidator, Field, model_validator

from rocbase.errors import FailureClass
from rocbase.model import Frozen
from rocbase.toml.read import Reader
from rocwright.catalog.folders import catalog_folders
from rocwright.catalog.literals import literals
from rocwright.catalog.phase import Phase
from rocwright.catalog.remedy import Name, RemedyAction, Text
from rocwright.model.edits import Range

# A word in small letters that a log may have.
Word = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+._-]{1,40}$")]

# What a line is: a cause, the words of one where no line is plainer, what follows from one told elsewhere,
# or a warning that breaks nothing.
Role = Literal["cause", "likely", "follows", "warns"]


def options() -> re2.Options:
    """How signatures are read: bytes, a line at a time, upper and lower case apart."""
    chosen = re2.Options()
    chosen.encoding = re2.Options.Encoding.LATIN1
    chosen.never_nl = True
    chosen.log_errors = False
    return chosen


def _compiled(pattern: str) -> re2.Pattern:
    return re2.compile(pattern.encode(), options())


def _check_pattern(value: str) -> str:
    if not value.isascii():
        raise ValueError(f"{value!r} is not ASCII: curved quotes of compilers are replaced before matching")
    if _is_read(value) and literals(value) is not None:
        # a line without its texts, such as the empty one, does not match: nothing needs to be compiled
        return value
    try:
        compiled = _compiled(value)
    except re2.error as error:
        raise ValueError(
            f"{value!r} is not a regular expression that RE2 reads: {_words_of_re2(error)}"
        ) from error
    if compiled.search(b""):
        raise ValueError(f"{value!r} matches the empty line, so it matches everywhere")
    return value


def _is_read(value: str) -> bool:
    """Whether RE2 reads a pattern; compiling it takes ten times as long."""
    try:
        re2.Set.SearchSet(options()).Add(value.encode())
    except re2.error:
        return False
    return True


def _words_of_re2(error: Exception) -> str:
    """RE2's words, which it gives as bytes."""
    return str(error.args[0].decode())


Pattern = Annotated[str, AfterValidator(_check_pattern)]


def _to_the_letter(text: str) -> str:
    """A pattern in ASCII that matches just this text, in UTF-8."""
    return "".join(re.escape(chr(byte)) if byte < 128 else f"\\x{byte:02x}" for byte in text.encode())


# The bracket that Chinese has.
_WIDE = _to_the_letter("\uff08")


class Signature(Frozen):
    """Lines of a log that mean something: any of `patterns` (RE2, within one line) is found in one.

    A `^` at the begin of a pattern is the begin of the line, behind a time and the like. `examples` must
    match, `no_match` must not: lines that look alike and mean nothing, or something else.
    """

    name: Name
    failure: FailureClass = Field(alias="class")
    role: Role = "cause"
    patterns: Annotated[tuple[Pattern, ...], Field(min_length=1)]
    examples: Annotated[tuple[Text, ...], Field(min_length=1)]
    no_match: Annotated[tuple[Text, ...], Field(min_length=1)]


class ErrorLine(Signature):
    """The line by which a tool tells a failure, known or not; `before` lines above it are shown too.

    With `begins` the failure begins here: errors that stand before it were got over, and any that follow
    go before them. `translated` are ends of such lines in other languages, to the letter. With `below` the
    error itself is told by the line below. With `event` each of its lines tells something of its own, as a
    kernel's do, and what stands far below follows from it.
    """

    says: Text
    translated: tuple[Text, ...] = ()
    before: int = Field(default=0, ge=0, le=8)
    begins: bool = False
    below: bool = False
    event: bool = False

    @model_validator(mode="before")
    @classmethod
    def _add_translated(cls, data: Any) -> Any:
        translated = data.get("translated") if isinstance(data, dict) else None
        if not isinstance(translated, list | tuple) or not all(
            isinstance(text, str) and text for text in translated
        ):
            return data
        ends = "|".join(_to_the_letter(text) for text in translated)
        return data | {"patterns": [*data.get("patterns", ()), f"(?:{ends})[.]?(?: *[(]|{_WIDE}|$)"]}


class FixedIn(Frozen):
    """The versions of a component in which upstream has fixed something, and where that is known from."""

    component: Name
    versions: Annotated[Range, Field(min_length=1)]
    source: Text


class Quote(Frozen):
    """A line that a program printed, to the letter, and the address where it stands.

    With `made` it was not seen in a log: it is the text in that source file, its places filled in.
    """

    line: Text
    source: Annotated[str, Field(pattern=r"^https://[^\s<>]+$")]
    made: bool = False


class Filled(Frozen):
    """What to say when the line is there: `{name}` is what the pattern's group of that name matched.

    `indexed` is the remedy where the base's index of files tells which packages have the `header`: it has
    {packages} and {base} too. A `wide` family says little more than its line: any other that fits the line
    goes before it, and one near by too.
    """

    means: Text
    remedy: str = ""
    indexed: str = ""
    wide: bool = False


class Issue(Signature):
    """A known failure: what it `means`, its likely `cause`, the `remedy` in words, and `remedies` that a
    machine can take, the likeliest first.

    `components` are those in whose logs it was seen (none: any), `versions` those of them that have it,
    `targets` the GPUs, `bases` the bases (by name, or one release of it), `phases` what was being done (none:
    any). With `ended` it stands for all that the machine itself ends for the reason of its class, whatever
    the log says. `fixed_in` says which versions of what have it no more, `upstream` are the addresses where
    it is followed, and before the day `since` nobody had it. With `named` its words may be others' too: it is
    told where the log has any of these (in any case of letters), or where one of `components` is built. With
    `filled` it is a family, of whose lines
    each names another thing; an issue of one thing goes before it. `quotes` are lines that a program printed:
    a pattern must match each. `confidence` is how sure the facts are, by the words of the catalog.
    """

    means: Text
    cause: Text
    remedy: Text
    remedies: tuple[RemedyAction, ...] = ()
    components: tuple[Name, ...] = ()
    versions: dict[Name, Range] = {}
    targets: tuple[str, ...] = ()
    bases: tuple[Text, ...] = ()
    phases: tuple[Phase, ...] = ()
    ended: bool = False
    fixed_in: tuple[FixedIn, ...] = ()
    upstream: tuple[Text, ...] = ()
    since: date | None = None
    named: tuple[Word, ...] = ()
    filled: Filled | None = None
    quotes: tuple[Quote, ...] = ()
    source: Annotated[tuple[Text, ...], Field(min_length=1)]
    confidence: Annotated[str, Field(pattern=r"^(high|medium|low)(: \S.*)?$")]


class ErrorLines(Frozen):
    """error_lines.toml: what may stand `before` a line (times, numbers of steps, names), which lines are
    `calm`, no error whatever words are in them, which are `quoted`, a program's source in a traceback, what
    words among the `last` lines tell a failure where no line is plainer, which last line tells `success`,
    where `days`, `cards` and `kernels` stand (each a group), and what errors look like."""

    before: tuple[Pattern, ...] = ()
    calm: tuple[Pattern, ...] = ()
    quoted: tuple[Pattern, ...] = ()
    last: tuple[Pattern, ...] = ()
    success: tuple[Pattern, ...] = ()
    days: tuple[Pattern, ...] = ()
    cards: tuple[Pattern, ...] = ()
    kernels: tuple[Pattern, ...] = ()
    error_line: tuple[ErrorLine, ...] = ()


class IssuesFile(Frozen):
    """issues/*.toml."""

    issue: tuple[Issue, ...] = ()


ISSUES, ERROR_LINES = "issues", "error_lines.toml"


def read_issues(reader: Reader) -> dict[str, Issue]:
    """Known failures by name; a folder's own stand in place of those of folders below."""
    rows = (
        (path, f"issue.{number}", row)
        for path in reader.files(ISSUES)
        for number, row in enumerate(reader.rows(path, reader.data(path), "issue"))
    )
    issues = reader.named(Issue, rows)
    return {name: issues[name] for name in sorted(issues)}


def read_error_lines(reader: Reader) -> ErrorLines:
    """What errors look like; a folder's own are added to those of folders below."""
    tables = [reader.model(ErrorLines, reader.data(path), path) for path in reader.layers(ERROR_LINES)]
    read = [table for table in tables if table is not None]
    texts = {
        name: tuple(text for table in read for text in getattr(table, name))
        for name in ErrorLines.model_fields
    }
    kinds = {line.name: line for line in texts["error_line"]}
    return ErrorLines.model_validate(texts | {"error_line": tuple(kinds.values())})


@cache
def _the_issues(folders: Sequence[str]) -> tuple[Mapping[str, Issue], ErrorLines]:
    from pathlib import Path

    reader = Reader([Path(folder) for folder in folders])
    return read_issues(reader), read_error_lines(reader)


def the_issues() -> tuple[Mapping[str, Issue], ErrorLines]:
    """What the catalog in use knows of failures. Raises InputError where a table is wrong."""
    return _the_issues(tuple(str(folder) for folder in catalog_folders()))


@lru_cache(maxsize=8192)
def anywhere(pattern: str) -> str:
    """A pattern for whole logs that finds a line wherever in it the pattern begins: what stands before the
    line's own begin is not known yet."""
    begins = _MAY_BEGIN.sub("", unnamed(pattern)).removeprefix("^")
    return f"(?m:{_shortest(begins)})"


# A choice at the begin of a pattern of which one is the begin of the line.
_MAY_BEGIN = re.compile(r"^\(\?:(?:[^()|]*\|)*\^(?:\|[^()]*)?\)")


_ATOM = r"(?:\[\^?(?:\\.|[^\]\\])+\]|\\[wWsSdD]|\.| )"
_AHEAD = (
    (re.compile(rf"{_ATOM}(?:[*?]|\{{0,[0-9]+\}})(?![?+*])"), ""),
    (re.compile(rf"({_ATOM})(?:\+|\{{1,[0-9]+\}})(?![?+*])"), r"\1"),
    (re.compile(rf"\(\?:({_ATOM})(?:\+|\{{1,[0-9]+\}})\)(?![?+*{{])"), r"\1"),
    (re.compile(r"\(\?:[^()]*\)[*?](?![?+*])"), ""),
)
_BEHIND = (
    (re.compile(rf"(?<!\\)({_ATOM})(?:\+|\{{1,[0-9]+\}})$"), r"\1"),
    (re.compile(rf"\(\?:({_ATOM})(?:\+|\{{1,[0-9]+\}})\)$"), r"\1"),
    (re.compile(rf"(?<!\\){_ATOM}\*$"), ""),
)


def _shortest(pattern: str) -> str:
    """A pattern found in the same lines, without what its begin and end only repeat or may have: RE2 would
    have to remember at each place of a log how far it is in that."""
    for trim, match in [(_AHEAD, re.Pattern.match), (_BEHIND, re.Pattern.search)]:
        for edge, replacement in trim:
            if match(edge, pattern):
                shorter = edge.sub(replacement, pattern, count=1)
                return pattern if _finds_nothing(shorter) else _shortest(shorter)
    return pattern


def _finds_nothing(pattern: str) -> bool:
    """Whether it is found in an empty line, or is no pattern."""
    try:
        return _compiled(pattern).search(b"") is not None
    except re2.error:
        return True


def unnamed(pattern: str) -> str:
    """A pattern whose groups have no names, so that many can stand in one."""
    return re.sub(r"\(\?P<\w+>", "(?:", pattern)


def stamps(prefixes: Iterable[str]) -> re2.Pattern | None:
    """What finds times and names at the begin of a line; None where none are known."""
    alternatives = "|".join(prefixes)
    return _compiled(f"^(?:{alternatives})+") if alternatives else None


def any_of(patterns: Sequence[str]) -> re2.Pattern | None:
    """What finds lines with any of these; None where there are none."""
    return _compiled("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None


def groups_of(pattern: str) -> set[str]:
    """The names of a pattern's groups."""
    return {name.decode() for name in _compiled(pattern).groupindex}


def slots_in(pattern: str, line: str) -> dict[str, str] | None:
    """What a pattern's named groups matched in a line; None where it does not match."""
    match = _compiled(pattern).search(plain(line))
    if match is None:
        return None
    return {
        name.decode(): (text or b"?").decode(errors="replace") for name, text in match.groupdict().items()
    }


def any_in_lines(patterns: Sequence[str]) -> re2.Pattern | None:
    """What finds these in whole logs, with their groups; None where there are none."""
    parts = [f"(?m:{pattern})" for pattern in patterns]
    return _compiled("|".join(parts)) if parts else None


def bare(line: bytes, stamp: re2.Pattern | None) -> bytes:
    """A line without the times and names that stand before it."""
    match = stamp.match(line) if stamp is not None else None
    return line[match.end() :] if match is not None else line


def plain(line: str) -> bytes:
    """A line as signatures see it: curved quotes made plain."""
    return re.sub("[\u2018\u2019]", "'", line).encode()
