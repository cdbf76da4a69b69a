"""Edits on a tree: judged one after the other in memory, then all written, or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rocbase.errors import PatchError
from rocwright.model.edits import Edit, EditKind
from rocwright.model.versions import version_in
from rocwright.sources.patching.diffs import NOWHERE, apply_hunks, parse_diff
from rocwright.sources.patching.draft import Draft
from rocwright.sources.patching.found import Match, changed, line_of, nearest, shown
from rocwright.sources.patching.kinds import derived_marker, find


class State(StrEnum):
    """What an edit meets in a tree."""

    APPLIES = "applies"
    ABSORBED = "absorbed"
    """The tree is as the edit wants it already."""
    DRIFTED = "drifted"
    """The place that it changes is not there, or there are more of it than it expects."""
    GONE = "file gone"
    REFUSED = "refused"
    """The file cannot be edited safely, or the edit cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditOutcome:
    """An edit against a tree: `count` places changed or found as wanted; `near` holds numbered lines."""

    edit: Edit
    state: State
    count: int = 0
    what: str = ""
    cause: str = ""
    near: str = ""
    next_step: str = ""

    @property
    def line(self) -> str:
        """One line for a log."""
        status = f"{self.count} changed" if self.state is State.APPLIES else "applied already"
        return f"edit {self.edit.subject}: {status} ({self.edit.why})"


def apply_edits(tree: Path, edits: Sequence[Edit], subject: str, version: str = "") -> list[str]:
    """Apply all edits in order; gives a line for each. Nothing is written unless every one of them fits.

    Raises PatchError that names the edit, the file and the nearest lines. An edit that the tree has already
    is an error too, unless `version` lies in its `absorbed` range: nothing is silently without effect.
    """
    draft, verdicts = Draft(tree), []
    for edit in edits:
        verdict = judge(edit, draft)
        allowed = verdict.state is State.ABSORBED and _may_be_absorbed(edit, version)
        if verdict.state is not State.APPLIES and not allowed:
            raise _error(verdict, subject)
        verdicts.append(verdict)
    draft.save()
    return [verdict.line for verdict in verdicts]


def _may_be_absorbed(edit: Edit, version: str) -> bool:
    return bool(edit.absorbed and version) and version_in(version, edit.absorbed)


def _error(verdict: EditOutcome, subject: str) -> PatchError:
    edit = verdict.edit
    reason = f"(why it is there: {edit.why})"
    match verdict.state:
        case State.ABSORBED:
            problem = f"the edit of {edit.subject} changes nothing: the tree already contains the change"
            next_step = (
                f'declare the versions that already contain it: absorbed = "..." beside the edit {reason}'
            )
        case State.GONE:
            problem = verdict.what
            next_step = f'correct the edit, or give it a version range: for = "..." {reason}'
        case State.REFUSED:
            problem, next_step = verdict.what, verdict.next_step
        case _:
            problem = verdict.what
            next_step = (
                f"read the file (rocwright shell STEP), then correct the edit, or limit it to the "
                f"versions that need it {reason}"
            )
    return PatchError(
        f"{subject}: {problem}",
        cause=verdict.cause,
        detail=verdict.near,
        next_step=next_step,
        subject=edit.subject,
    )


def judge(edit: Edit, draft: Draft) -> EditOutcome:
    """What the edit meets; where it applies, the draft holds its outcome. Faults are told, not raised."""
    try:
        return _judge_diff(edit, draft) if edit.kind is EditKind.DIFF else _judge_text(edit, draft)
    except PatchError as error:
        return EditOutcome(
            edit=edit,
            state=State.REFUSED,
            what=error.message,
            cause=error.cause,
            near=error.detail,
            next_step=error.next_step,
        )


