"""What differs between two builds of one file, in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rocbase.errors import ExplainedError
from rocbase.folders.temporary import temporary_folder
from rocwheel.wheels.diff.text import lines, summary
from rocwheel.wheels.diff.wheels import diff
from rocwright.sources.archive import unpack

# Lines that are told of one file.
DETAIL_LIMIT = 40


def differences(first: Path, second: Path, filename: str) -> Iterator[str]:
    """The difference, from a summary down to names; the files are in a store, so `filename` says what they
    are. An archive is compared by its members."""
    with temporary_folder("reproduce") as scratch:
        first_path, second_path = Path(scratch, "before"), Path(scratch, "after")
        try:
            if ".tar" in filename:
                for archive, folder in ((first, first_path), (second, second_path)):
                    folder.mkdir()
                    unpack(archive, folder, filename=filename, wrapped=False, git=True)
                    _write_links(folder)
            else:
                for side, stored in ((first_path, first), (second_path, second)):
                    side.mkdir()
                    (side / filename).symlink_to(stored)
                first_path, second_path = first_path / filename, second_path / filename
            difference = diff(first_path, second_path)
        except ExplainedError as error:
            yield f"it cannot be examined: {error.message}"
            return
    yield summary(difference)
    details = list(lines(difference))
    yield from details[:DETAIL_LIMIT]
    if len(details) > DETAIL_LIMIT:
        yield f"and {len(details) - DETAIL_LIMIT} more lines: rocwright wheel diff shows all"


def _write_links(folder: Path) -> None:
    """A file in the place of each link, which says where it leads."""
    for path in [path for path in folder.rglob("*") if path.is_symlink()]:
        target = path.readlink()
        path.unlink()
        path.write_text(f"-> {target}\n")
