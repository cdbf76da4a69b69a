"""What GPU code a wheel, library, folder or environment holds: per file and target, and in all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rocwheel.wheels.devicecode import bundle as offload
from rocwheel.wheels.devicecode import generic
from rocwheel.wheels.devicecode.code_objects import CodeObject, fat_binaries, objects_in, read_code
from rocwheel.wheels.devicecode.fatbin import FatBinary

if TYPE_CHECKING:
    from rocwheel.wheels.devicecode.kernels import Kernel
    from rocwheel.wheels.members import Member

Kind = Literal["library", "bundle", "code object"]


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
class Library:
    """One file with GPU code. `size` counts the file's bytes.

    `unreached` counts bundles that no wrapper leads to; `distribution` is the package of an environment that
    brought the file, empty elsewhere.
    """

    path: str
    kind: Kind
    size: int
    bundles: tuple[BundleForm, ...]
    wrappers: int
    unreached: int
    code: tuple[CodeObject, ...]
    distribution: str = ""

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
    """Everything found in `path`, the files in the order of their paths."""

    path: str
    libraries: tuple[Library, ...]
    loose: tuple[LooseFiles, ...] = ()

    @property
    def totals(self) -> tuple[TargetCode, ...]:
        """All code by target."""
        return by_target(one for library in self.libraries for one in library.code)

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "path": self.path,
            "libraries": [
                {**asdict(one), "targets": [asdict(target) for target in one.targets]}
                for one in self.libraries
            ],
            "loose": [asdict(one) for one in self.loose],
            "totals": [asdict(target) for target in self.totals],
        }


def inspect(path: Path) -> Inspection:
    """Read `path` (wheel, archive, package, image layout, folder, file).

    Raises InputError where it cannot be read, CheckError where something in it is damaged.
    """
    others: list[tuple[str, int]] = []

    def keep(member: Member) -> None:
        if "gfx" in member.path:
            others.append((member.path, member.size))

    found = [_library(member.path, binary) for member, _, binary in fat_binaries(path, others=keep)]
    return Inspection(
        path=str(path),
        libraries=tuple(sorted(found, key=lambda one: one.path)),
        loose=_loose_files(others),
    )


def kernels_of(path: Path) -> Iterator[tuple[CodeObject, tuple[Kernel, ...]]]:
    """The kernels of every code object of `path` that is machine code; raises as `inspect` does."""
    from rocwheel.wheels.devicecode.kernels import kernels

    for one, code in read_code(path):
        if one.abi:
            yield one, tuple(kernels(code, f"{one.path} ({one.target_id})"))


def _loose_files(files: Iterable[tuple[str, int]]) -> tuple[LooseFiles, ...]:
    """Those of `files` (path, bytes) that are named as a library's own for a GPU are."""
    sizes: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for path, size in files:
        from rocwheel.wheels.devicecode.loose import loose  # most wheels have none, and do without its table

        if (found := loose(path)) is not None:
            folder = path.rpartition("/")[0]
            sizes[folder, found.kind, ":".join((found.named, *found.features))].append(size)
    return tuple(
        LooseFiles(folder=folder, kind=kind, target=target, count=len(each), size=sum(each))
        for (folder, kind, target), each in sorted(
            sizes.items(), key=lambda one: (*one[0][:2], natural(one[0][2]))
        )
    )


def _library(path: str, binary: FatBinary) -> Library:
    forms: dict[tuple[offload.Compression, int], list[offload.Bundle]] = defaultdict(list)
    for bundle in binary.bundles:
        forms[bundle.compression, bundle.version].append(bundle)
    return Library(
        path=path,
        kind=_kind(binary),
        size=binary.size,
        bundles=tuple(
            BundleForm(
                compression=compression,
                version=version,
                count=len(bundles),
                size=sum(one.size for one in bundles),
                unpacked_size=sum(one.unpacked_size for one in bundles),
            )
            for (compression, version), bundles in sorted(forms.items())
        ),
        wrappers=len(binary.wrappers),
        unreached=len(binary.unreached),
        code=tuple(objects_in(path, binary)),
    )


def _kind(binary: FatBinary) -> Kind:
    if binary.lone is not None:
        return "code object"
    return "bundle" if binary.spans[0][0] == 0 else "library"


def by_target(code: Iterable[CodeObject]) -> tuple[TargetCode, ...]:
    """Code objects summed by target and features, in the order of targets."""
    count: dict[tuple[str, str], int] = defaultdict(int)
    size: dict[tuple[str, str], int] = defaultdict(int)
    for one in code:
        key = one.target, one.target_id
        count[key] += 1
        size[key] += one.size
    return tuple(
        TargetCode(target_id=key[1], count=count[key], size=size[key], covers=generic.covers(key[0]))
        for key in sorted(count, key=lambda one: natural(one[1]))
    )


def natural(target: str) -> tuple[int, str]:
    """gfx90a before gfx1030: by the length of the processor's name, then by the name."""
    return len(target.partition(":")[0]), target
