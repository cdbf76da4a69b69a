"""Files made smaller, one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rocbase.errors import CheckError
from rocwheel.wheels import elf
from rocwheel.wheels.choose import ProcessorCode, needed
from rocwheel.wheels.devicecode import bundle as offload
from rocwheel.wheels.devicecode.bundle import is_bundle
from rocwheel.wheels.devicecode.fatbin import BUNDLES, check_name, fat_binary, may_hold_code
from rocwheel.wheels.devicecode.gpu import is_gpu_elf
from rocwheel.wheels.devicecode.kpack import Archive, is_archive, read_archive
from rocwheel.wheels.scratch import Scratch
from rocwheel.wheels.slim.files import other_files
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
    """What becomes of the files: `made` holds new contents by path; the rest is told in the report."""

    made: dict[str, ByteSource] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
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
    for one in files:
        if not may_hold_code(one.head):
            check_name(one.path)
    archives = {one.path: read_archive(one.open(), heads=True) for one in files if is_archive(one.head)}
    gone, work.missing = other_files(((one.path, one.head) for one in files), wish, archives)
    for one in files:
        if one.path in gone:
            work.gone.add(one.path)
            work.changed.append(Changed(path=one.path, before=one.size, after=0, why=gone[one.path]))
            continue
        if one.path in archives and (more := _more_targets(archives[one.path], wish)):
            work.left[one.path] = f"a kpack archive that is for {', '.join(more)} too"
        if is_gpu_elf(one.head) or not one.head.startswith(_MAGICS):
            continue
        tell(one.path)
        source = one.open()
        slim = slim_bundles if is_bundle(one.head) else slim_library
        if reason := _reason_to_leave(source):
            work.left[one.path] = reason
        elif not one.head.startswith(_PE_MAGIC) and (found := slim(source, wish, results)):
            _note(work, one, found, settle)
        elif not work.changed:
            # told only where nothing changes; a file is unpacked once
            unseen += _unseen(one, source)
    if not work.changed:
        raise CheckError(
            "there is nothing to remove",
            cause=f"it has no removable code for other GPUs than {', '.join(map(str, wish.targets))}",
            next_step="use it as it is; `rocwheel inspect` shows what it contains",
            detail="\n".join(unseen),
        )
    return work


def _unseen(one: SlimFile, source: ByteSource) -> Iterator[str]:
    """Why code of a file stays as it is: it cannot be read, or lies elsewhere."""
    found = fat_binary(source, heads=True) if may_hold_code(one.head) else None
    yield from (f"{one.path}: {why}" for why in (found.unseen if found else ()))


def _more_targets(archive: Archive, wish: Wish) -> list[str]:
    """The targets of an archive that stays which nobody asked for."""
    targets = sorted({one.target for one in archive.code})
    kept, _ = needed([ProcessorCode({one}) for one in targets], wish.targets, wish.covered)
    return [one for number, one in enumerate(targets) if number not in kept]


def _note(work: Work, one: SlimFile, found: Slimmed, settle: Callable[[ByteSource], ByteSource]) -> None:
    if found.left:
        work.left[one.path] = found.left
    if not found.changed:
        return
    work.made[one.path] = settle(found.content)
    if found.missing:
        work.missing[one.path] = found.missing
    work.changed.append(
        Changed(
            path=one.path,
            before=one.size,
            after=found.content.size,
            stayed=found.stayed,
            went=found.went,
            debug=found.debug,
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
