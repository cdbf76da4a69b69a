"""What GPU code a wheel, library, folder or environment holds: per file and target, and in all."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rocbase.units import count
from rocwheel.wheels.devicecode import bundle as offload
from rocwheel.wheels.devicecode import generic
from rocwheel.wheels.devicecode.code_objects import (
    CodeObject,
    Unseen,
    fat_binaries,
    objects_in,
    read_code,
    refuse_other,
)
from rocwheel.wheels.devicecode.fatbin import FatBinary
from rocwheel.wheels.kpacked import Distribution, Kpacked, MetadataReader, Place, check_versions, join
from rocwheel.wheels.marks import CODE
from rocwheel.wheels.without_code import Dependence, dependences

if TYPE_CHECKING:
    from rocwheel.wheels.devicecode.kernels import Kernel
    from rocwheel.wheels.devicecode.kpack import Archive
    from rocwheel.wheels.devicecode.kpack_reference import Reference
    from rocwheel.wheels.members import Member

_OF_CODE = tuple(field.name for field in fields(CodeObject))
_of_code = attrgetter(*_OF_CODE)

Kind = Literal["library", "bundle", "code object", "kpack archive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCode:
    """Code for one target with its features: how many code objects, and their bytes, unpacked.

    `covers` names the processors that a generic target stands for.
    """

    target_id: str
    count: int
    size: int
    covers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleForm:
    """Bundles of one form: `version` of the compressed format (0: plain), bytes in the file and unpacked."""

    compression: offload.Compression
    version: int
    count: int
    size: int
    unpacked_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedCode:
    """Bundles and code objects that lie in another section of a library than the compiler's."""

    section: str
    bundles: int
    code_objects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """A library's code in kpack archives: its name there, where it looks for them, which are here, and for
    which targets they hold all the code that it asks for."""

    name: str
    search: tuple[str, ...]
    archives: tuple[str, ...]
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLibrary:
    """One file with GPU code. `size` counts the file's bytes.

    `unreached` counts bundles that no wrapper leads to; `distribution` is the package of an environment that
    brought the file, empty elsewhere. `embedded` tells of code that the program loads itself, `kpacked` of
    code that lies in kpack archives, `unread` of code that was seen and cannot be read, and why.
    """

    path: str
    kind: Kind
    size: int
    bundles: tuple[BundleForm, ...]
    wrappers: int
    unreached: int
    code: tuple[CodeObject, ...]
    distribution: str = ""
    embedded: tuple[EmbeddedCode, ...] = ()
    kpacked: Elsewhere | None = None
    unread: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[TargetCode, ...]:
        """Its code by target."""
        return by_target(self.code)


