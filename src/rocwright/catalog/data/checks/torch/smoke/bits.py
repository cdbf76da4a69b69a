"""Whether an operation gives the same bits each time that it runs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

RAISES = "raises"
"""How a case ends that torch refuses under deterministic algorithms."""

AT_ONCE = 256 << 20
"""Bytes of results that wait on the device, so that kernels are launched without a pause between them."""


@dataclass
class _Seen:
    """What one shape gave: the first result, how many runs there were, and those that differ from it."""

    first: list[Any]
    runs: int = 0
    differ: int = 0
    others: set[str] = field(default_factory=set)


@dataclass
class Bits:
    """What `repeat` runs of a case gave, compared bit by bit with the first of them."""

    torch: Any
    repeat: int
    seed: int = 0
    seen: dict[str, _Seen] = field(default_factory=dict)
    noted: bool = False
    example: str = ""

    def repeated(self, what: str, run: Callable[[], Any]) -> None:
        """Run an operation so many times on the same inputs, and take in what each run gives."""
        waiting: list[list[Any]] = []
        held = 0
        for _ in range(self.repeat):
            self.reseed()
            waiting.append(flat(self.torch, run()))
            held += sum(one.nbytes for one in waiting[-1])
            if held > AT_ONCE:
                self._take_all(what, waiting)
                waiting, held = [], 0
        self._take_all(what, waiting)

    def note(self, what: str, result: Any) -> None:
        """Take in what a case that is no operation has computed: all of it runs again."""
        self.noted = True
        self._take(what, flat(self.torch, result))

    def reseed(self) -> None:
        """Each run draws the same random numbers."""
        self.torch.manual_seed(self.seed)

    def told(self) -> dict[str, Any]:
        """For the parent: how many runs differ from the first (worst shape), and a digest of the first."""
        usual = hashlib.sha256()
        for what, one in sorted(self.seen.items()):
            usual.update(f"{what}={digest(one.first)}\n".encode())
        every = self.seen.values()
        return {
            "runs": max(one.runs for one in every),
            "differ": max(one.differ for one in every),
            "results": max(len(one.others) for one in every) + 1,
            "first": usual.hexdigest(),
            "example": self.example,
        }

    def _take_all(self, what: str, waiting: list[list[Any]]) -> None:
        for one in waiting:
            self._take(what, one)

    def _take(self, what: str, tensors: list[Any]) -> None:
        here = [one.detach().cpu().contiguous() for one in tensors]
        known = self.seen.setdefault(what, _Seen(here))
        known.runs += 1
        if same(self.torch, here, known.first):
            return
        known.differ += 1
        known.others.add(digest(here))
        self.example = self.example or f"{what}: {told_apart(self.torch, known.first, here)}"


def flat(torch: Any, result: Any) -> list[Any]:
    """The tensors of a result, in order; a number counts as one."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (tuple, list)):
        return [tensor for one in result for tensor in flat(torch, one)]
    return [] if result is None else [torch.tensor(result)]


def raw(torch: Any, tensor: Any) -> Any:
    """Its bytes: -0 and 0 are not the same, and a NaN is the same as itself."""
    plain = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return plain.contiguous().reshape(-1).view(torch.uint8)


def same(torch: Any, one: list[Any], other: list[Any]) -> bool:
    """Whether two results have the same types, shapes and bits."""
    return len(one) == len(other) and all(
        a.dtype == b.dtype and a.shape == b.shape and bool(torch.equal(raw(torch, a), raw(torch, b)))
        for a, b in zip(one, other, strict=False)
    )


def digest(tensors: list[Any]) -> str:
    """A hash of types, shapes and bits that two processes can compare."""
    import ctypes

    import torch

    found = hashlib.sha256()
    for one in tensors:
        found.update(f"{one.dtype} {tuple(one.shape)}\n".encode())
        bytes_ = raw(torch, one)
        found.update(ctypes.string_at(bytes_.data_ptr(), bytes_.numel()) if bytes_.numel() else b"")
    return found.hexdigest()


def told_apart(torch: Any, one: list[Any], other: list[Any]) -> str:
    """How many values of two results differ, and the first that does."""
    for a, b in zip(one, other, strict=False):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{a.dtype} {tuple(a.shape)}, then {b.dtype} {tuple(b.shape)}"
        if not a.numel():
            continue
        size = raw(torch, a.reshape(-1)[:1]).numel()
        wrong = (raw(torch, a).reshape(-1, size) != raw(torch, b).reshape(-1, size)).any(1)
        if bool(wrong.any()):
            place = int(wrong.nonzero()[0])
            mine, theirs = (said(t.reshape(-1)[place].item()) for t in (a, b))
            return f"{int(wrong.sum())} of {a.numel()} values, the first {mine} and then {theirs}"
    return f"{len(one)} results, then {len(other)}"


def said(value: Any) -> str:
    """A value with all the digits that tell two of them apart."""
    return f"{value:.17g}" if isinstance(value, (float, complex)) else str(value)
