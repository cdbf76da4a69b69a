"""What broke? The first error of a log, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from rocbase.errors import FailureClass
from rocbase.model import Frozen
from rocwright.catalog.issue import ErrorLine, ErrorLines, Issue, Signature, slots_in, the_issues
from rocwright.catalog.phase import Phase
from rocwright.diagnosis.ending import Ending, LastLine
from rocwright.diagnosis.log_facts import LogFacts
from rocwright.diagnosis.novel import Novelty
from rocwright.diagnosis.read_log import MOST_LINES
from rocwright.diagnosis.scan import Hit, Scan

# Characters of a log's last line that are kept.
MOST_LAST = 500

# Who says a line of the log's end, where no line in all of it is plainer.
ITS_END = "a program, at its end"

# Characters of what a line names.
MOST_SLOT = 120

# Lines that are told in all, where the first error and the known issues are fewer.
MOST_TOLD = 3

# Lines behind the first error in which a wide family still explains it: what is further down follows.
NEAR = 2

# Known failures by name, and how tools tell those that nobody knows.
Knowledge = tuple[Mapping[str, Issue], ErrorLines]

# Lines behind an event that may say more of it.
SOON = 4

# Which is told first; of those alike, the first in the log.
_ROLES = {"cause": 0, "likely": 1, "follows": 1, "warns": 2}


class FailurePlace(Frozen):
    """What failed, as far as that is known: its component and version, the GPUs, the base, and the phase."""

    component: str = ""
    version: str = ""
    targets: tuple[str, ...] = ()
    base: str = ""
    phase: Phase | None = None


class LogLocation(Frozen):
    """A line of a log, numbered from 1; `lines` are what is shown around it, `tool` who says it."""

    line: int
    text: str
    lines: tuple[str, ...]
    tool: str = ""
    failure: FailureClass


class KnownIssue(Frozen):
    """A known issue and the first line where it was seen; where it is a family, `slots` are what that line
    names, and the issue's words have them. `packages` of the base have what is missing, where that was
    looked up. `here` is what the machine says for or against it. It is not `sure` where it is of some cards
    alone and nothing tells that one of them is there."""

    issue: Issue
    place: LogLocation
    slots: dict[str, str] = {}
    packages: tuple[str, ...] = ()
    here: tuple[str, ...] = ()
    sure: bool = True


class RuledOut(Frozen):
    """A known issue whose signature is there, and that cannot be it."""

    issue: str
    line: int
    why: str


class Diagnosis(Frozen):
    """What a log tells: its `first` error (None: none was found), the known issues in it, the likeliest
    first, `others`: further lines that may tell the failure, the likeliest first, the issues ruled out, how
    much was read, in lines and bytes, its `last` line, and, where a good log was there to compare it with,
    what is `new` in it. `kernel` and `cards` are those that the log names. If it is of a
    success, none of its known issues is sure."""

    first: LogLocation | None
    known: tuple[KnownIssue, ...]
    ruled_out: tuple[RuledOut, ...]
    lines: int
    size: int
    others: tuple[LogLocation, ...] = ()
    last: str = ""
    new: Novelty | None = None
    kernel: str = ""
    cards: tuple[str, ...] = ()
    success: bool = False

    @property
    def cause(self) -> KnownIssue | None:
        """The known issue that explains the failure, if one does."""
        best = self.known[0] if self.known else None
        return best if best is not None and _explains(best) else None

    @property
    def failure(self) -> FailureClass | None:
        """The class of what broke; None where no error was found, or nothing failed."""
        if self.success:
            return None
        if self.cause is not None:
            return self.cause.issue.failure
        return self.first.failure if self.first else None


class LogSearch:
    """A diagnosis of a log in pieces of whole, clean lines; `knowledge` is the catalog's if left out.

    `failed` says whether what the log is of failed; None: its last line tells whether it went well.
    """

    def __init__(
        self,
        context: FailurePlace | None = None,
        knowledge: Knowledge | None = None,
        *,
        failed: bool | None = None,
    ) -> None:
        issues, lines = knowledge or the_issues()
        self._where = context or FailurePlace()
        self._last = b""
        self._failed = failed
        self._end = Ending(lines.last, lines.before, lines.calm, lines.success)
        words = {word for issue in issues.values() for word in (*issue.named, *issue.targets)}
        self._facts = LogFacts(lines.days, lines.cards, lines.kernels, sorted(words))
        self._scan = Scan((*issues.values(), *lines.error_line), lines.before, lines.calm, lines.quoted)

    def feed(self, piece: bytes) -> None:
        """Read one more piece."""
        self._scan.feed(piece)
        self._facts.feed(piece)
        self._end.feed(piece)
        if not piece.isspace():
            self._last = piece

    def told(self) -> Diagnosis:
        """What was found so far."""
        context = self._where
        self._facts.finish()
        if not context.targets and self._facts.cards:
            context = context.model_copy(update={"targets": self._facts.cards})
        matches: list[KnownIssue] = []
        out: list[RuledOut] = []
        unnamed: list[RuledOut] = []
        for hit in self._scan.hits:
            if isinstance(hit.signature, Issue):
                issue = hit.signature
                if reason := _not_here(issue, context) or _not_then(issue, self._facts.newest):
                    out.append(RuledOut(issue=issue.name, line=hit.line, why=reason))
                elif reason := _not_named(issue, hit, context, self._facts.named):
                    unnamed.append(RuledOut(issue=issue.name, line=hit.line, why=reason))
                else:
                    sure = _is_sure(issue, hit, context, self._facts.named)
                    matches.append(_known_issue(issue, hit).model_copy(update={"sure": sure}))
        narrow: dict[int, int] = {}
        for match in matches:
            if match.sure:
                narrow[match.place.line] = min(_width(match.issue), narrow.get(match.place.line, 2))
        began = self._scan.began
        first = _first(self._scan.hits, {excluded.issue for excluded in out}, began)
        matches = [
            match
            for match in matches
            if _width(match.issue) <= narrow.get(match.place.line, 2) and not _follows(match, first)
        ]
        events = {hit.line for hit in self._scan.hits if _is_event(hit.signature)}
        matches.sort(key=lambda match: _rank(match, self._where, began, match.place.line in events))
        if not matches and not out and not began and not _is_plain(self._scan.hits):
            location = _at_the_end(self._end, self._scan.lines)
            first = location if location and (first is None or location.line < first.line) else first
        success = self._end.is_success() if self._failed is None else not self._failed
        if success:
            matches = [match.model_copy(update={"sure": False}) for match in matches]
        return Diagnosis(
            first=first,
            success=success,
            known=tuple(matches),
            others=_further_lines(first, matches, self._scan, self._end),
            ruled_out=tuple(sorted([*out, *unnamed], key=lambda excluded: excluded.line)),
            lines=self._scan.lines,
            size=self._scan.size,
            kernel=self._facts.kernel,
            cards=self._facts.cards,
            last=self._last.rstrip().rpartition(b"\n")[2].decode(errors="replace")[:MOST_LAST],
        )


def diagnose(
    pieces: Iterable[bytes], context: FailurePlace | None = None, *, failed: bool | None = None
) -> Diagnosis:
    """Read a log to its end; `failed` is as for `Search`. Raises InputError if the catalog is wrong."""
    search = LogSearch(context, failed=failed)
    for piece in pieces:
        search.feed(piece)
    return search.told()


def _first(hits: Iterable[Hit], ruled_out: set[str], began: int) -> LogLocation | None:
    """The first line that is an error by itself, from where the failure began if one is there, else the
    first that follows from one."""
    errors = [hit for hit in hits if hit.signature.role != "warns" and hit.signature.name not in ruled_out]
    best = min(errors, key=lambda hit: (*_plain(hit.signature), hit.line < began, hit.line), default=None)
    if best is not None and best.signature.role == "follows" and not _begins(best):
        best = next((hit for hit in errors if hit.signature.role == "follows" and _begins(hit)), best)
    return _place(best) if best else None


def _plain(signature: Signature) -> tuple[int, bool]:
    """How plainly its line is an error, the plainest first: what an issue takes for likely comes last."""
    return _ROLES[signature.role], signature.role == "likely" and isinstance(signature, Issue)


def _begins(hit: Hit) -> bool:
    """Whether it is the line with which a failure begins: what only follows and stands before it is of it."""
    return isinstance(hit.signature, ErrorLine) and hit.signature.begins


def _is_event(signature: Signature) -> bool:
    """Whether its line tells something of its own, not a part of what is told by the lines around it."""
    return isinstance(signature, ErrorLine) and signature.event


def _is_plain(hits: Iterable[Hit]) -> bool:
    """Whether a line was found that is an error by itself, not one that only follows from another."""
    return any(_tells(hit) for hit in hits)


def _tells(hit: Hit) -> bool:
    """Whether its line may tell the failure itself: it neither only warns nor only follows."""
    return hit.signature.role not in {"warns", "follows"}


def _at_the_end(end: Ending, lines: int) -> LogLocation | None:
    """The line among the last of a log of so many `lines` that has words of a failure; None: none has."""
    last_line = end.told()
    return _last_place(last_line, lines) if last_line is not None else None


def _last_place(last_line: LastLine, lines: int) -> LogLocation:
    return LogLocation(
        line=lines - last_line.from_end + 1,
        text=last_line.lines[0].strip(),
        lines=last_line.lines,
        tool=ITS_END,
        failure=FailureClass.CHECK,
    )


def _further_lines(
    first: LogLocation | None, matches: Sequence[KnownIssue], scan: Scan, end: Ending
) -> tuple[LogLocation, ...]:
    """Lines that may tell the failure beside the first error and those of known issues, as many as make
    MOST_TOLD; none where the first error's cause is known. What is an error by its form goes first, then
    lines of the log's end; where nothing was found at all, also those without words of a failure."""
    if first is not None and any(top.place.line == first.line and _explains(top) for top in matches[:1]):
        return ()
    numbers = {place.line for place in (first, *(match.place for match in matches)) if place is not None}
    errors = [hit for hit in scan.hits if isinstance(hit.signature, ErrorLine) and _tells(hit)]
    places = [_place(hit) for hit in sorted(errors, key=lambda hit: (*_plain(hit.signature), hit.line))]
    places += [_last_place(last, scan.lines) for last in end.candidates() if last.says or not numbers]
    new = {place.line: place for place in reversed(places) if place.line not in numbers}
    limit = max(0, MOST_TOLD - len(numbers))
    return tuple(place for place in places if new.get(place.line) is place)[:limit]


