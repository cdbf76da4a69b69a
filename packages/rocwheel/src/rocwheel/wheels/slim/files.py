"""Files that are for certain GPUs as a whole: which of them stay for the targets that are wanted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rocbase.errors import CheckError
from rocwheel.wheels.choose import ProcessorCode, Target, needed
from rocwheel.wheels.devicecode.gpu import HEADER_SIZE, gpu_header, is_gpu_elf
from rocwheel.wheels.devicecode.kpack import Archive
from rocwheel.wheels.slim.wish import Wish

PREFIX = "gfx"
"""What every target's name begins with."""

CODE = "code object"
"""The kind of a file that is known by what it holds, not by its path."""


ARCHIVE = "kpack archive"
"""The same of a kpack archive."""


def other_files(
    heads: Iterable[tuple[str, bytes]], wish: Wish, archives: Mapping[str, Archive]
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Of files (path, first 64 bytes), those for other GPUs only, with their kind; and the folders in which
    code for a wanted target is missing, with the targets. `archives` are the kpack archives among them.

    Raises CheckError where files that a library cannot do without are there for other GPUs and not for a
    wanted one, unless the wish allows it.
    """
    groups: dict[tuple[str, str, bool], list[tuple[str, ProcessorCode]]] = defaultdict(list)
    for path, head in heads:
        file_kind = _of_archive(archives[path]) if path in archives else _file_kind(path, head)
        if file_kind:
            folder = path.rpartition("/")[0]
            groups[folder, file_kind.name, file_kind.needed].append((path, file_kind.code))
    removed: dict[str, str] = {}
    missing: dict[str, tuple[str, ...]] = {}
    for (folder, kind, is_needed), files in groups.items():
        retained, lacking = needed([code for _, code in files], wish.targets, wish.covered)
        removed |= {path: kind for i, (path, _) in enumerate(files) if i not in retained}
        if lacking and is_needed:
            missing[folder] = tuple(map(str, lacking))
            if not wish.allow_missing:
                raise _without(folder, kind, lacking)
    return removed, missing


class _Kind(NamedTuple):
    name: str
    code: ProcessorCode
    needed: bool


def _of_archive(archive: Archive) -> _Kind:
    targets = {packed.target for packed in archive.code}
    ids = {packed.features for packed in archive.code}
    return _Kind(
        f"{ARCHIVE} {archive.group}".rstrip(),
        ProcessorCode(targets, ids.pop() if len(ids) == 1 else ()),
        needed=True,
    )


def _file_kind(path: str, head: bytes) -> _Kind | None:
    if PREFIX in path:
        from rocwheel.wheels.devicecode.loose import loose  # loads pydantic, which most wheels can do without

        if kernel := loose(path):
            return _Kind(kernel.kind, ProcessorCode(kernel.targets, kernel.features), kernel.needed)
    if not is_gpu_elf(head) or len(head) < HEADER_SIZE:
        return None
    header = gpu_header(head, path)
    return _Kind(CODE, ProcessorCode({header.target}, header.features), needed=True)


def _without(folder: str, kind: str, missing: Sequence[Target]) -> CheckError:
    names = ", ".join(map(str, missing))
    return CheckError(
        f"{folder or 'the folder'} has files of {kind} for other GPUs and none for {names}",
        cause="it was not built for this GPU",
        next_step="accept that with --allow-missing; `rocwheel check-gpu GPU FILE` says which other code "
        "may run",
        subject=folder,
    )
