"""An AMD GPU as a target: what it is, what serves it, and what is known to go wrong with it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rocbase.model import Frozen
from rocwheel.wheels.overrides import Override
from rocwright.model.sizes import Size
from rocwright.model.versions import version_in

Scope = Literal["build", "run"]

PciId = Annotated[str, Field(pattern=r"^1002:[0-9a-f]{4}$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
NonEmpty = Annotated[str, Field(min_length=1)]


class Quirk(Frozen):
    """An environment variable that a target wants while something is built for it, or run on it.

    An `optional` one is for a case that `reason` tells; it is shown, and not set. `{target}` in the value
    stands for the target's name. `recipes` are those whose builds take one of scope `build`: it is set in
    their steps, and a recipe of these that says another value is refused.
    """

    variable: Variable
    value: Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*$")]
    scope: Scope
    need: Literal["required", "recommended", "optional"] = "recommended"
    recipes: tuple[str, ...] = ()
    reason: NonEmpty
    source: NonEmpty
    confidence: str = ""


class RunOnly(Frozen):
    """Variables, as a glob, that may be set where code runs and never where it is built.

    `override` is that among them by which a card passes for another.
    """

    variables: NonEmpty
    override: str = ""
    reason: NonEmpty
    source: NonEmpty


class TheRock(Frozen):
    """TheRock's own word on the target: families, what it leaves out (component -> issue), states on Linux.

    `release` is "release ready" in TheRock's tables, which does not mean tested on this card.
    """

    label: str
    families: tuple[str, ...]
    excluded: dict[str, str] = {}
    build: bool = False
    sanity: bool = False
    release: bool = False


class HostNeeds(Frozen):
    """What the machine around the card needs: kernels as version ranges, and more in words."""

    kernel_ok: tuple[str, ...] = ()
    kernel_bad: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Takes(Frozen):
    """What building for it took others: bytes of memory and disk, hours, jobs at once."""

    memory: Size = 0
    disk: Size = 0
    hours: str = ""
    jobs: int = 0
    note: str = ""


class Refusal(Frozen):
    """Versions of ROCm whose runtime does not open the card, whatever libraries were built for it."""

    rocm: NonEmpty
    reason: NonEmpty
    source: NonEmpty


class Target(Frozen):
    """An AMD GPU processor as LLVM names it, and how the kernel and people name it.

    `kfd_version` is gfx_target_version of the KFD topology, `wave` the wavefront size that compilers take.
    `products` are shown with it, `also` are names that are understood too. `unverified` names facts here that
    nobody has checked.
    """

    name: str
    kfd_version: int
    generation: str
    products: Annotated[tuple[str, ...], Field(min_length=1)]
    also: tuple[str, ...] = ()
    codenames: tuple[str, ...] = ()
    pci_ids: tuple[PciId, ...] = ()
    wave: Literal[0, 32, 64] = 0
    first_rocm: str = ""
    dropped: str = ""
    refused: tuple[Refusal, ...] = ()
    features: dict[str, str] = {}
    failures: tuple[str, ...] = ()
    override: Override | None = None
    quirk: tuple[Quirk, ...] = ()
    therock: TheRock | None = None
    host: HostNeeds = HostNeeds()
    takes: Takes = Takes()
    unverified: tuple[str, ...] = ()
    source: Annotated[tuple[NonEmpty, ...], Field(min_length=1)]

    def refusal(self, rocm: str) -> Refusal | None:
        """Return the reason why the runtime of a version of ROCm does not open it; None if it does."""
        return next((refusal for refusal in self.refused if version_in(rocm, refusal.rocm)), None)

    @property
    def lacks(self) -> dict[str, str]:
        """The features that it has not, with the words of the facts: `no`, `not upstream; ...`."""
        return {
            name: support for name, support in self.features.items() if support.split()[0] in ("no", "not")
        }

    @property
    def families(self) -> tuple[str, ...]:
        """The families that it belongs to, as TheRock names them."""
        return self.therock.families if self.therock else ()
