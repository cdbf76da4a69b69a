"""Unified diffs, read and applied to texts: exact context, no guess, and "already there" told apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from rocbase.errors import PatchError
from rocbase.files.atomic import is_git

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_NEWLINE = "\\ "
_REFUSED = (
    *("GIT binary patch", "Binary files ", "rename from ", "copy from "),
    # symbolic links, and repositories within the repository
    *("new file mode 12", "new file mode 16", "deleted file mode 12", "deleted file mode 16"),
)
_MODE = "old mode "
NOWHERE = "/dev/null"


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines before and after, with their line ends, and the line (from 1) where they stood."""

    start: int
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def needle(self) -> str:
        """A line that is taken away, else one of the context."""
        removed = [line for line in self.before if line not in self.after and line.strip()]
        return (removed or [line for line in self.before if line.strip()] or [""])[0]


@dataclass(slots=True)
class FileDiff:
    """The hunks of one file. `old` or `new` is /dev/null where the file comes or goes."""

    old: str
    new: str
    hunks: list[Hunk] = field(default_factory=list)
    executable: bool = False

    @property
    def name(self) -> str:
        """The file in the tree."""
        return self.old if self.new == NOWHERE else self.new


@dataclass(frozen=True, slots=True)
class Applied:
    """The text after the hunks (None: the file is gone), how many of them changed it, and how many were there
    already; `failed` is the first hunk that fits nowhere."""

    text: str | None
    changed: int
    there: int
    failed: Hunk | None = None


def parse_diff(text: str, subject: str, *, strip: int = 1, strict: bool = True) -> list[FileDiff]:
    """The files of a unified diff, in order; `strip` first parts of their paths are left out.

    Where it is not `strict`, the second of two names of a file counts (old tools write FILE.orig first), and
    a change of a mode is passed over. Raises PatchError for what is none, or leads out of the tree.
    """
    files: list[FileDiff] = []
    lines = text.removesuffix("\n").split("\n")
    position, executable = 0, False
    while position < len(lines):
        line = lines[position]
        if line.startswith(_REFUSED):
            raise _unreadable(subject, f"line {position + 1}: {line[:60]!r} is not a line of a hunk")
        if strict and line.startswith(_MODE):
            reason = f"line {position + 1}: it changes a file's mode, which an edit may not do"
            raise _unreadable(subject, reason, "leave the mode as it is, and chmod in the recipe's commands")
        if line.startswith("new file mode "):
            executable = line.strip().endswith("755")
        if (
            line.startswith("--- ")
            and lines[position + 1 : position + 2]
            and _HUNK.match(_line_at(lines, position + 2))
        ):
            old, new = (_named(header, subject, strip) for header in lines[position : position + 2])
            old = new if not strict and NOWHERE not in (old, new) else old
            if old != NOWHERE and new != NOWHERE and old != new:
                raise _unreadable(
                    subject, f"it renames {old} to {new}; write it as one deleted and one new file"
                )
            files.append(FileDiff(old, new, executable=executable))
            position, executable = position + 2, False
            while _HUNK.match(_line_at(lines, position)):
                hunk, position = _read_hunk(lines, position, subject)
                files[-1].hunks.append(hunk)
            continue
        position += 1
    if not files:
        raise _unreadable(subject, "it does not name a file")
    return files


def _line_at(lines: Sequence[str], position: int) -> str:
    return lines[position] if position < len(lines) else ""


def _named(line: str, subject: str, strip: int) -> str:
    """The path of a `---` or `+++` line, its first parts (a/, b/) left out."""
    name = line[4:].partition("\t")[0].rstrip()
    if name == NOWHERE:
        return name
    parts = PurePosixPath(name).parts
    if any(map(is_git, parts)):
        raise PatchError(
            f"{subject} is refused: it touches {name!r}",
            cause="a source tree has no git folder of its own",
            next_step="if it is not yours, do not use it; else make the diff again without that file",
            subject=subject,
        )
    if (
        name.startswith(("/", '"'))
        or "//" in name
        or ".." in parts
        or "\\" in name
        or "\0" in name
        or len(parts) <= strip
    ):
        raise PatchError(
            f"{subject} is refused: it touches {name!r}",
            cause="it points outside the source tree, or is not written as a/FILE and b/FILE",
            next_step="if it is not yours, do not use it; else make the diff again in the tree (git "
            "diff, rocwright patch save)",
            subject=subject,
        )
    return str(PurePosixPath(*parts[strip:]))


