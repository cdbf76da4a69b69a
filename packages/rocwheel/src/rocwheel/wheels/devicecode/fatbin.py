"""The fat binaries of a library: its bundles, and the wrappers through which the program finds them.

The compiler puts bundles into the section `.hip_fatbin`, and for each a wrapper into `.hipFatBinSegment`:
magic, version, the address of the bundle, and an unused address, 24 bytes. Source: clang's
lib/CodeGen/CGCUDANV.cpp, and `__CudaFatBinaryWrapper` in HIP's clr/hipamd/src/hip_fatbin.hpp.

Since ROCm 7.14 the code may lie in kpack archives instead: see `kpack_reference`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rocbase.errors import CheckError
from rocwheel.wheels import elf
from rocwheel.wheels.devicecode import kpack_reference
from rocwheel.wheels.devicecode.bundle import Bundle, is_bundle
from rocwheel.wheels.devicecode.bundles import Ahead, read_bundles
from rocwheel.wheels.devicecode.embedded import Embedded, embedded
from rocwheel.wheels.devicecode.gpu import (
    HEADER_SIZE,
    GpuHeader,
    gpu_header,
    is_gpu_elf,
)
from rocwheel.wheels.devicecode.kpack_reference import Reference
from rocwheel.wheels.elf import Elf, Pointer
from rocwheel.wheels.formats import PE_MAGIC
from rocwheel.wheels.marks import KPACK
from rocwheel.wheels.source import ByteSource

if TYPE_CHECKING:
    from rocwheel.wheels.devicecode.kpack import Archive
    from rocwheel.wheels.pe import Pe

BUNDLES = ".hip_fatbin"
WRAPPERS = ".hipFatBinSegment"
WRAPPER_MAGIC = 0x48495046
MOST_WRAPPERS = 50_000

NAMED_CODE = ".kpack"
"""How files are named that are GPU code and nothing else."""

TAKEN_OUT = f"the section {BUNDLES} has no bytes in the file: the code was taken out of it"
"""Why code cannot be read to which wrappers lead."""

_WRAPPER = struct.Struct("<IIQQ")


class Wrapper(NamedTuple):
    """24 bytes at `offset` in the file that lead the program to a bundle, and what leads there.

    `bundle` is where the bundle lies in the file; None where it is not in this file. `number` is that of the
    library's code object in kpack archives which a wrapper of those asks for; None for one of a bundle.
    """

    offset: int
    version: int
    pointer: Pointer | None
    number: int | None = None

    @property
    def bundle(self) -> int | None:
        return self.pointer.target if self.pointer else None


class FatBinary(NamedTuple):
    """All GPU code of one file.

    `spans` are the parts of the file that hold bundles, as offset and size; `lone` is the header of a file
    that is itself one code object, `archive` the content of one that is a kpack archive. `embedded` is code
    that lies elsewhere in a library. `reference` says where code lies that is in kpack archives. `unread`
    says what code was seen and cannot be read, and why.
    """

    size: int
    spans: tuple[tuple[int, int], ...] = ()
    bundles: tuple[Bundle, ...] = ()
    wrappers: tuple[Wrapper, ...] = ()
    lone: GpuHeader | None = None
    archive: Archive | None = None
    embedded: tuple[Embedded, ...] = ()
    reference: Reference | None = None
    unread: tuple[str, ...] = ()

    @property
    def has_code(self) -> bool:
        """Whether the file itself holds code, and is no kpack archive."""
        return self.lone is not None or bool(self.bundles or self.embedded)

    @property
    def unseen(self) -> tuple[str, ...]:
        """Why there is, or may be, code of this file that is not told of here."""
        search = ", ".join(self.reference.search) if self.reference else ""
        elsewhere = (f"its code is in kpack archives ({search}), and not in the file",) if search else ()
        return (*self.unread, *elsewhere)

    @property
    def all_bundles(self) -> tuple[Bundle, ...]:
        """Its bundles, and behind them those that are embedded."""
        return (*self.bundles, *(piece.bundle for piece in self.embedded if piece.bundle is not None))

    @property
    def unreached(self) -> tuple[Bundle, ...]:
        """Bundles to which no wrapper leads, where there are wrappers at all."""
        reached = {wrapper.bundle for wrapper in self.wrappers if wrapper.number is None}
        return tuple(bundle for bundle in self.bundles if self.wrappers and bundle.offset not in reached)


class _Reading(NamedTuple):
    """How much is read: see `fat_binary`."""

    hashes: bool
    heads: bool
    ahead: Ahead | None


def may_hold_code(head: bytes) -> bool:
    """Whether a file that begins with `head` (24 bytes are enough) can be one that `fat_binary` reads."""
    return head.startswith((elf.MAGIC, PE_MAGIC, KPACK)) or is_bundle(head)


def check_name(path: str) -> None:
    """Raise CheckError for the name of a file of code, where `may_hold_code` says that it holds none."""
    if path.endswith(NAMED_CODE):
        raise CheckError(
            f"{path} holds no GPU code, though its name says so",
            cause="it is empty or damaged, or what Git LFS leaves in a file's place",
            next_step="get the file itself (`git lfs pull`), or a fresh copy of the package",
            subject=path,
        )


def fat_binary(source: ByteSource, *, hashes: bool = False, heads: bool = False) -> FatBinary | None:
    """The GPU code in one file; None where it has none.

    Raises CheckError where the file is damaged. Only headers are read, but of what is compressed, which is
    unpacked; with `hashes` the own hashes of bundles are checked too. With `heads` no more is unpacked than
    tells the targets.
    """
    if heads:
        return _read(source, _Reading(hashes=hashes, heads=True, ahead=None))
    with Ahead(source, hashes=hashes) as ahead:
        return _read(source, _Reading(hashes=hashes, heads=False, ahead=ahead))


def _read(source: ByteSource, reading: _Reading) -> FatBinary | None:
    head = source.read_at(0, min(source.size, HEADER_SIZE))
    if is_gpu_elf(head):
        return FatBinary(size=source.size, lone=gpu_header(head, source.subject))
    if is_bundle(head):
        return _with_bundles(source, ((0, source.size),), reading)
    if head.startswith(KPACK):
        from rocwheel.wheels.devicecode import kpack  # few files are one

        return FatBinary(size=source.size, archive=kpack.read_archive(source, heads=reading.heads))
    file = _host_file(source, head)
    return _of_host(file, reading) if file else None


def _of_host(file: Elf | Pe, reading: _Reading) -> FatBinary | None:
    """The code of a library or program of a host."""
    spans = tuple((section.offset, section.size) for section in file.named(BUNDLES) if section.size)
    content = _reference_bytes(file)
    wrappers = tuple(_wrappers(file, pointers=not reading.heads))
    of_bundles = [wrapper for wrapper in wrappers if wrapper.number is None]
    numbers = tuple(dict.fromkeys(wrapper.number for wrapper in wrappers if wrapper.number is not None))
    if reading.heads:
        # pointers tell nothing of the targets, but where no section says what those of kpack lead to
        wrappers = tuple(_wrappers(file, pointers=True)) if numbers and not content else ()
    reference = None
    unread: tuple[str, ...] = ()
    covered = spans
    if content or numbers:
        reference = _reference(file, content, wrappers)._replace(wanted=numbers)
        # without a wrapper of a bundle, what is left of the section is a rest of what was there
        spans = spans if of_bundles else ()
    elif not spans:
        unread = (TAKEN_OUT,) if of_bundles and _is_emptied(file) else ()
    binary = _with_bundles(file.source, spans, reading)
    findings = embedded(file, covered, **reading._asdict())
    binary = binary._replace(
        wrappers=wrappers,
        embedded=tuple(findings.code),
        reference=reference,
        unread=(*unread, *findings.unread),
    )
    return binary if binary.has_code or binary.reference or binary.unread or spans else None


def reference_in(source: ByteSource) -> Reference | None:
    """Where a library's code lies if that is in kpack archives; only that section is read.

    Raises CheckError where the file is damaged.
    """
    file = _host_file(source, source.read_at(0, min(source.size, HEADER_SIZE)))
    content = _reference_bytes(file) if file else b""
    return kpack_reference.read_reference(content, source.subject) if content else None


def _reference_bytes(file: Elf | Pe) -> bytes:
    """The section that says in which kpack archives code lies; empty where there is none."""
    name = kpack_reference.SECTION if isinstance(file, Elf) else kpack_reference.PE_SECTION
    for section in file.named(name):
        return file.source.read_at(section.offset, min(section.size, kpack_reference.LARGEST))
    return b""


def _reference(file: Elf | Pe, content: bytes, wrappers: Sequence[Wrapper]) -> Reference:
    """The reference as its section has it, else as the wrappers lead to it."""
    if not content:
        offset = next(
            (
                wrapper.bundle
                for wrapper in wrappers
                if wrapper.number is not None and wrapper.bundle is not None
            ),
            None,
        )
        if offset is None:
            raise file.wrong("its wrappers ask for code in kpack archives, and nothing says which")
        content = file.source.read_at(offset, min(file.source.size - offset, kpack_reference.LARGEST))
    return kpack_reference.read_reference(content, file.source.subject)


def _is_emptied(file: Elf | Pe) -> bool:
    """Whether there is a section of bundles that has no bytes in the file."""
    if isinstance(file, Elf):
        return any(
            section.name == BUNDLES and section.size and not section.has_bytes for section in file.sections
        )
    return any(section.name == BUNDLES[:8] and not section.size for section in file.sections)


def _with_bundles(source: ByteSource, spans: tuple[tuple[int, int], ...], reading: _Reading) -> FatBinary:
    bundles = (
        bundle
        for begin, size in spans
        for bundle in read_bundles(source, begin, begin + size, **reading._asdict())
    )
    return FatBinary(size=source.size, spans=spans, bundles=tuple(bundles))


def _host_file(source: ByteSource, head: bytes) -> Elf | Pe | None:
    """The file as a library or program of a host that HIP runs on."""
    if head[:6] == elf.MAGIC_64:
        return Elf(source)
    if not head.startswith(PE_MAGIC):
        return None
    from rocwheel.wheels import pe  # few files are one

    return pe.Pe(source) if pe.is_pe(source) else None


def _wrappers(file: Elf | Pe, *, pointers: bool) -> Iterator[Wrapper]:
    """The wrappers of a file; without `pointers` nothing is read of where those lead that relocations set."""
    placed = not isinstance(file, Elf) or file.kind != elf.RELOCATABLE
    sections = file.named(WRAPPERS)
    count = sum(section.size // _WRAPPER.size for section in sections)
    if max(count, len(sections)) > MOST_WRAPPERS:
        raise file.wrong(f"it claims {count:,} wrappers of bundles in {len(sections):,} sections")
    for section in sections:
        offset, size = section.offset, section.size
        data = file.source.read_at(offset, size // _WRAPPER.size * _WRAPPER.size)
        by_place: dict[int, Pointer] = {}
        if pointers and isinstance(file, Elf) and isinstance(section, elf.Section):
            by_place = {pointer.at: pointer for pointer in file.pointers(section)}
        for number, (magic, version, address, reserved) in enumerate(_WRAPPER.iter_unpack(data)):
            if magic not in (WRAPPER_MAGIC, kpack_reference.WRAPPER_MAGIC):
                raise file.wrong(f"bundle wrapper {number} begins with {magic:#x}")
            position = offset + number * _WRAPPER.size
            pointer = by_place.get(position + 8)
            if pointer is None and address and placed:
                # a program at fixed addresses and a PE file hold the address itself
                target = file.at_address(address)
                pointer = Pointer(
                    at=position + 8, target=target, form="place", value_at=position + 8, value=address
                )
            # the low half of the address that a wrapper of a bundle has no use for
            packed = reserved & 0xFFFFFFFF if magic == kpack_reference.WRAPPER_MAGIC else None
            yield Wrapper(offset=position, version=version, pointer=pointer, number=packed)
