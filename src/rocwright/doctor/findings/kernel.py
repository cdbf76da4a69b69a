"""What the kernel was told, and what it tells: settings of its modules, its log, modules built apart."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from rocbase.units import printable
from rocwright.catalog.load import Catalog
from rocwright.diagnosis.diagnose import Diagnosis, FailurePlace, KnownIssue, diagnose
from rocwright.diagnosis.facts import HostFacts
from rocwright.diagnosis.here import Here, with_machine
from rocwright.diagnosis.read_log import pieces
from rocwright.doctor.findings.model import DoctorFinding, Say, found, speaker
from rocwright.machine.model import DkmsModule, Driver, Gpu, Machine

MOST_KNOWN = 6
"""Known issues of the kernel's log that are told, the likeliest first."""

MOST_LINE = 200
"""Characters of a line of a log that are shown."""


def kernel(
    machine: Machine, catalog: Catalog, facts: HostFacts, stacks: tuple[str, ...]
) -> Iterator[DoctorFinding]:
    """Settings, known issues in the kernel's log, DKMS, and Secure Boot where it matters."""
    say = speaker(facts, stacks)
    yield from _settings(machine, facts, stacks)
    yield from _log(machine, catalog, facts, stacks, say)
    for one in machine.dkms:
        yield from _dkms(one, machine, say)
    yield from _secure_boot(machine, say)


def _settings(machine: Machine, facts: HostFacts, stacks: tuple[str, ...]) -> Iterator[DoctorFinding]:
    """Each that the catalog knows with what it does, the others in one line."""
    others = []
    for name, value in machine.driver.settings.items():
        rules = (one for one in facts.parameter if one.name == name)
        rule = next((one for one in rules if any(fnmatchcase(value, glob) for glob in one.values)), None)
        if rule is None:
            others.append(f"{name}={value}")
        else:
            yield found("parameter", rule.grade, f"{name}={printable(value)}", rule, stacks)
    if others:
        yield DoctorFinding(
            name="parameter", grade="ok", what=f"set of modules: {printable(' '.join(others))}"
        )


def _log(
    machine: Machine, catalog: Catalog, facts: HostFacts, stacks: tuple[str, ...], say: Say
) -> Iterator[DoctorFinding]:
    """What the catalog's known issues find in it: the same as in the log of a program."""
    log = machine.kernel_log
    if log is None or not machine.gpus:
        return
    if not log.text:
        yield say("no-kernel-log", "note", f"{log.file} cannot be read as this user")
        return
    known = in_kernel_log(machine, catalog, facts).known
    if not known:
        lines = f"{len(log.text.splitlines()):,}"
        yield DoctorFinding(
            name="kernel-log", grade="ok", what=f"no known issue in {lines} lines of {log.file}"
        )
    for one in known[:MOST_KNOWN]:
        yield _of_log(one, log.file, stacks)


def in_kernel_log(machine: Machine, catalog: Catalog, facts: HostFacts) -> Diagnosis:
    """What is known of a machine's kernel log, for the cards that it has, and what speaks for it there."""
    text = machine.kernel_log.text if machine.kernel_log else ""
    targets = tuple(dict.fromkeys(gpu.target for gpu in machine.gpus if gpu.target))
    found = _searched(text, FailurePlace(targets=targets))
    return with_machine(found, evidence(machine.gpus, machine.driver), facts, catalog.targets, targets)


def _searched(text: str, where: FailurePlace | None = None) -> Diagnosis:
    return diagnose(pieces(io.BytesIO(text.encode(errors="replace"))), where)


def _of_log(one: KnownIssue, file: str, stacks: tuple[str, ...]) -> DoctorFinding:
    return DoctorFinding(
        name="kernel-log",
        grade="note" if one.issue.role == "warns" else "warning",
        what=f"{file}: {one.issue.means} ({one.issue.name}): {printable(one.place.text[:MOST_LINE])}",
        why=" ".join([one.issue.cause, one.issue.remedy, *(f"Here {told}." for told in one.here)]),
        stacks=stacks,
        source="; ".join(one.issue.source),
    )


def _dkms(one: DkmsModule, machine: Machine, say: Say) -> Iterator[DoctorFinding]:
    running, name = machine.driver.kernel, f"{one.module} {one.version}"
    here = running in one.kernels
    if one.failed_text and not here:
        first = _searched(one.failed_text).first
        told = f": {printable(first.text[:MOST_LINE])}" if first else ""
        what = f"dkms did not build {name} for kernel {running}{told}"
        yield say("dkms-failed", "warning", what, path=one.failed_log)
    elif not here:
        for_ = f"for {', '.join(one.kernels)} alone" if one.kernels else "for no kernel"
        yield say("dkms-not-built", "warning", f"dkms has built {name} {for_}, and {running} runs")
    else:
        yield DoctorFinding(name="dkms", grade="ok", what=f"dkms has built {name} for kernel {running}")


def _secure_boot(machine: Machine, say: Say) -> Iterator[DoctorFinding]:
    """It matters to modules that no vendor has signed."""
    apart = [one for one in machine.dkms if machine.driver.kernel in one.kernels]
    if not machine.secure_boot or not apart:
        return
    names = ", ".join(f"{one.module} {one.version}" for one in apart)
    if machine.driver.module:
        yield DoctorFinding(name="secure-boot", grade="ok", what=f"Secure Boot is on, and {names} is loaded")
    else:
        yield say("secure-boot", "error", f"Secure Boot is on, and {names} is not loaded")


def evidence(gpus: Iterable[Gpu], driver: Driver) -> Here:
    """Of the cards that are known; two of one kind have the firmware of the first that tells it."""
    firmware: dict[str, dict[str, int]] = {}
    for gpu in gpus:
        if gpu.target is not None:
            firmware[gpu.target] = {**gpu.firmware, **firmware.get(gpu.target, {})}
    return Here(
        kernel=driver.kernel,
        driver=driver.version,
        firmware=firmware,
        settings=driver.settings,
    )
