"""What lay in a step's tree when a shell was opened in it: what is otherwise later is the user's.

The note lies beside the folders that a sandbox sees, so no step writes it; the tree is only looked at.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from rocbase.errors import SandboxError
from rocbase.files.atomic import write_atomic
from rocbase.folders.listing import shown
from rocwright.model.step_environment import NOTE as NOTE
from rocwright.sandbox.untrusted import Untrusted
from rocwright.sources.patching.history import subjects_since

# The tree, in the folder that a sandbox sees.
TREE = "src"
REPOSITORY = f"{TREE}/.git"
MOST_REFLOG = 4 * 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The tree of `step` as it was: `base` is the commit below the user's; `files` are all that lay there,
    each with its mode, size, and times of content and status in nanoseconds; `left` are those among them
    that are not of the source, so that their end is no loss."""

    step: str
    base: str
    files: Mapping[str, list[int]]
    left: Collection[str]


def look(build: Path, step: str) -> dict[str, list[int]]:
    """All files of the tree below `build`, links and others too, but the repository of the shell."""
    files: dict[str, list[int]] = {}
    for entry in Untrusted(build, step).walk(start=TREE, strict=False):
        status = entry.stat
        if not entry.is_folder and not entry.path.startswith(f"{REPOSITORY}/"):
            name = entry.path.removeprefix(f"{TREE}/")
            files[name] = [status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    return files


def write(folder: Path, opened: Opened) -> None:
    """Note it in the workspace `folder`."""
    write_atomic(folder / NOTE, json.dumps(dataclasses.asdict(opened)))


def read(folder: Path) -> Opened | None:
    """None where no shell was opened. Raises ValueError for a note that is damaged."""
    try:
        return Opened(**json.loads((folder / NOTE).read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except TypeError as error:
        raise ValueError(str(error)) from error


def unsaved(folder: Path, build: Path) -> list[str]:
    """What the user made and nobody saved: commits by subject, files by name."""
    try:
        opened = read(folder)
        if opened is None:
            return []
        current = look(build, opened.step)
    except (ValueError, SandboxError, FileNotFoundError):
        return ["what cannot be searched"]
    changed = {name for name, state in current.items() if opened.files.get(name) != state}
    removed = opened.files.keys() - current.keys() - set(opened.left)
    return [*_commits(build, opened), *map(shown, sorted(changed | removed))]


def _commits(build: Path, opened: Opened) -> list[str]:
    with contextlib.suppress(FileNotFoundError, SandboxError):
        reflog = Untrusted(build, opened.step).read_text(f"{REPOSITORY}/logs/HEAD", MOST_REFLOG)
        return list(subjects_since(reflog, opened.base))
    return []


def note_saved(folder: Path, build: Path, head: str, names: Collection[str]) -> None:
    """What these files hold now, and the commits up to `head`, are saved."""
    opened = read(folder)
    assert opened is not None
    current = look(build, opened.step)
    files = {name: state for name, state in opened.files.items() if name not in names}
    files |= {name: current[name] for name in names if name in current}
    write(folder, dataclasses.replace(opened, base=head, files=files))
