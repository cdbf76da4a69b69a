"""Patches of others against a source tree and its edits: what applies, what fails, what gets in the way.

All is judged in memory; nothing is written to the tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rocbase.errors import PatchError
from rocbase.units import size
from rocwright.model.edits import Edit
from rocwright.sources.patching.check import asked, check_tree, filled
from rocwright.sources.patching.diffs import FileDiff, parse_diff
from rocwright.sources.patching.draft import Draft, inside_tree
from rocwright.sources.patching.edits import EditOutcome, State, judge
from rocwright.sources.patching.foreign import ForeignPatch
from rocwright.sources.patching.found import nearest, shown
from rocwright.sources.patching.fuzzy import HunkOutcome, HunkState, apply_fuzzy, reversed_diff

LARGEST_FILE = 64 * 1024 * 1024
# Failed hunks of a patch for which the most similar lines are looked for.
MOST_SHOWN = 40

# Files that stand in the place of a tree's; None: the file is gone.
Over = dict[Path, bytes | None]


class PatchState(StrEnum):
    """What a patch meets in a tree."""

    APPLIES = "applies"
    PART = "applies in part"
    THERE = "applied already"
    FAILS = "fails"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileResult:
    """A file of a patch; `near` has, by a failed hunk's number, the lines that are most like what it looks
    for, numbered. `cause` says why it fails as a whole."""

    name: str
    hunks: tuple[HunkOutcome, ...]
    near: Mapping[int, str]
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchResult:
    """A patch against a tree with the patches before it. `why` says for what it is refused."""

    name: str
    state: PatchState
    files: tuple[FileResult, ...] = ()
    why: str = ""
    next_step: str = ""

    @property
    def fuzz(self) -> int:
        """The most lines of context that a hunk of it had to leave out."""
        return max((hunk.fuzz for file in self.files for hunk in file.hunks), default=0)

    @property
    def offset(self) -> int:
        """How far from its place a hunk was found, at most, in lines."""
        return max((abs(hunk.offset) for file in self.files for hunk in file.hunks), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """A file that an edit and the patches change; `breaks`: one of them no longer does what it did, and
    `what` says which and how."""

    file: str
    edit: Edit
    breaks: bool
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """Patches against a tree, and against the edits that the recipe makes in it."""

    patches: tuple[PatchResult, ...]
    overlaps: tuple[Overlap, ...]

    @property
    def good(self) -> bool:
        """Whether each patch applies whole, and each edit as before."""
        complete = all(patch.state is PatchState.APPLIES for patch in self.patches)
        return complete and not any(overlap.breaks for overlap in self.overlaps)


def check_offered(
    tree: Path,
    patches: Sequence[ForeignPatch],
    edits: Sequence[Edit],
    targets: Sequence[str],
    *,
    version: str = "",
    kind: str = "",
) -> Offered:
    """What the patches meet in a tree, one on top of the other, and in the tree after the recipe's edits.

    `version` and `kind` (of source place) leave out edits for others; "" takes all.
    """
    over: Over = {}
    results = [_judged(tree, patch, over) for patch in patches]
    selected = [filled(edit, targets) for edit in edits if asked(edit, version, kind)]
    draft = Draft(tree)
    for edit in selected:
        judge(edit, draft)
    edited: Over = draft.changed()
    again = [_judged(tree, patch, edited) for patch in patches]
    overlaps = _overlaps(tree, selected, targets, over, results, again)
    return Offered(patches=tuple(results), overlaps=tuple(overlaps))


def _judged(tree: Path, patch: ForeignPatch, over: Over) -> PatchResult:
    """What a patch meets; where it applies whole, `over` has its outcome."""
    try:
        parts = parse_diff(patch.text, patch.name, strip=patch.strip, strict=False)
        parts = [reversed_diff(part) for part in parts] if patch.reverse else parts
        changed: Over = {}
        files = tuple(_file(tree, part, {**over, **changed}, changed) for part in parts)
    except PatchError as error:
        reason = f"{error.message}: {error.cause}"
        return PatchResult(name=patch.name, state=PatchState.REFUSED, why=reason, next_step=error.next_step)
    state = _state([hunk.state for file in files for hunk in file.hunks])
    if state is PatchState.APPLIES:
        over.update(changed)
    return PatchResult(name=patch.name, state=state, files=files)


def _state(hunks: Sequence[HunkState]) -> PatchState:
    kinds = set(hunks)
    if kinds == {HunkState.APPLIES}:
        return PatchState.APPLIES
    if kinds == {HunkState.THERE}:
        return PatchState.THERE
    return PatchState.FAILS if HunkState.APPLIES not in kinds else PatchState.PART


def _file(tree: Path, diff: FileDiff, over: Mapping[Path, bytes | None], changed: Over) -> FileResult:
    path = inside_tree(tree, diff.name)
    data = over[path] if path in over else _content(path, diff.name)
    text = None if data is None else data.decode("latin-1")
    patched, hunks = apply_fuzzy(diff, text)
    changed[path] = None if patched is None else patched.encode("latin-1")
    failed = [hunk for hunk in hunks if hunk.state is HunkState.FAILS]
    return FileResult(
        name=diff.name,
        hunks=tuple(hunks),
        near={hunk.number: _near(text or "", hunk) for hunk in failed[:MOST_SHOWN]},
        cause=_cause(diff, text) if failed else "",
    )


def _content(path: Path, name: str) -> bytes | None:
    if not path.is_file():
        return None
    if path.stat().st_size > LARGEST_FILE:
        raise PatchError(
            f"{name} is too large to be patched",
            cause=f"it has more than {size(LARGEST_FILE)}",
            next_step="check what it is: sources are smaller",
            subject=name,
        )
    return path.read_bytes()


def _near(text: str, outcome: HunkOutcome) -> str:
    """What stands there instead: the lines most like what it looks for, else those at its place."""
    # read as bytes, shown as text
    readable = text.encode("latin-1").decode(errors="replace")
    needle = outcome.hunk.needle.encode("latin-1").decode(errors="replace")
    start, end = outcome.hunk.start, readable.count("\n") + 1
    lines = nearest(readable, needle) or [
        number for number in range(start, start + min(len(outcome.hunk.before), 6)) if 0 < number < end
    ]
    return shown(readable, lines)


def _cause(diff: FileDiff, text: str | None) -> str:
    if text is None:
        return "there is no such file in the tree"
    crlf = any(line.endswith("\r\n") for hunk in diff.hunks for line in hunk.before)
    if ("\r\n" in text) != crlf:
        has, wants = ("CRLF", "LF") if "\r\n" in text else ("LF", "CRLF")
        return f"the file has {has} line ends, the patch {wants}"
    return "the file is there already, with other content" if diff.old == "/dev/null" else ""


def _overlaps(
    tree: Path,
    edits: Sequence[Edit],
    targets: Sequence[str],
    over: Over,
    alone: Sequence[PatchResult],
    after_edits: Sequence[PatchResult],
) -> list[Overlap]:
    """Files that both change. Each edit is judged before and after the patches, each patch before and after
    the edits."""
    files = {file.name for result in alone for file in result.files}
    verdicts = check_tree(tree, edits, targets).verdicts
    behind = check_tree(tree, edits, targets, over=over).verdicts
    overlaps = []
    for edit, original, patched in zip(edits, verdicts, behind, strict=True):
        assert original is not None
        assert patched is not None
        for name in sorted(_touched(edit) & files):
            words = [_changed_edit(original, patched), *_changed_patches(name, alone, after_edits)]
            problems = [word for word in words if word]
            overlaps.append(
                Overlap(
                    file=name,
                    edit=edit,
                    breaks=bool(problems),
                    what="; ".join(problems) or "both change this file, in other places",
                )
            )
    return overlaps


def _touched(edit: Edit) -> set[str]:
    if not edit.patch:
        return {edit.file}
    try:
        return {part.name for part in parse_diff(edit.patch, edit.diff)}
    except PatchError:
        return set()


def _changed_edit(original: EditOutcome, patched: EditOutcome) -> str:
    if original.state is not State.APPLIES or patched.state is State.APPLIES:
        return ""
    if patched.state is State.ABSORBED:
        return "the patches make the edit's change already"
    return f"after the patches the edit no longer applies: {patched.what or patched.state}"


def _changed_patches(
    name: str, alone: Sequence[PatchResult], after_edits: Sequence[PatchResult]
) -> list[str]:
    """The hunks of a file that apply to the source and no longer after the edits."""
    problems = []
    for result, edited in zip(alone, after_edits, strict=True):
        hunks = {hunk.number: hunk.state for file in edited.files if file.name == name for hunk in file.hunks}
        for file in result.files:
            for hunk in file.hunks if file.name == name else ():
                state = hunks.get(hunk.number)
                if hunk.state is HunkState.APPLIES and state not in (None, HunkState.APPLIES):
                    problems.append(f"after the edits hunk {hunk.number} of {result.name}: {state}")
    return problems
