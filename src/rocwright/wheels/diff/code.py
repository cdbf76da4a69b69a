"""GPU code of two files compared: code objects by target, then the kernels of those that differ."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from rocwright.wheels.codefile import CodeFile
from rocwright.wheels.codeobjects import read_code
from rocwright.wheels.diff.model import CodeDifference, KernelChange, changes
from rocwright.wheels.gpu import is_gpu_elf
from rocwright.wheels.kernels import Kernel, kernels_of

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


@dataclass(slots=True)
class _Code:
    """The code of one target in one file: digests of its code objects, and its kernels by digest."""

    objects: Counter[str] = field(default_factory=Counter)
    kernels: dict[str, list[tuple[Kernel, str]]] = field(default_factory=dict)

    def named(self, other: _Code) -> dict[str, tuple[Kernel, str]]:
        """Kernels of the code objects that `other` lacks, with the digests of their instructions."""
        only = [digest for digest in self.kernels if digest not in other.objects]
        return {kernel.name: (kernel, code) for digest in only for kernel, code in self.kernels[digest]}


def compare_code(before: Path | None, after: Path | None) -> tuple[CodeDifference, ...]:
    """What the GPU code of two files differs in, by target; None where there is no such file.

    Raises CheckError where code is damaged.
    """
    one, two = _read(before), _read(after)
    found = (_compare(target, one[target], two[target]) for target in sorted(one.keys() | two.keys()))
    return tuple(difference for difference in found if difference)


def _compare(target: str, before: _Code, after: _Code) -> CodeDifference | None:
    if before.objects == after.objects:
        return None
    was, now = before.named(after), after.named(before)
    changed = []
    for name in sorted(was.keys() & now.keys()):
        (old, old_code), (new, new_code) = was[name], now[name]
        numbers = changes(_numbers(old), _numbers(new))
        if numbers or old_code != new_code:
            changed.append(KernelChange(name=name, instructions=old_code != new_code, numbers=numbers))
    return CodeDifference(
        target=target,
        before=before.objects.total(),
        after=after.objects.total(),
        same=(before.objects & after.objects).total(),
        removed=tuple(sorted(was.keys() - now.keys())),
        added=tuple(sorted(now.keys() - was.keys())),
        changed=tuple(changed),
    )


def _read(path: Path | None) -> defaultdict[str, _Code]:
    found: defaultdict[str, _Code] = defaultdict(_Code)
    for one, code in read_code(path) if path else ():
        held = found[one.target_id]
        digest = hashlib.sha256(code).hexdigest()
        held.objects[digest] += 1
        if digest not in held.kernels:
            held.kernels[digest] = _kernels(code, f"{one.path} ({one.target_id})")
    return found


def _kernels(code: bytes, subject: str) -> list[tuple[Kernel, str]]:
    """The kernels of one code object, each with the digest of its instructions."""
    if not is_gpu_elf(code):
        return []  # SPIR-V has none yet
    file = CodeFile(code, subject)
    functions = {symbol.name: symbol for symbol in file.symbols if symbol.function}
    found = []
    for kernel in kernels_of(file):
        symbol = functions.get(kernel.symbol.removesuffix(".kd"))
        text = file.bytes_of(symbol, symbol.size) if symbol else b""
        found.append((kernel, hashlib.sha256(text).hexdigest()))
    return found


def _numbers(kernel: Kernel) -> dict[str, int]:
    return {name.replace("_", " "): getattr(kernel, name) for name in NUMBERS}
