"""Whether kernel, firmware, bus and graphics memory are such as the cards are known to work with."""

from __future__ import annotations

from collections.abc import Iterator

from rocbase.units import size
from rocwright.catalog.load import Catalog
from rocwright.diagnosis.facts import HostFacts
from rocwright.diagnosis.here import fits
from rocwright.diagnosis.machine.model import Gpu, Machine
from rocwright.doctor.findings.devices import named
from rocwright.doctor.findings.model import DoctorFinding, Say, finding_of, speaker

# GTT of so much of the memory, or less, is the kernel's own choice, which is the half.
HALF = 0.55


def driver(
    machine: Machine, catalog: Catalog, facts: HostFacts, stacks: tuple[str, ...]
) -> Iterator[DoctorFinding]:
    """What is known of these cards with this kernel, this firmware and these settings."""
    say = speaker(facts, stacks)
    for gpu in machine.gpus:
        yield from _kernel(gpu, machine, catalog, facts, say)
        yield from _firmware(gpu, facts, stacks, say)
        yield from _link(gpu, catalog, facts, stacks)
        if gpu.shared:
            yield from _graphics_memory(gpu, machine, facts, stacks, say)
    if machine.iommu and machine.gpus:
        yield say("iommu", "note", f"IOMMU in use: {', '.join(machine.iommu)}")


def _kernel(
    gpu: Gpu, machine: Machine, catalog: Catalog, facts: HostFacts, say: Say
) -> Iterator[DoctorFinding]:
    """A number tells little of a kernel with changes of newer ones, or of a driver that is built apart."""
    target, kernel = catalog.targets.get(gpu.target or ""), machine.driver.kernel
    if target is None or not kernel:
        return
    good, bad = target.host.kernel_ok, target.host.kernel_bad
    fails = any(fits(kernel, release) for release in bad)
    unknown = bool(good) and not any(fits(kernel, release) for release in good)
    apart = _apart(machine, facts)
    if apart and (fails or unknown):
        message = f"kernel {kernel}, {apart}; {named(gpu)} works with {', '.join(good)}"
        yield say("kernel-vendor", "warning" if fails else "note", message)
    elif fails:
        yield say("kernel-bad", "error", f"kernel {kernel} fails with {named(gpu)}; good: {', '.join(good)}")
    elif unknown:
        yield say("kernel-unknown", "warning", f"kernel {kernel}; {named(gpu)} works with {', '.join(good)}")
    else:
        verdict = "is known to work with it" if good else "no kernel is known to fail with it"
        yield DoctorFinding(name="kernel", grade="ok", what=f"kernel {kernel}; {named(gpu)}: {verdict}")


def _apart(machine: Machine, facts: HostFacts) -> str:
    """Why the driver is not that of the kernel's number, or ""."""
    if machine.driver.version:
        return f"with a driver built apart ({facts.driver.module} {machine.driver.version})"
    vendor = facts.vendor_of(machine.driver.kernel)
    return f"a kernel of {vendor}" if vendor else ""


def _firmware(gpu: Gpu, facts: HostFacts, stacks: tuple[str, ...], say: Say) -> Iterator[DoctorFinding]:
    for rule in facts.firmware:
        if gpu.target not in rule.targets:
            continue
        versions = {name: version for name, version in gpu.firmware.items() if name in rule.blocks}
        bad = {name: version for name, version in versions.items() if version & rule.mask in rule.bad}
        text = ", ".join(f"{name} {version & rule.mask:#x}" for name, version in (bad or versions).items())
        if bad:
            yield finding_of("firmware", "error", f"{named(gpu)} has firmware {text}", rule, stacks)
        elif versions:
            yield DoctorFinding(name="firmware", grade="ok", what=f"{named(gpu)} has firmware {text}")
        else:
            blocks = ", ".join(rule.blocks)
            yield say("firmware-unknown", "note", f"{named(gpu)}: the version of {blocks} cannot be read")


def _link(gpu: Gpu, catalog: Catalog, facts: HostFacts, stacks: tuple[str, ...]) -> Iterator[DoctorFinding]:
    target = catalog.targets.get(gpu.target or "")
    for rule in facts.link:
        if target is None or target.features.get(rule.feature) != rule.needed:
            continue
        match gpu.atomics:
            case "yes":
                yield DoctorFinding(name="link", grade="ok", what=f"{named(gpu)} has {rule.feature}")
            case "no":
                yield finding_of(
                    "link", "error", f"{named(gpu)} needs {rule.feature}, and has none", rule, stacks
                )
            case "unknown":
                message = (
                    f"{named(gpu)} needs {rule.feature}; whether it has them cannot be read as this user"
                )
                yield finding_of("link", "note", message, rule, stacks)


def _graphics_memory(
    gpu: Gpu, machine: Machine, facts: HostFacts, stacks: tuple[str, ...], say: Say
) -> Iterator[DoctorFinding]:
    limit, memory, shares = machine.page_limit, machine.memory, facts.shares_memory
    if gpu.gtt is None or memory is None:
        return
    pages = max(0, memory.total - shares.keep) // shares.page
    module = limit.module if limit else shares.modules[0]
    message = f"{named(gpu)} reaches {size(gpu.gtt)} of {size(memory.total)}"
    short = [want for want in facts.wants if want.stack in stacks and want.memory > gpu.gtt + (gpu.vram or 0)]
    if short:
        demand = ", ".join(f"{want.stack} ({size(want.memory)}: {want.why})" for want in short)
        yield say("graphics-memory", "note", f"{message}; wanted by {demand}", module=module, pages=pages)
    elif gpu.gtt <= memory.total * HALF:
        yield say("graphics-memory", "note", message, module=module, pages=pages)
    else:
        yield DoctorFinding(name="graphics-memory", grade="ok", what=message)
    bound = limit.pages_limit * shares.page if limit and limit.pages_limit else 0
    if bound and bound < gpu.gtt - (gpu.gtt >> 6):
        bound_message = f"{module}.pages_limit allows {size(bound)}, and GTT has {size(gpu.gtt)}"
        yield say("page-limit", "warning", bound_message, module=module, pages=gpu.gtt // shares.page)
