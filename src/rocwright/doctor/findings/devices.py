"""Whether the GPUs are there, driven, and may be used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rocwright.diagnosis.facts import HostFacts
from rocwright.diagnosis.machine.model import Gpu, Machine, Right
from rocwright.diagnosis.machine.rights import COMPUTE, GRAPHICS
from rocwright.doctor.findings.model import DoctorFinding, Say, speaker


def named(gpu: Gpu) -> str:
    """A GPU for people."""
    place = f" at {gpu.address}" if gpu.address else ""
    return f"{gpu.target or 'an AMD GPU of no known target'} ({gpu.pci_id}{place})"


def devices(machine: Machine, facts: HostFacts, stacks: tuple[str, ...]) -> Iterator[DoctorFinding]:
    """Presence, driver, topology, rights."""

    say = speaker(facts, stacks)
    if not machine.gpus:
        vendors = ", ".join(
            f"{gpu.pci_id}{f' ({gpu.driver})' if gpu.driver else ''}" for gpu in machine.others
        )
        message = f"; others: {vendors}" if vendors else ""
        if machine.emulator:
            message += f"; this process runs in an emulator ({machine.emulator}), whose GPUs do not count"
        yield say("no-gpu", "note", f"no AMD GPU{message}")
        return
    for gpu in machine.gpus:
        yield from _gpu(gpu, machine, say)
    if len(machine.gpus) > 1:
        message = f"{len(machine.gpus)} AMD GPUs: {', '.join(map(named, machine.gpus))}"
        yield say("several-gpus", "note", message, number=_number(machine.gpus))
    topology = machine.topology
    if topology.partial:
        numbers = ", ".join(map(str, topology.partial))
        yield say(
            "half-topology",
            "error",
            f"{topology.nodes} nodes in the topology, but without their properties: {numbers}",
        )
    yield from _rights(machine, say)


def _number(gpus: Sequence[Gpu]) -> int:
    """The place of the strongest GPU in the compute driver's order."""
    ordered = sorted((gpu for gpu in gpus if gpu.node is not None), key=lambda gpu: gpu.node or 0)
    return max(range(len(ordered)), key=lambda place: ordered[place].simds, default=0)


def _gpu(gpu: Gpu, machine: Machine, say: Say) -> Iterator[DoctorFinding]:
    if gpu.target is None:
        yield say("unknown-gpu", "warning", f"{named(gpu)}: not in the catalog", pci=gpu.pci_id)
    if not gpu.driver and gpu.node is None:
        loaded = "" if machine.driver.module else "; the module is not loaded"
        yield say("not-driven", "error", f"{named(gpu)} has no driver{loaded}")
    elif gpu.node is None and machine.topology.there:
        yield say("not-in-topology", "error", f"{named(gpu)} is not in the compute driver's topology")


def _rights(machine: Machine, say: Say) -> Iterator[DoctorFinding]:
    compute = next(right for right in machine.rights if right.path == COMPUTE)
    if not compute.there:
        yield say("no-kfd", "error", f"there is no {COMPUTE}")
    renders = {f"{GRAPHICS}/{gpu.render}" for gpu in machine.gpus if gpu.render}
    needed = [
        right for right in machine.rights if right.there and (right.path == COMPUTE or right.path in renders)
    ]
    closed = [right for right in needed if not right.may]
    if not closed and needed:
        yield DoctorFinding(
            name="rights", grade="ok", what=f"{', '.join(right.path for right in needed)} can be used"
        )
    groups = {right.group for right in closed if right.group is not None}
    if closed:
        message = ", ".join(
            f"{right.path} (group {_group_name(right)}, mode {right.mode:o})" for right in closed
        )
        nobodys = (0, machine.nobodys_group)
        names = ",".join(sorted({group.name for group in groups if group.name and group.gid not in nobodys}))
        fits = bool(names) and all(right.mode >> 3 & 6 == 6 for right in closed)
        finding = say("rights", "error", f"you may not use {message}", groups=names, user=machine.user.name)
        yield finding if fits else finding.model_copy(update={"remedy": "", "safe": False})
    unmapped = machine.nobodys_group
    if machine.container is not None and unmapped in {group.gid for group in groups}:
        message = f"{', '.join(right.path for right in closed)}: this container maps no group to theirs"
        engine = f" ({machine.container.engine}{', rootless' if machine.container.rootless else ''})"
        yield say("unmapped-group", "error", f"{message}{engine}")
        groups = {group for group in groups if group.gid != unmapped}
    nameless = sorted({group.gid for group in groups if not group.name})
    if nameless:
        gids = " ".join(map(str, nameless))
        yield say("nameless-group", "warning", f"no group here has the number {gids}", gids=gids)


def _group_name(right: Right) -> str:
    assert right.group is not None
    return f"{right.group.gid}{f' {right.group.name}' if right.group.name else ''}"
