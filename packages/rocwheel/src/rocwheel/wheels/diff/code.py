"""GPU code of two files compared: code objects by target, then the kernels of those that differ."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rocwheel.wheels.devicecode.code_object import CodeFile
from rocwheel.wheels.devicecode.code_objects import CodeObject, read_code
from rocwheel.wheels.devicecode.gpu import is_gpu_elf
from rocwheel.wheels.devicecode.kernels import kernels_of
from rocwheel.wheels.devicecode.kpack_reference import Reference
from rocwheel.wheels.diff.model import CodeDifference, KernelChange, changes

NUMBERS = (
    "vgprs",
    "agprs",
    "sgprs",
    "vgpr_spills",
    "sgpr_spills",
    "lds",
    "scratch",
    "kernargs",
    "wave",
    "workgroup",
)
"""Fields of a kernel that are compared."""


_Objects = defaultdict[str, Counter[str]]
"""The digests of the code objects of each target, each as often as it is there."""


@dataclass(slots=True)
class _Kernels:
    """Kernels by name: their NUMBERS and the digests of their instructions. Some code objects tell none.

    A wheel has 100,000 and more, most for each target anew: no more is held of one, and each name once.
    """

    named: dict[str, tuple[tuple[Any, ...], bytes]] = field(default_factory=dict)
    silent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCode:
    """A file, and the kpack archives with code of it by its `reference` to them."""

    file: Path
    archives: tuple[Path, ...] = ()
    reference: Reference | None = None

    def read(
        self, select: Callable[[CodeObject], bool] = lambda code: True
    ) -> Iterator[tuple[CodeObject, bytes]]:
        """The code objects that are wanted, wherever they lie."""
        yield from read_code(self.file, select)
        for archive in self.archives:
            yield from read_code(archive, lambda code: self._owns(code) and select(code))

    def _owns(self, code: CodeObject) -> bool:
        return self.reference is not None and self.reference.owns(code.library)


def compare_code(old: FileCode | None, new: FileCode | None) -> tuple[CodeDifference, ...]:
    """What the GPU code of two files differs in, by target; None where there is no such file.

    Raises CheckError where code is damaged.
    """
    old_objects, new_objects = _objects(old), _objects(new)
    targets = [
        target
        for target in sorted(old_objects.keys() | new_objects.keys())
        if old_objects[target] != new_objects[target]
    ]
    old_kernels, new_kernels = _named(old, old_objects, new_objects), _named(new, new_objects, old_objects)
    return tuple(
        _compare(target, (old_objects[target], new_objects[target]), old_kernels[target], new_kernels[target])
        for target in targets
    )


def _compare(
    target: str, objects: tuple[Counter[str], Counter[str]], old_kernels: _Kernels, new_kernels: _Kernels
) -> CodeDifference:
    changed = []
    for name in sorted(old_kernels.named.keys() & new_kernels.named.keys()):
        (old, old_code), (new, new_code) = old_kernels.named[name], new_kernels.named[name]
        numbers = changes(_numbers(old), _numbers(new)) if old != new else ()
        if numbers or old_code != new_code:
            changed.append(KernelChange(name=name, instructions=old_code != new_code, numbers=numbers))
    old_digests, new_digests = objects
    return CodeDifference(
        target=target,
        before=old_digests.total(),
        after=new_digests.total(),
        same=(old_digests & new_digests).total(),
        silent=old_kernels.silent + new_kernels.silent,
        removed=tuple(sorted(old_kernels.named.keys() - new_kernels.named.keys())),
        added=tuple(sorted(new_kernels.named.keys() - old_kernels.named.keys())),
        changed=tuple(changed),
    )


def _objects(file: FileCode | None) -> _Objects:
    digests: _Objects = defaultdict(Counter)
    for code_object, code in file.read() if file else ():
        digests[code_object.target_id][hashlib.sha256(code).hexdigest()] += 1
    return digests


def _named(file: FileCode | None, own: _Objects, counterpart: _Objects) -> defaultdict[str, _Kernels]:
    """The kernels, by target, of the code objects that the other file does not have."""
    kernels: defaultdict[str, _Kernels] = defaultdict(_Kernels)
    differing = {target for target, digests in own.items() if digests.keys() - counterpart[target].keys()}
    if file is None or not differing:
        return kernels
    for code_object, code in file.read(lambda code_object: code_object.target_id in differing):
        if hashlib.sha256(code).hexdigest() not in counterpart[code_object.target_id]:
            _add(kernels[code_object.target_id], code, f"{code_object.path} ({code_object.target_id})")
    return kernels


def _add(kernels: _Kernels, code: bytes, subject: str) -> None:
    """The kernels of one code object; SPIR-V does not name them."""
    if not is_gpu_elf(code):
        kernels.silent += 1
        return
    file = CodeFile(code, subject)
    functions = {symbol.name: symbol for symbol in file.symbols if symbol.function}
    for kernel in kernels_of(file):
        symbol = functions.get(kernel.symbol.removesuffix(".kd"))
        text = file.bytes_of(symbol, symbol.size) if symbol else b""
        numbers = tuple(getattr(kernel, name) for name in NUMBERS)
        kernels.named[sys.intern(kernel.name)] = numbers, hashlib.sha256(text).digest()


def _numbers(values: tuple[Any, ...]) -> dict[str, Any]:
    return {name.replace("_", " "): value for name, value in zip(NUMBERS, values, strict=True)}
