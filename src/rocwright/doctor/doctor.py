"""Is this machine fit for a stack? What is known of it, what is not right, and what it can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from rocbase.errors import DiskError, ExplainedError, OutOfDiskError
from rocbase.model import Frozen
from rocwright.catalog.load import Catalog
from rocwright.config import store_of
from rocwright.diagnosis.facts import Grade, HostFacts
from rocwright.diagnosis.machine.model import Machine
from rocwright.doctor.able import Able, able, targets_here
from rocwright.doctor.findings.devices import devices
from rocwright.doctor.findings.driver import driver
from rocwright.doctor.findings.kernel import kernel
from rocwright.doctor.findings.model import ORDER, DoctorFinding
from rocwright.doctor.findings.programs import programs
from rocwright.doctor.findings.room import room
from rocwright.doctor.findings.surroundings import surroundings
from rocwright.doctor.needs import need_of
from rocwright.home import Home
from rocwright.plan.resolve.evidence import shipped_evidence
from rocwright.plan.resolve.gpus import table_of
from rocwright.records.model import Cell
from rocwright.verify.standing import local_cells, local_evidence


class DoctorReport(Frozen):
    """What was read, what was found in it, the worst first, and what the machine can do.

    `live` says that it is this machine, and not one whose files lie in a folder.
    """

    machine: Machine
    findings: tuple[DoctorFinding, ...]
    able: tuple[Able, ...] = ()
    live: Annotated[bool, Field(exclude=True)] = False

    @property
    def worst(self) -> Grade:
        return self.findings[0].grade if self.findings else "ok"


def engines_here(home: Home) -> dict[str, str]:
    """Each sandbox engine that isolates, tried: why it does not work here, or ""."""
    from rocwright import sandbox

    isolating = tuple(engine for engine in sandbox.ENGINES.values() if engine.isolates)
    probes = sandbox.probe_all(home.probes, isolating)
    return {probe.engine: "" if probe.ok else probe.reason or "no" for probe in probes}


def examine(
    machine: Machine, catalog: Catalog, facts: HostFacts, stacks: Sequence[str], home: Home | None = None
) -> DoctorReport:
    """What is not right with a machine for these stacks, and which of them it can do.

    With `home`, what was built on this machine before counts too.
    """
    names = tuple(stacks)
    targets = targets_here(machine, catalog) or (table_of(catalog).fallback,)
    needs = {
        (target, name): need_of(machine, catalog, name, target, home) for target in targets for name in names
    }
    # of several GPUs, the one for which a stack needs most
    largest = {need.stack: need for need in sorted(needs.values(), key=lambda need: need.disk)}
    findings = [
        *devices(machine, facts, names),
        *driver(machine, catalog, facts, names),
        *kernel(machine, catalog, facts, names),
        *room(machine, facts, tuple(largest[name] for name in names)),
        *surroundings(machine, catalog, facts, names),
        *(programs(catalog, facts, names, home) if home else ()),
    ]
    cells: list[Cell] = []
    try:
        if home:
            store_of(home)
    except (OutOfDiskError, DiskError) as error:
        findings.append(
            DoctorFinding(
                name="disk", grade="error", what=error.message, why=error.cause, remedy=error.next_step
            )
        )
    try:
        cells = local_cells(home) if home else []
    except ExplainedError as error:
        reason = f"{error.cause}: earlier builds on this machine are not counted below"
        findings.append(
            DoctorFinding(
                name="records",
                grade="warning",
                what=error.message,
                why=reason,
                remedy="rocwright records check",
            )
        )
    findings.sort(key=lambda finding: ORDER.index(finding.grade))
    observed = [*shipped_evidence(catalog), *(local_evidence(home, cells) if home else ())]
    return DoctorReport(
        machine=machine,
        findings=tuple(findings),
        able=able(machine, catalog, names, observed, cells, needs),
    )