def _explains(match: KnownIssue) -> bool:
    return match.sure and match.issue.role != "warns"


def _place(hit: Hit) -> LogLocation:
    offset, text = _told_below(hit)
    return LogLocation(
        line=hit.line + offset,
        text=text.strip(),
        lines=tuple(hit.lines),
        tool=hit.signature.says if isinstance(hit.signature, ErrorLine) else "",
        failure=hit.signature.failure,
    )


def _told_below(hit: Hit) -> tuple[int, str]:
    """How far below it the error itself is told, and its text."""
    if isinstance(hit.signature, ErrorLine) and hit.signature.below:
        following = enumerate(hit.lines[hit.lines.index(hit.text) + 1 :], start=1)
        return next(((far, text) for far, text in following if text.strip()), (0, hit.text))
    return 0, hit.text


def _known_issue(issue: Issue, hit: Hit) -> KnownIssue:
    """An issue, its words filled with what the line names."""
    slots = _slots(issue, hit.text) if issue.filled is not None else {}
    if issue.filled is not None and slots:
        changes = {"means": issue.filled.means.format_map(slots)}
        if issue.filled.remedy:
            changes["remedy"] = issue.filled.remedy.format_map(slots)
        issue = issue.model_copy(update=changes)
    return KnownIssue(issue=issue, place=_place(hit), slots=slots)


