"""A folder, or one file, with only the GPU code that is needed."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from rocbase.errors import CheckError, InputError
from rocbase.files.atomic import atomic_file, sha256_file
from rocwheel.wheels.metadata import DIST_INFO, RECORD, RecordRow, read_record, record_bytes
from rocwheel.wheels.parts import pieces
from rocwheel.wheels.scratch import scratch
from rocwheel.wheels.slim.report import SlimReport
from rocwheel.wheels.slim.wish import Wish
from rocwheel.wheels.slim.work import HEAD, SlimFile, Work, work_through
from rocwheel.wheels.source import FileSource


def slim_file(
    path: Path, out: Path, wish: Wish, tell: Callable[[str], None] = lambda text: None
) -> SlimReport:
    """Write the library, program or bundle `path` to `out`, with its mode. Raises as work_through does."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with scratch(out.parent) as results:
        work = work_through([_candidate(path, path.name)], wish, results, tell=tell)
        if not work.rewritten:
            raise CheckError(
                f"{path.name} has only code for other GPUs",
                cause=f"nothing would be left of it for {', '.join(map(str, wish.targets))}",
                next_step="give a GPU that it has code for; `rocwheel inspect` lists them",
                subject=str(path),
            )
        with atomic_file(out) as file:
            for piece in pieces(work.rewritten[path.name]):
                file.write(piece)
        out.chmod(stat.S_IMODE(path.stat().st_mode))
    return _report(path.stat().st_size, out, out.stat().st_size, work)


def slim_folder(
    path: Path, out: Path, wish: Wish, tell: Callable[[str], None] = lambda text: None
) -> SlimReport:
    """Copy the folder `path` to `out`, whole or not at all, with its files made smaller.

    Links are copied as links; those to files that went go with them. Raises InputError for an `out` inside
    the folder, else as work_through does.
    """
    if out.resolve().is_relative_to(path.resolve()):
        raise InputError(
            f"{out} lies inside {path}",
            cause="the copy would become part of the folder that is copied",
            next_step=f"give a path outside of {path} with -o",
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    files = sorted(_files(path))
    with scratch(out.parent) as results:
        candidates = [_candidate(path / name, name) for name in files if not (path / name).is_symlink()]
        work = work_through(candidates, wish, results, tell=tell)
        temporary = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
        try:
            new = temporary / out.name
            _copy(path, new, files, work)
            new.rename(out)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    size = sum(candidate.size for candidate in candidates)
    saved = sum(change.before - change.after for change in work.changed)
    return _report(size, out, size - saved, work)


def _candidate(file: Path, name: str) -> SlimFile:
    with file.open("rb") as opened:
        head = opened.read(HEAD)
    return SlimFile(
        path=name, size=file.stat().st_size, head=head, open=lambda: FileSource(file, subject=name)
    )


def _files(folder: Path) -> Iterator[str]:
    """Files and links under a folder, as seen from it; what a link names is not entered."""
    for parent, folders, names in os.walk(folder, onerror=_raise):
        links = [name for name in folders if Path(parent, name).is_symlink()]
        for name in [*links, *names]:
            path = Path(parent, name)
            if not path.is_symlink() and not path.is_file():
                raise InputError(
                    f"{path} is a device or socket",
                    cause="only files, folders and links can be copied",
                    next_step="remove it from the folder",
                )
            yield path.relative_to(folder).as_posix()


def _raise(error: OSError) -> None:
    raise error


def _copy(old: Path, new: Path, files: list[str], work: Work) -> None:
    for parent, _, _ in os.walk(old):
        (new / Path(parent).relative_to(old)).mkdir()
    for name in files:
        source, target = old / name, new / name
        if name in work.removed:
            continue
        if source.is_symlink():
            aim = source.readlink()
            if os.path.normpath(Path(name).parent / aim) not in work.removed:
                target.symlink_to(aim)
        elif name in work.rewritten:
            with target.open("xb") as file:
                for piece in pieces(work.rewritten[name]):
                    file.write(piece)
            shutil.copystat(source, target)
        else:
            shutil.copy2(source, target)
    for name in files:
        if name.endswith(f"{DIST_INFO}/{RECORD}") and not (new / name).is_symlink():
            _correct(new, name, work)


def _correct(new: Path, name: str, work: Work) -> None:
    """Make a RECORD right again: what went, and what is another file now."""
    top = Path(name).parent.parent
    rows = []
    for row in read_record((new / name).read_bytes()):
        path = os.path.normpath(top / row.path)
        if path in work.rewritten:
            rows.append(
                RecordRow(path=row.path, sha256=sha256_file(new / path), size=(new / path).stat().st_size)
            )
        elif path not in work.removed:
            rows.append(row)
    (new / name).write_bytes(record_bytes(rows))


def _report(size: int, out: Path, new_size: int, work: Work) -> SlimReport:
    return SlimReport(
        out=out,
        before=size,
        after=new_size,
        changed=tuple(work.changed),
        left=work.left,
        missing=work.missing,
    )
