"""What a machine says of itself, held against known issues that blame its kernel or its firmware."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rocbase.model import Frozen
from rocwright.catalog.target import Target
from rocwright.diagnosis.diagnose import Diagnosis, KnownIssue
from rocwright.diagnosis.facts import BadFirmware, HostFacts


class Here(Frozen):
    """The machine that a log is of: its kernel's release, the version of a driver built apart (""), firmware
    by target and block, and the settings of its modules."""

    kernel: str = ""
    driver: str = ""
    firmware: dict[str, dict[str, int]] = {}
    settings: dict[str, str] = {}


def fits(kernel: str, versions: str) -> bool:
    """Whether a kernel's release is of a version (6.13 holds for 6.13.2 too) or in a range."""
    release = re.match(r"[0-9]+(\.[0-9]+)*", kernel)
    if release is None:
        return False
    words = versions if versions[0] in "<>=!~" else f"=={versions}.*"
    return Version(release[0]) in SpecifierSet(words)


def suspects(diagnosis: Diagnosis, facts: HostFacts) -> bool:
    """Whether something is known in a log for which kernel or firmware are blamed."""
    return any(_blames(match, facts) for match in diagnosis.known)


def not_of(diagnosis: Diagnosis, machine: Here) -> str:
    """Why a log is of another machine than this one, or of another time of it; "" where it may be of it."""
    if diagnosis.kernel and diagnosis.kernel != machine.kernel:
        return f"the log is of kernel {diagnosis.kernel}, and {machine.kernel or 'another'} runs here"
    if diagnosis.cards and not set(diagnosis.cards) & set(machine.firmware):
        return f"the log is of {', '.join(diagnosis.cards)}, which is not in this machine"
    return ""


def with_machine(
    diagnosis: Diagnosis,
    machine: Here,
    facts: HostFacts,
    targets: Mapping[str, Target],
    cards: Iterable[str] = (),
) -> Diagnosis:
    """The diagnosis with what the machine says for or against each cause that it could be.

    `cards` are those that the log is of; where none are known, all of the machine's count. A cause that is of
    one of them alone is sure then, and goes before the others.
    """
    chosen = tuple(cards) or diagnosis.cards or tuple(machine.firmware)
    matches = [
        match.model_copy(update={"here": tuple(_machine_notes(match, machine, facts, targets, chosen))})
        if _blames(match, facts)
        else match
        for match in diagnosis.known
    ]
    of_these = [
        not (match.sure or diagnosis.success) and bool({*match.issue.targets} & {*chosen})
        for match in matches
    ]
    sure = [
        match.model_copy(update={"sure": True})
        for match, is_so in zip(matches, of_these, strict=True)
        if is_so
    ]
    remaining = [match for match, is_so in zip(matches, of_these, strict=True) if not is_so]
    return diagnosis.model_copy(update={"known": (*sure, *remaining)})


def of_log(diagnosis: Diagnosis) -> Here:
    """The little that a log itself says of its machine."""
    return Here(kernel=diagnosis.kernel, firmware={card: {} for card in diagnosis.cards})


def _blames(match: KnownIssue, facts: HostFacts) -> bool:
    named = match.issue.name
    return named in facts.driver.issues or any(named in rule.issues for rule in facts.firmware)


def _machine_notes(
    match: KnownIssue, machine: Here, facts: HostFacts, targets: Mapping[str, Target], cards: Iterable[str]
) -> Iterator[str]:
    cards = tuple(cards)
    for rule in facts.firmware:
        if match.issue.name in rule.issues:
            for card in cards:
                if card in rule.targets:
                    yield from _firmware(rule, card, machine.firmware.get(card, {}))
    if match.issue.name in facts.driver.issues and machine.kernel:
        for card in cards:
            if card in targets:
                yield from _kernel(targets[card], machine, facts)
    for name, value in machine.settings.items():
        if f"{name}={value}" in match.issue.remedy:
            yield f"{name}={value} is set already, and has not helped"


def _firmware(rule: BadFirmware, card: str, blocks: Mapping[str, int]) -> Iterator[str]:
    """Of what cannot be read nothing is said here: the issue's own cause stands."""
    versions = {name: version & rule.mask for name, version in blocks.items() if name in rule.blocks}
    bad = {name: version for name, version in versions.items() if version in rule.bad}
    text = ", ".join(f"{name} {version:#x}" for name, version in (bad or versions).items())
    if bad:
        yield f"it is the firmware: {card} has {text}; {rule.why}"
    elif versions:
        yield f"it is not that firmware: {card} has {text}, which is not known to be bad"


def _kernel(target: Target, machine: Here, facts: HostFacts) -> Iterator[str]:
    good, bad = target.host.kernel_ok, target.host.kernel_bad
    vendor = facts.vendor_of(machine.kernel)
    apart = f"of {vendor}, with newer changes" if vendor else ""
    if machine.driver:
        apart = f"the driver is built apart: {machine.driver}"
    works = f"{target.name} works with {', '.join(good)}"
    if any(fits(machine.kernel, release) for release in bad):
        note = f" ({apart})" if apart else ""
        yield f"it may be the kernel: {machine.kernel} fails with {target.name}{note}"
    elif any(fits(machine.kernel, release) for release in good):
        yield f"it is hardly the kernel: {machine.kernel}, and {works}"
    elif good and apart:
        yield f"the kernel's number tells little ({machine.kernel}, {apart}); {works}"
    elif good:
        yield f"it may be the kernel: {machine.kernel}, and {works}"
