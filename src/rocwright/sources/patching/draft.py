"""A source tree as edits see it: texts by file, read when first asked for, written together at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rocbase.errors import PatchError
from rocbase.files.atomic import is_git, write_atomic


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a file with plain line ends (None: there is no such file), and the line ends it has."""

    text: str | None
    line_ends: str
    executable: bool = False


class Draft:
    """Nothing is written before `save`. `over` stands in the place of files of the tree (None: the file is
    gone)."""

    def __init__(self, tree: Path, over: Mapping[Path, bytes | None] | None = None) -> None:
        self.tree = tree
        self._over = over or {}
        self._read: dict[Path, Text] = {}
        self._now: dict[Path, Text] = {}

    def read(self, name: str, line_ends: str = "lf") -> str | None:
        """The text of a file as the edits so far leave it; None where there is none.

        Raises PatchError where the file lies outside of the tree, or is not UTF-8 text with these line ends.
        """
        path = self._path(name)
        if path not in self._now:
            data = self._over[path] if path in self._over else _data(path)
            self._read[path] = self._now[path] = _load(data, name, line_ends)
        content = self._now[path]
        if content.text is not None and content.line_ends != line_ends:
            raise _line_ends(name, line_ends, f"another edit of it declares {content.line_ends}")
        return content.text

    def write(self, name: str, text: str | None, line_ends: str = "lf", *, executable: bool = False) -> None:
        """The text that the file is to have (None: it is to go)."""
        self._now[self._path(name)] = Text(text, line_ends, executable)

    def save(self) -> None:
        """Write what has changed."""
        for path, content in self._now.items():
            if content.text == self._read[path].text:
                continue
            if content.text is None:
                path.unlink()
                continue
            mode = path.stat().st_mode if path.exists() else 0o755 if content.executable else 0o644
            write_atomic(path, _written(content))
            path.chmod(mode & 0o777)

    def changed(self) -> dict[Path, bytes | None]:
        """The files that differ from the tree, as they would be written; None where one would go."""
        files: dict[Path, bytes | None] = dict(self._over)
        for path, content in self._now.items():
            if content.text != self._read[path].text:
                files[path] = None if content.text is None else _written(content).encode()
        return files

    def _path(self, name: str) -> Path:
        return inside_tree(self.tree, name)


def inside_tree(tree: Path, name: str) -> Path:
    """The file of that name in a tree. Raises PatchError for one outside of it, or in a git folder."""
    path, tree = (tree / name).resolve(), tree.resolve()
    if path.is_relative_to(tree) and any(map(is_git, (*Path(name).parts, *path.relative_to(tree).parts))):
        raise PatchError(
            f"the edit of {name} is refused: a source tree has no git folder of its own",
            cause="git may execute what it finds in such a folder",
            next_step="correct the file name in the recipe or the diff",
            subject=name,
        )
    if not path.is_relative_to(tree):
        raise PatchError(
            f"the edit of {name} points outside the source tree",
            cause="its file name is absolute, has .., or goes through a link",
            next_step="correct the file name in the recipe or the diff",
            subject=name,
        )
    return path


def _data(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None


def _written(content: Text) -> str:
    text = content.text or ""
    return text.replace("\n", "\r\n") if content.line_ends == "crlf" else text


def _load(data: bytes | None, name: str, line_ends: str) -> Text:
    if data is None:
        return Text(None, line_ends)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PatchError(
            f"{name} is not UTF-8 text, so it cannot be edited safely",
            cause=f"byte {error.start} (line {line}) is in another encoding",
            next_step="give the change as a command of the recipe's `prepare`, which sees bytes",
            subject=name,
        ) from error
    crlf, ends, alone = text.count("\r\n"), text.count("\n"), text.count("\r")
    if line_ends == "lf" and alone:
        kind = "CRLF" if crlf == ends == alone else "mixed"
        raise _line_ends(name, line_ends, f"it has {kind} line ends: {crlf} of {ends} are CRLF")
    if line_ends == "crlf" and not crlf == ends == alone:
        raise _line_ends(name, line_ends, f"{crlf} of {ends} line ends are CRLF")
    return Text(text.replace("\r\n", "\n"), line_ends)


def _line_ends(name: str, expected: str, cause: str) -> PatchError:
    return PatchError(
        f"the line ends of {name} are not what the edit expects ({expected})",
        cause=cause,
        next_step='a file that is CRLF throughout is edited, and stays so, with line-ends = "crlf"; '
        "one with both kinds is not edited",
        subject=name,
    )
