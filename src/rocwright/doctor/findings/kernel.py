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
from rocwright.diagnosis.machine.model import DkmsModule, Driver, Gpu, Machine
from rocwright.diagnosis.read_log import pieces
from rocwright.doctor.findings.model import DoctorFinding, Say, finding_of, speaker

# Known issues of the kernel's log that are told, the likeliest first.
MOST_KNOWN = 6

# Characters of a line of a log that are shown.
MOST_LINE = 200


def kernel(
    machine: Machine, catalog: Catalog, facts: HostFacts, stacks: tuple[str, ...]
) -> Iterator[DoctorFinding]:
    """Settings, known issues in the kernel's log, DKMS, and Secure Boot where it matters."""
    say = speaker(facts, stacks)
    yield from _settings(machine, facts, stacks)
    yield from _log(machine, catalog, facts, stacks, say)
    for dkms in machine.dkms:
        yield from _dkms(dkms, machine, say)
    yield from _secure_boot(machine, say)


def _settings(machine: Machine, facts: HostFacts, stacks: tuple[str, ...]) -> Iterator[DoctorFinding]:
    """Each that the catalog knows with what it does, the others in one line."""
    unruled = []
    for name, value in machine.driver.settings.items():
        rules = (rule for rule in facts.parameter if rule.name == name)
        rule = next((rule for rule in rules if any(fnmatchcase(value, glob) for glob in rule.values)), None)
        if rule is None:
            unruled.append(f"{name}={value}")
        else:
            yield finding_of("parameter", rule.grade, f"{name}={printable(value)}", rule, stacks)
    if unruled:
        yield DoctorFinding(
            name="parameter", grade="ok", what=f"set of modules: {printable(' '.join(unruled))}"
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
    matches = in_kernel_log(machine, catalog, facts).known
    if not matches:
        lines = f"{len(log.text.splitlines()):,}"
        yield DoctorFinding(
            name="kernel-log", grade="ok", what=f"no known issue in {lines} lines of {log.file}"
        )
    for match in matches[:MOST_KNOWN]:
        yield _of_log(match, log.file, stacks)


def in_kernel_log(machine: Machine, catalog: Catalog, facts: HostFacts) -> Diagnosis:
    """What is known of a machine's kernel log, for the cards that it has, and what speaks for it there."""
    text = machine.kernel_log.text if machine.kernel_log else ""
    targets = tuple(dict.fromkeys(gpu.target for gpu in machine.gpus if gpu.target))
    diagnosis = _searched(text, FailurePlace(targets=targets))
    return with_machine(diagnosis, evidence(machine.gpus, machine.driver), facts, catalog.targets, targets)


def _searched(text: str, context: FailurePlace | None = None) -> Diagnosis:
    return diagnose(pieces(io.BytesIO(text.encode(errors="replace"))), context)


def _of_log(match: KnownIssue, file: str, stacks: tuple[str, ...]) -> DoctorFinding:
    return DoctorFinding(
        name="kernel-log",
        grade="note" if match.issue.role == "warns" else "warning",
        what=f"{file}: {match.issue.means} ({match.issue.name}): {printable(match.place.text[:MOST_LINE])}",
        why=" ".join([match.issue.cause, match.issue.remedy, *(f"Here {note}." for note in match.here)]),
        stacks=stacks,
        source="; ".join(match.issue.source),
    )


def _dkms(dkms: DkmsModule, machine: Machine, say: Say) -> Iterator[DoctorFinding]:
    running, name = machine.driver.kernel, f"{dkms.module} {dkms.version}"
    is_built = running in dkms.kernels
    if dkms.failed_text and not is_built:
        first = _searched(dkms.failed_text).first
        error = f": {printable(first.text[:MOST_LINE])}" if first else ""
        message = f"dkms did not build {name} for kernel {running}{error}"
        yield say("dkms-failed", "warning", message, path=dkms.failed_log)
    elif not is_built:
        for_ = f"for {', '.join(dkms.kernels)} alone" if dkms.kernels else "for no kernel"
        yield say("dkms-not-built", "warning", f"dkms has built {name} {for_}, and {running} runs")
    else:
        yield DoctorFinding(name="dkms", grade="ok", what=f"dkms has built {name} for kernel {running}")


def _secure_boot(machine: Machine, say: Say) -> Iterator[DoctorFinding]:
    """It matters to modules that no vendor has signed."""
    apart = [dkms for dkms in machine.dkms if machine.driver.kernel in dkms.kernels]
    if not machine.secure_boot or not apart:
        return
    names = ", ".join(f"{dkms.module} {dkms.version}" for dkms in apart)
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