def _read_hunk(lines: Sequence[str], position: int, subject: str) -> tuple[Hunk, int]:
    match = _HUNK.match(lines[position])
    assert match is not None
    old_count, new_count = int(match[2] or 1), int(match[4] or 1)
    old_lines: list[str] = []
    new_lines: list[str] = []
    head, position = position + 1, position + 1
    last: tuple[list[str], ...] = ()
    while old_count or new_count or _line_at(lines, position).startswith(_NO_NEWLINE):
        line = _line_at(lines, position)
        sign, content = line[:1], f"{line[1:]}\n"
        match sign:
            # mail and editors strip the one space of an empty line
            case " " | "" if old_count and new_count and position < len(lines):
                last = (old_lines, new_lines)
            case "-" if old_count:
                last = (old_lines,)
            case "+" if new_count:
                last = (new_lines,)
            case "\\" if last:
                for side in last:
                    side[-1] = side[-1].removesuffix("\n")
                position += 1
                continue
            case _:
                raise _unreadable(
                    subject, f"the hunk at line {head} does not have the number of lines in its header"
                )
        for side in last:
            side.append(content)
        old_count, new_count = old_count - (sign != "+"), new_count - (sign != "-")
        position += 1
    return Hunk(int(match[1]), tuple(old_lines), tuple(new_lines)), position


def _unreadable(subject: str, reason: str, next_step: str = "") -> PatchError:
    return PatchError(
        f"{subject} is not a unified diff that can be applied",
        cause=reason,
        next_step=next_step or "make it again with git diff --no-renames, or rocwright patch save",
        subject=subject,
    )


def apply_hunks(diff: FileDiff, text: str | None) -> Applied:
    """The text of a file (None: there is no such file) after a diff of it; as it was where a hunk fails."""
    if diff.old == NOWHERE:
        content = "".join(line for hunk in diff.hunks for line in hunk.after)
        if text is None:
            return Applied(content, len(diff.hunks), 0)
        return Applied(text, 0, len(diff.hunks)) if text == content else Applied(text, 0, 0, diff.hunks[0])
    if text is None:
        return Applied(None, 0, len(diff.hunks) if diff.new == NOWHERE else 0)
    # a form feed or a Unicode separator ends no line here
    lines = re.findall(r"[^\n]*\n|[^\n]+$", text)
    changed = applied = offset = 0
    floor = 0
    for hunk in diff.hunks:
        # a hunk without lines before stands after the line that it names
        expected = hunk.start - (1 if hunk.before else 0) + offset
        old_places = places(lines, hunk.before, floor)
        new_places = places(lines, hunk.after, floor) if hunk.after else []
        # a pure addition to a text that has it already matches both ways
        if new_places and (not old_places or inside(old_places, new_places, hunk)):
            place = closest(new_places, expected)
            applied, floor = applied + 1, place + len(hunk.after)
            offset = place - hunk.start + 1
        elif old_places:
            place = closest(old_places, expected)
            lines[place : place + len(hunk.before)] = hunk.after
            changed, floor = changed + 1, place + len(hunk.after)
            offset = place - hunk.start + 1 + len(hunk.after) - len(hunk.before)
        else:
            return Applied(text, 0, applied, hunk)
    result = "".join(lines)
    return Applied(None if diff.new == NOWHERE and not result else result, changed, applied)


def places(lines: Sequence[str], block: Sequence[str], floor: int) -> list[int]:
    """Where the lines that are wanted stand, from `floor` on; anywhere where none is wanted."""
    if not block:
        return list(range(floor, len(lines) + 1))
    return [
        start
        for start in range(floor, len(lines) - len(block) + 1)
        if lines[start] == block[0] and tuple(lines[start : start + len(block)]) == tuple(block)
    ]


def inside(old_places: Sequence[int], new_places: Sequence[int], hunk: Hunk) -> bool:
    """Whether every place of the lines before lies within one of the lines after."""
    return all(
        any(start <= place and place + len(hunk.before) <= start + len(hunk.after) for start in new_places)
        for place in old_places
    )


def closest(candidates: Sequence[int], expected: int) -> int:
    """The place that is nearest to the one that is expected."""
    return min(candidates, key=lambda place: abs(place - expected))