@dataclass(frozen=True, slots=True, kw_only=True)
class LooseFiles:
    """Files of a `folder` that a library loads by name for the GPU `target`, and that are no code objects.

    `kind` says whose they are (rocBLAS, MIOpen, ...); `target` may be a family (gfx11xx). `size` is in bytes.
    """

    folder: str
    kind: str
    target: str
    count: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Everything found in `path`, the files in the order of their paths.

    `without_code` has the files that depend on a GPU if there is no GPU code at all.
    """

    path: str
    libraries: tuple[GpuLibrary, ...]
    loose: tuple[LooseFiles, ...] = ()
    without_code: tuple[Dependence, ...] = ()

    @property
    def totals(self) -> tuple[TargetCode, ...]:
        """All code by target."""
        return by_target(code for library in self.libraries for code in library.code)

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "path": self.path,
            "libraries": [
                {
                    **asdict(replace(library, code=())),
                    # as asdict gives them, in a fifth of the time: there may be hundreds of thousands
                    "code": [dict(zip(_OF_CODE, _of_code(code), strict=True)) for code in library.code],
                    "targets": [asdict(target) for target in library.targets],
                }
                for library in self.libraries
            ],
            "loose": [asdict(files) for files in self.loose],
            "totals": [asdict(target) for target in self.totals],
            "without_code": [file._asdict() for file in self.without_code],
        }


def inspect(path: Path, *, heads: bool = False) -> Inspection:
    """Read `path` (wheel, archive, package, image layout, folder, file).

    With `heads` no more is unpacked than tells the targets. Raises InputError where it cannot be read,
    CheckError where something in it is damaged.
    """
    return inspect_together([path], heads=heads)


def inspect_together(paths: Sequence[Path], *, heads: bool = False) -> Inspection:
    """The same for several, as if they were installed together; their files' paths begin with their names.

    Raises CheckError too where a wheel brings code for another version of one of the others.
    """
    other_files: list[tuple[str, int, bytes]] = []
    libraries: dict[Place, GpuLibrary] = {}
    references: dict[Place, Reference] = {}
    archives: dict[Place, Archive] = {}
    distributions: list[Distribution] = []
    for number, path in enumerate(paths):
        refuse_other(path)
        metadata = MetadataReader()
        prefix = f"{path.name}: " if len(paths) > 1 else ""

        def keep(member: Member, metadata: MetadataReader = metadata, prefix: str = prefix) -> None:
            metadata.see(member)
            if "gfx" in member.path or CODE in member.head:
                other_files.append((f"{prefix}{member.path}", member.size, member.head))

        archive_count = len(archives)
        for member, _, binary in fat_binaries(path, heads=heads, without_code=keep):
            place = Place(number, member.path)
            libraries[place] = _library(f"{prefix}{member.path}", binary)
            if binary.archive is not None:
                archives[place] = binary.archive
            if binary.reference is not None:
                references[place] = binary.reference
        distributions += metadata.distributions(archives=len(archives) > archive_count)
    check_versions(distributions)
    for place, kpacked in join(references, archives).items():
        libraries[place] = replace(libraries[place], kpacked=_elsewhere(kpacked, libraries))
    loose = _loose_files(other_files)
    return Inspection(
        path=" ".join(map(str, paths)),
        libraries=tuple(sorted(libraries.values(), key=lambda library: library.path)),
        loose=loose,
        without_code=() if libraries or loose else tuple(itertools.chain(*map(dependences, paths))),
    )


def _elsewhere(kpacked: Kpacked, libraries: Mapping[Place, GpuLibrary]) -> Elsewhere:
    target_sets = [{packed.target_id for packed in code} for code in kpacked.code.values()]
    return Elsewhere(
        name=kpacked.reference.name,
        search=kpacked.reference.search,
        archives=tuple(sorted(libraries[place].path for place in kpacked.archives)),
        targets=tuple(sorted(set.intersection(*target_sets), key=natural)) if target_sets else (),
    )


def kernels_of(path: Path, unseen: Unseen | None = None) -> Iterator[tuple[CodeObject, tuple[Kernel, ...]]]:
    """The kernels of every code object of `path` that is machine code; raises as `inspect` does.

    `unseen` hears of code whose kernels are not among them.
    """
    from rocwheel.wheels.devicecode.kernels import kernels

    opaque: Counter[tuple[str, str]] = Counter()
    for code_object, code in read_code(path, unseen=unseen):
        if code_object.abi:
            yield code_object, tuple(kernels(code, f"{code_object.path} ({code_object.target_id})"))
        else:
            opaque[code_object.path, code_object.target_id] += 1
    if unseen is not None:
        for (name, target), number in opaque.items():
            unseen.add(name, [f"{count(number, 'piece')} of code for {target}, which names no kernels"])


def _loose_files(files: Iterable[tuple[str, int, bytes]]) -> tuple[LooseFiles, ...]:
    """Those of `files` (path, bytes, how they begin) that are a library's own for a GPU."""
    sizes: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for path, size, head in files:
        from rocwheel.wheels.devicecode.loose import loose  # most wheels have none, and do without its table

        if (match := loose(path, head)) is not None:
            folder = path.rpartition("/")[0]
            sizes[folder, match.kind, ":".join((match.named, *match.features))].append(size)
    return tuple(
        LooseFiles(folder=folder, kind=kind, target=target, count=len(lengths), size=sum(lengths))
        for (folder, kind, target), lengths in sorted(
            sizes.items(), key=lambda pair: (*pair[0][:2], natural(pair[0][2]))
        )
    )


def _library(path: str, binary: FatBinary) -> GpuLibrary:
    forms: dict[tuple[offload.Compression, int], list[offload.Bundle]] = defaultdict(list)
    for bundle in binary.bundles:
        forms[bundle.compression, bundle.version].append(bundle)
    return GpuLibrary(
        path=path,
        kind=_kind(binary),
        size=binary.size,
        bundles=tuple(
            BundleForm(
                compression=compression,
                version=version,
                count=len(bundles),
                size=sum(bundle.size for bundle in bundles),
                unpacked_size=sum(bundle.unpacked_size for bundle in bundles),
            )
            for (compression, version), bundles in sorted(forms.items())
        ),
        wrappers=len(binary.wrappers),
        unreached=len(binary.unreached),
        code=tuple(objects_in(path, binary)),
        embedded=tuple(_embedded(binary)),
        unread=binary.unread,
    )


def _embedded(binary: FatBinary) -> Iterator[EmbeddedCode]:
    for section in dict.fromkeys(piece.section for piece in binary.embedded):
        pieces = [piece for piece in binary.embedded if piece.section == section]
        yield EmbeddedCode(
            section=section,
            bundles=sum(piece.bundle is not None for piece in pieces),
            code_objects=sum(piece.code is not None for piece in pieces),
        )


def _kind(binary: FatBinary) -> Kind:
    if binary.lone is not None:
        return "code object"
    if binary.archive is not None:
        return "kpack archive"
    return "bundle" if binary.spans and binary.spans[0][0] == 0 else "library"


def by_target(code: Iterable[CodeObject]) -> tuple[TargetCode, ...]:
    """Code objects summed by target and features, in the order of targets."""
    count: dict[tuple[str, tuple[str, ...]], int] = defaultdict(int)
    size: dict[tuple[str, tuple[str, ...]], int] = defaultdict(int)
    for code_object in code:
        key = code_object.target, code_object.features
        count[key] += 1
        size[key] += code_object.size
    ids = {(target, features): ":".join((target, *features)) for target, features in count}
    return tuple(
        TargetCode(target_id=ids[key], count=count[key], size=size[key], covers=generic.covers(key[0]))
        for key in sorted(count, key=lambda key: natural(ids[key]))
    )


def natural(target: str) -> tuple[int, str]:
    """gfx90a before gfx1030: by the length of the processor's name, then by the name."""
    return len(target.partition(":")[0]), target