def _slots(issue: Issue, line: str) -> dict[str, str]:
    """What the named groups of the first pattern that fits matched, cut."""
    for pattern in issue.patterns:
        slots = slots_in(pattern, line)
        if slots is not None:
            return {name: text[:MOST_SLOT] for name, text in slots.items()}
    return {}


def _rank(
    match: KnownIssue, context: FailurePlace, began: int, event: bool
) -> tuple[bool, bool, bool, bool, int, bool, str]:
    """What is sure first, then what is a cause, then what was seen in this component, then what stands where
    the failure began or behind it, then by line, the particular first.

    A family waits for the lines that belong to its own, and a wide one longer: one of them may say more.
    That of an event waits less: what comes later follows from it.
    """
    issue = match.issue
    elsewhere = bool(context.component and issue.components) and context.component not in issue.components
    line = match.place.line + _width(issue) * (SOON if event else MOST_LINES)
    over = match.place.line < began
    return (not match.sure, issue.role == "warns", elsewhere, over, line, not issue.components, issue.name)


def _width(issue: Issue) -> int:
    """How much an issue stands for: one thing, a family of things, or all that a line may mean."""
    if issue.filled is None:
        return 0
    return 2 if issue.filled.wide else 1


def _follows(match: KnownIssue, first: LogLocation | None) -> bool:
    """Whether a wide family is too far behind the first error to explain it."""
    wide = _width(match.issue) == 2 and match.issue.role == "cause"
    return wide and first is not None and match.place.line > first.line + NEAR


