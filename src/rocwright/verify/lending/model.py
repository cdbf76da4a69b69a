"""What is wanted of a machine with a card, and what it says: the contents of signed words in a bucket."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rocbase.files.atomic import sha256_bytes
from rocbase.model import Frozen, canonical_json
from rocwheel.version import __version__
from rocwright.diagnosis.machine.model import Machine
from rocwright.model.steps import Sha256
from rocwright.records.model import Finding
from rocwright.store.signed import Time

# What evidence may tell; a suite for a GPU has some 400.
MOST_FINDINGS = 20_000


class VerifyWish(Frozen):
    """A lock, as text, whose artifacts (hex sha256 by component) are to be verified on a `device`: a target,
    or "" for any machine, on its processor."""

    schema_version: int = 1
    rocwright: str = __version__
    lock: str
    artifacts: dict[str, Sha256]
    device: Annotated[str, Field(pattern=r"^(gfx[0-9a-f]{3,5})?$")] = ""

    @property
    def id(self) -> str:
        """The same for the same lock, artifacts, device and version of rocwright, whoever asks."""
        return sha256_bytes(canonical_json(self.model_dump(mode="json")))


class Card(Frozen):
    """Where it ran: the GPU (nothing of it where it ran on the processor), kernel, driver, firmware."""

    target: str = ""
    pci_id: str = ""
    kernel: str = ""
    driver: str = ""
    firmware: dict[str, int] = {}

    @classmethod
    def of(cls, machine: Machine, target: str) -> Card:
        """That of a machine with that target; "" for its processor."""
        kernel = machine.driver.kernel
        gpu = next((candidate for candidate in machine.gpus if target and candidate.target == target), None)
        if gpu is None:
            return cls(kernel=kernel)
        driver = " ".join(part for part in (gpu.driver, machine.driver.version) if part)
        return cls(
            target=target, pci_id=gpu.pci_id, kernel=kernel, driver=driver, firmware=dict(gpu.firmware)
        )

    def __str__(self) -> str:
        firmware = ", ".join(f"{block} {version:#x}" for block, version in sorted(self.firmware.items()))
        parts = (
            f"{self.target} {self.pci_id}".strip() or "no GPU",
            f"kernel {self.kernel}" if self.kernel else "",
            self.driver,
            f"firmware {firmware}" if firmware else "",
        )
        return ", ".join(part for part in parts if part)


class Evidence(Frozen):
    """What a verification found: of what is wanted, by its id, in which run, where, and each finding."""

    schema_version: int = 1
    rocwright: str = __version__
    wanted: Sha256
    run: Annotated[str, Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z.-]{0,63}$")]
    started: Time
    seconds: float = Field(ge=0)
    card: Card
    findings: tuple[Finding, ...] = Field(max_length=MOST_FINDINGS)
