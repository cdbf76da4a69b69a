"""What differs between two builds of one file, in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rocbase.errors import ExplainedError
from rocbase.folders.temporary import temporary_folder
from rocwheel.wheels.diff.text import lines, summary
from rocwheel.wheels.diff.wheels import diff
from rocwright.sources.archive import unpack

MOST = 40
"""Lines that are told of one file."""


def differences(before: Path, after: Path, filename: str) -> Iterator[str]:
    """The difference, from a summary down to names; the files are in a store, so `filename` says what they
    are. An archive is compared by its members."""
    with temporary_folder("reproduce") as scratch:
        one, two = Path(scratch, "before"), Path(scratch, "after")
        try:
            if ".tar" in filename:
                for archive, folder in ((before, one), (after, two)):
                    folder.mkdir()
                    unpack(archive, folder, filename=filename, wrapped=False, git=True)
                    _write_links(folder)
            else:
                for side, stored in ((one, before), (two, after)):
                    side.mkdir()
                    (side / filename).symlink_to(stored)
                one, two = one / filename, two / filename
            found = diff(one, two)
        except ExplainedError as error:
            yield f"it cannot be examined: {error.message}"
            return
    yield summary(found)
    told = list(lines(found))
    yield from told[:MOST]
    if len(told) > MOST:
        yield f"and {len(told) - MOST} more lines: rocwright wheel diff shows all"


def _write_links(folder: Path) -> None:
    """A file in the place of each link, which says where it leads."""
    for path in [path for path in folder.rglob("*") if path.is_symlink()]:
        target = path.readlink()
        path.unlink()
        path.write_text(f"-> {target}\n")
