"""What a suite consists of: cases, what they are given, and how they may end."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from smoke.bits import Bits

SIZES = ("small", "normal", "large")
"""How much is tried: what a CPU does in a minute, what a card is asked to show, shapes that fill a card."""


class WrongError(Exception):
    """A result that is not what it must be; without a cause of its own, the device computed it wrongly."""

    def __init__(
        self,
        detail: str,
        *,
        error: float | None = None,
        tolerance: float | None = None,
        cause: str = "",
        next_step: str = "",
    ) -> None:
        super().__init__(detail)
        self.error, self.tolerance = error, tolerance
        self.cause, self.next_step = cause, next_step


class AbsentError(Exception):
    """What the case would try is not there: neither right nor wrong."""


@dataclass(frozen=True)
class Told:
    """What a case says that went well: a detail for people, the worst error, and what was allowed."""

    detail: str
    error: float | None = None
    tolerance: float | None = None


@dataclass(frozen=True)
class Context:
    """What a case is given. `lacks` maps what its target has not to the reason; `bits` takes in results where
    it is repeated to see whether they stay the same."""

    torch: Any
    device: Any
    size: str = "normal"
    seed: int = 0
    targets: tuple[str, ...] = ()
    lacks: Mapping[str, str] = field(default_factory=dict)
    bits: Bits | None = None

    def note(self, what: str, result: Any) -> None:
        """Tell of a result whose bits must stay the same from run to run."""
        if self.bits is not None:
            self.bits.note(what, result)

    @property
    def on_gpu(self) -> bool:
        return bool(self.device.type != "cpu")

    def fits(self, least: str) -> bool:
        """Whether what is for the size `least` and larger is tried."""
        return SIZES.index(self.size) >= SIZES.index(least)

    def generator(self, label: str) -> Any:
        """A generator of the CPU whose numbers depend on the label and the seed alone."""
        return self.torch.Generator().manual_seed(zlib.crc32(label.encode()) + self.seed)

    def dtype(self, name: str) -> Any:
        """The torch type of a name of tolerance.TYPES."""
        torch = self.torch
        return {
            "fp64": torch.float64,
            "fp32": torch.float32,
            "fp16": torch.float16,
            "bf16": torch.bfloat16,
        }[name]

    def wait(self) -> None:
        """Return when the device has done what was asked of it; errors of its kernels are raised here."""
        if self.on_gpu:
            self.torch.cuda.synchronize(self.device)


@dataclass(frozen=True)
class Case:
    """One thing to try. Its full name, `group/name`, is the same in every run."""

    group: str
    name: str
    run: Callable[[Context], Told]

    @property
    def full_name(self) -> str:
        return f"{self.group}/{self.name}"
