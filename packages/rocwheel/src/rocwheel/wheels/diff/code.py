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
        self, wanted: Callable[[CodeObject], bool] = lambda one: True
    ) -> Iterator[tuple[CodeObject, bytes]]:
        """The code objects that are wanted, wherever they lie."""
        yield from read_code(self.file, wanted)
        for archive in self.archives:
            yield from read_code(archive, lambda one: self._owns(one) and wanted(one))

    def _owns(self, one: CodeObject) -> bool:
        return self.reference is not None and self.reference.owns(one.library)


def compare_code(before: FileCode | None, after: FileCode | None) -> tuple[CodeDifference, ...]:
    """What the GPU code of two files differs in, by target; None where there is no such file.

    Raises CheckError where code is damaged.
    """
    one, two = _objects(before), _objects(after)
    targets = [target for target in sorted(one.keys() | two.keys()) if one[target] != two[target]]
    was, now = _named(before, one, two), _named(after, two, one)
    return tuple(_compare(target, (one[target], two[target]), was[target], now[target]) for target in targets)


def _compare(
    target: str, objects: tuple[Counter[str], Counter[str]], was: _Kernels, now: _Kernels
) -> CodeDifference:
    changed = []
    for name in sorted(was.named.keys() & now.named.keys()):
        (old, old_code), (new, new_code) = was.named[name], now.named[name]
        numbers = changes(_numbers(old), _numbers(new)) if old != new else ()
        if numbers or old_code != new_code:
            changed.append(KernelChange(name=name, instructions=old_code != new_code, numbers=numbers))
    before, after = objects
    return CodeDifference(
        target=target,
        before=before.total(),
        after=after.total(),
        same=(before & after).total(),
        silent=was.silent + now.silent,
        removed=tuple(sorted(was.named.keys() - now.named.keys())),
        added=tuple(sorted(now.named.keys() - was.named.keys())),
        changed=tuple(changed),
    )


def _objects(of: FileCode | None) -> _Objects:
    found: _Objects = defaultdict(Counter)
    for one, code in of.read() if of else ():
        found[one.target_id][hashlib.sha256(code).hexdigest()] += 1
    return found


def _named(of: FileCode | None, own: _Objects, other: _Objects) -> defaultdict[str, _Kernels]:
    """The kernels, by target, of the code objects that the other file does not have."""
    found: defaultdict[str, _Kernels] = defaultdict(_Kernels)
    differing = {target for target, digests in own.items() if digests.keys() - other[target].keys()}
    if of is None or not differing:
        return found
    for one, code in of.read(lambda one: one.target_id in differing):
        if hashlib.sha256(code).hexdigest() not in other[one.target_id]:
            _add(found[one.target_id], code, f"{one.path} ({one.target_id})")
    return found


def _add(found: _Kernels, code: bytes, subject: str) -> None:
    """The kernels of one code object; SPIR-V does not name them."""
    if not is_gpu_elf(code):
        found.silent += 1
        return
    file = CodeFile(code, subject)
    functions = {symbol.name: symbol for symbol in file.symbols if symbol.function}
    for kernel in kernels_of(file):
        symbol = functions.get(kernel.symbol.removesuffix(".kd"))
        text = file.bytes_of(symbol, symbol.size) if symbol else b""
        numbers = tuple(getattr(kernel, name) for name in NUMBERS)
        found.named[sys.intern(kernel.name)] = numbers, hashlib.sha256(text).digest()


def _numbers(values: tuple[Any, ...]) -> dict[str, Any]:
    return {name.replace("_", " "): value for name, value in zip(NUMBERS, values, strict=True)}
