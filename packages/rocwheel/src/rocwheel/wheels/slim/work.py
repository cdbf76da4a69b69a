"""Files made smaller, one after another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rocbase.errors import CheckError
from rocwheel.wheels import elf
from rocwheel.wheels.choose import ProcessorCode, Target, needed
from rocwheel.wheels.devicecode import bundle as offload
from rocwheel.wheels.devicecode.bundle import is_bundle
from rocwheel.wheels.devicecode.fatbin import BUNDLES, check_name, fat_binary, may_hold_code
from rocwheel.wheels.devicecode.gpu import HEADER_SIZE, gpu_header, is_gpu_elf
from rocwheel.wheels.devicecode.kpack import Archive, is_archive, read_archive
from rocwheel.wheels.scratch import Scratch
from rocwheel.wheels.slim.library import Slimmed, slim_bundles, slim_library
from rocwheel.wheels.slim.report import Changed
from rocwheel.wheels.slim.wish import Wish
from rocwheel.wheels.source import ByteSource

HEAD = 64
"""Bytes of a file that say what it is."""

_PE_MAGIC, _PE_SECTION, _PE_TABLES = b"MZ", b".hip_fat", 8192
_MAGICS = (elf.MAGIC, offload.MAGIC, offload.COMPRESSED_MAGIC, _PE_MAGIC)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlimFile:
    """A file: its path, size, first HEAD bytes, and how its content is opened."""

    path: str
    size: int
    head: bytes
    open: Callable[[], ByteSource]


@dataclass(slots=True, kw_only=True)
class Work:
    """What becomes of the files: `rewritten` holds new contents by path; the rest is told in the report."""

    rewritten: dict[str, ByteSource] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    changed: list[Changed] = field(default_factory=list)
    missing: dict[str, tuple[str, ...]] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)


def work_through(
    files: Sequence[SlimFile],
    wish: Wish,
    results: Scratch,
    *,
    settle: Callable[[ByteSource], ByteSource] = lambda content: content,
    tell: Callable[[str], None] = lambda text: None,
) -> Work:
    """Make every file smaller that can be.

    `settle` is given each new content before the next file is opened, and gives what can still be read then;
    `tell` is told of each file that is looked into. Raises CheckError where code for a wanted target is
    missing, where a file is damaged, and where nothing at all would change.
    """
    work = Work()
    unseen: list[str] = []
    for file in files:
        if not may_hold_code(file.head):
            check_name(file.path)
    archives = {file.path: read_archive(file.open(), heads=True) for file in files if is_archive(file.head)}
    removed, work.missing = other_files(((file.path, file.head) for file in files), wish, archives)
    for file in files:
        if file.path in removed:
            work.removed.add(file.path)
            work.changed.append(Changed(path=file.path, before=file.size, after=0, why=removed[file.path]))
            continue
        if file.path in archives and (surplus := _more_targets(archives[file.path], wish)):
            work.left[file.path] = f"a kpack archive that is for {', '.join(surplus)} too"
        if is_gpu_elf(file.head) or not file.head.startswith(_MAGICS):
            continue
        tell(file.path)
        source = file.open()
        slim = slim_bundles if is_bundle(file.head) else slim_library
        if reason := _reason_to_leave(source):
            work.left[file.path] = reason
        elif not file.head.startswith(_PE_MAGIC) and (slimmed := slim(source, wish, results)):
            _note(work, file, slimmed, settle)
        elif not work.changed:
            # told only where nothing changes; a file is unpacked once
            unseen += _unseen(file, source)
    if not work.changed:
        raise CheckError(
            "there is nothing to remove",
            cause=f"it has no removable code for other GPUs than {', '.join(map(str, wish.targets))}",
            next_step="use it as it is; `rocwheel inspect` shows what it contains",
            detail="\n".join(unseen),
        )
    return work


def _unseen(file: SlimFile, source: ByteSource) -> Iterator[str]:
    """Why code of a file stays as it is: it cannot be read, or lies elsewhere."""
    fat = fat_binary(source, heads=True) if may_hold_code(file.head) else None
    yield from (f"{file.path}: {reason}" for reason in (fat.unseen if fat else ()))


def _more_targets(archive: Archive, wish: Wish) -> list[str]:
    """The targets of an archive that stays which nobody asked for."""
    targets = sorted({packed.target for packed in archive.code})
    retained, _ = needed([ProcessorCode({target}) for target in targets], wish.targets, wish.covered)
    return [target for number, target in enumerate(targets) if number not in retained]


def _note(work: Work, file: SlimFile, slimmed: Slimmed, settle: Callable[[ByteSource], ByteSource]) -> None:
    if slimmed.left:
        work.left[file.path] = slimmed.left
    if not slimmed.changed:
        return
    work.rewritten[file.path] = settle(slimmed.content)
    if slimmed.missing:
        work.missing[file.path] = slimmed.missing
    work.changed.append(
        Changed(
            path=file.path,
            before=file.size,
            after=slimmed.content.size,
            stayed=slimmed.stayed,
            went=slimmed.went,
            debug=slimmed.debug,
        )
    )


def _reason_to_leave(source: ByteSource) -> str:
    """Why the GPU code in a file is left as it is; "" where there is none, or it can go."""
    begin = source.read_at(0, min(source.size, _PE_TABLES))
    if begin.startswith(_PE_MAGIC) and _PE_SECTION in begin:
        return "code in Windows libraries is not taken out"
    if begin.startswith(elf.MAGIC):
        file = elf.Elf(source)
        if file.kind == elf.RELOCATABLE and file.named(BUNDLES):
            return "code in object files is not taken out"
    return ""


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