def _judge_text(edit: Edit, draft: Draft) -> EditOutcome:
    original = draft.read(edit.file, edit.line_ends)
    if original is None:
        return _missing_file(edit, edit.file)
    match = find(edit, original)
    count = len(match.changes)
    if count == 0 and edit.absent and edit.absent not in original:
        return EditOutcome(
            edit=edit, state=State.ABSORBED, count=1, cause=f"{edit.absent!r} is already gone from it"
        )
    if count == 0 and match.there:
        return EditOutcome(
            edit=edit,
            state=State.ABSORBED,
            count=match.there,
            cause=f"{match.there} places are changed already",
        )
    if count != edit.expect:
        return _drifted(edit, original, match)
    edited = changed(original, match.changes)
    marker = derived_marker(edit)
    if edited == original or (marker and marker not in edited):
        return EditOutcome(
            edit=edit,
            state=State.DRIFTED,
            what=f"the edit of {edit.file} changes nothing"
            if edited == original
            else f"the edit of {edit.file} leaves it without its marker {marker!r}",
            cause=f"{match.wanted} matches, but the result is not what the edit declares",
            near=shown(original, [line_of(original, change.start) for change in match.changes]),
        )
    draft.write(edit.file, edited, edit.line_ends)
    return EditOutcome(edit=edit, state=State.APPLIES, count=count)


def _drifted(edit: Edit, text: str, match: Match) -> EditOutcome:
    count = len(match.changes)
    lines = [line_of(text, change.start) for change in match.changes] or nearest(text, match.needle)
    label = "the matches" if count else "most similar lines"
    return EditOutcome(
        edit=edit,
        state=State.DRIFTED,
        count=count,
        what=f"the edit of {edit.file} matches {count} times, {edit.expect} expected",
        cause=f"{match.wanted} does not match this version of the file"
        + (f"; {match.there} places are changed already" if match.there else ""),
        near=f"{label}:\n{shown(text, lines[:6])}" if lines else "the file has no similar line",
    )


def _missing_file(edit: Edit, name: str) -> EditOutcome:
    return EditOutcome(
        edit=edit,
        state=State.GONE,
        what=f"the edit of {name} names a file that does not exist",
        cause="the source is laid out differently in this version",
    )


def _judge_diff(edit: Edit, draft: Draft) -> EditOutcome:
    outcome: list[tuple[str, str | None, bool]] = []
    changes = present = 0
    for part in parse_diff(edit.patch, edit.diff):
        original = draft.read(part.name, edit.line_ends)
        if original is None and NOWHERE not in (part.old, part.new):
            return _missing_file(edit, part.name)
        applied = apply_hunks(part, original)
        if applied.failed is not None:
            hunk = applied.failed
            lines = nearest(original or "", hunk.needle)
            return EditOutcome(
                edit=edit,
                state=State.DRIFTED,
                what=f"{edit.diff} does not apply to {part.name}",
                cause=f"its hunk at line {hunk.start} matches nowhere; it looks for {hunk.needle.strip()!r}",
                near=f"most similar lines:\n{shown(original or '', lines)}"
                if lines
                else "the file has no similar line",
            )
        outcome.append((part.name, applied.text, part.executable))
        changes, present = changes + applied.changed, present + applied.there
    if present and changes:
        return EditOutcome(
            edit=edit,
            state=State.DRIFTED,
            what=f"{edit.diff} applies only in part",
            cause=f"{present} of its {present + changes} hunks are applied already",
        )
    if not changes:
        return EditOutcome(
            edit=edit, state=State.ABSORBED, count=present, cause=f"all {present} hunks are applied already"
        )
    for name, text, executable in outcome:
        draft.write(name, text, edit.line_ends, executable=executable)
    if edit.marker and not any(edit.marker in (text or "") for _, text, _ in outcome):
        return EditOutcome(
            edit=edit,
            state=State.DRIFTED,
            what=f"{edit.diff} leaves its files without its marker {edit.marker!r}",
            cause="the result is not what the edit declares",
        )
    return EditOutcome(edit=edit, state=State.APPLIES, count=changes)