def _not_here(issue: Issue, context: FailurePlace) -> str:
    """Why an issue cannot be what broke here, or ""."""
    if issue.targets and context.targets and not set(issue.targets) & set(context.targets):
        return f"it is known for {', '.join(issue.targets)}, not for {', '.join(context.targets)}"
    if issue.bases and context.base and not {context.base, context.base.partition(":")[0]} & set(issue.bases):
        return f"it is known for {', '.join(issue.bases)}, not for {context.base}"
    if issue.phases and context.phase and context.phase not in issue.phases:
        return f"it comes in {' or '.join(issue.phases)}, not in {context.phase}"
    return _not_of_version(issue, context) if context.version else ""


def _not_of_version(issue: Issue, context: FailurePlace) -> str:
    """Why an issue cannot be in this version of a component, or ""."""
    from packaging.specifiers import SpecifierSet

    affected = issue.versions.get(context.component, "")
    if affected and not SpecifierSet(affected, prereleases=True).contains(context.version):
        return f"it affects {context.component} {affected}, not {context.version}"
    for fixed in issue.fixed_in:
        mended = SpecifierSet(fixed.versions, prereleases=True)
        if fixed.component == context.component and mended.contains(context.version):
            return f"it is fixed in {context.component} {fixed.versions}, so also in {context.version}"
    return ""


def _not_named(issue: Issue, hit: Hit, context: FailurePlace, named: set[str]) -> str:
    """Why an issue is not told although its words are there, or "": they may be those of other programs, and
    nothing tells that it was one of its own."""
    if not issue.named or context.component in issue.components or _has(issue.named, hit, named):
        return ""
    return f"its words may be others', and the log does not name {' or '.join(issue.named)}"


def _is_sure(issue: Issue, hit: Hit, context: FailurePlace, named: set[str]) -> bool:
    """Whether one of the cards that an issue is of is known to be there, where it is of some alone."""
    return not issue.targets or bool(context.targets) or _has(issue.targets, hit, named)


def _has(words: tuple[str, ...], hit: Hit, named: set[str]) -> bool:
    """Whether the log has one of the words, near a line or anywhere that was read."""
    near = "\n".join([hit.text, *hit.lines]).lower()
    return any(word in named or word in near for word in words)


def _not_then(issue: Issue, newest: date | None) -> str:
    """Why an issue cannot be in a log that ends before its time, or ""."""
    if issue.since is None or newest is None or newest >= issue.since:
        return ""
    return f"nobody had it before {issue.since}, and the log's last day is {newest}"
