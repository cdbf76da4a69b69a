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


def fits(kernel: str, wanted: str) -> bool:
    """Whether a kernel's release is of a version (6.13 holds for 6.13.2 too) or in a range."""
    release = re.match(r"[0-9]+(\.[0-9]+)*", kernel)
    if release is None:
        return False
    words = wanted if wanted[0] in "<>=!~" else f"=={wanted}.*"
    return Version(release[0]) in SpecifierSet(words)


def suspects(found: Diagnosis, facts: HostFacts) -> bool:
    """Whether something is known in a log for which kernel or firmware are blamed."""
    return any(_blames(one, facts) for one in found.known)


def not_of(found: Diagnosis, here: Here) -> str:
    """Why a log is of another machine than this one, or of another time of it; "" where it may be of it."""
    if found.kernel and found.kernel != here.kernel:
        return f"the log is of kernel {found.kernel}, and {here.kernel or 'another'} runs here"
    if found.cards and not set(found.cards) & set(here.firmware):
        return f"the log is of {', '.join(found.cards)}, which is not in this machine"
    return ""


def with_machine(
    found: Diagnosis, here: Here, facts: HostFacts, targets: Mapping[str, Target], cards: Iterable[str] = ()
) -> Diagnosis:
    """The diagnosis with what the machine says for or against each cause that it could be.

    `cards` are those that the log is of; where none are known, all of the machine's count. A cause that is of
    one of them alone is sure then, and goes before the others.
    """
    chosen = tuple(cards) or found.cards or tuple(here.firmware)
    known = [
        one.model_copy(update={"here": tuple(_told(one, here, facts, targets, chosen))})
        if _blames(one, facts)
        else one
        for one in found.known
    ]
    of_these = [not (one.sure or found.success) and bool({*one.issue.targets} & {*chosen}) for one in known]
    sure = [
        one.model_copy(update={"sure": True}) for one, is_so in zip(known, of_these, strict=True) if is_so
    ]
    rest = [one for one, is_so in zip(known, of_these, strict=True) if not is_so]
    return found.model_copy(update={"known": (*sure, *rest)})


def of_log(found: Diagnosis) -> Here:
    """The little that a log itself says of its machine."""
    return Here(kernel=found.kernel, firmware={card: {} for card in found.cards})


def _blames(one: KnownIssue, facts: HostFacts) -> bool:
    named = one.issue.name
    return named in facts.driver.issues or any(named in rule.issues for rule in facts.firmware)


def _told(
    one: KnownIssue, here: Here, facts: HostFacts, targets: Mapping[str, Target], cards: Iterable[str]
) -> Iterator[str]:
    cards = tuple(cards)
    for rule in facts.firmware:
        if one.issue.name in rule.issues:
            for card in cards:
                if card in rule.targets:
                    yield from _firmware(rule, card, here.firmware.get(card, {}))
    if one.issue.name in facts.driver.issues and here.kernel:
        for card in cards:
            if card in targets:
                yield from _kernel(targets[card], here, facts)
    for name, value in here.settings.items():
        if f"{name}={value}" in one.issue.remedy:
            yield f"{name}={value} is set already, and has not helped"


def _firmware(rule: BadFirmware, card: str, blocks: Mapping[str, int]) -> Iterator[str]:
    """Of what cannot be read nothing is said here: the issue's own cause stands."""
    seen = {name: version & rule.mask for name, version in blocks.items() if name in rule.blocks}
    bad = {name: version for name, version in seen.items() if version in rule.bad}
    told = ", ".join(f"{name} {version:#x}" for name, version in (bad or seen).items())
    if bad:
        yield f"it is the firmware: {card} has {told}; {rule.why}"
    elif seen:
        yield f"it is not that firmware: {card} has {told}, which is not known to be bad"


def _kernel(target: Target, here: Here, facts: HostFacts) -> Iterator[str]:
    good, bad = target.host.kernel_ok, target.host.kernel_bad
    vendor = facts.vendor_of(here.kernel)
    apart = f"of {vendor}, with newer changes" if vendor else ""
    if here.driver:
        apart = f"the driver is built apart: {here.driver}"
    works = f"{target.name} works with {', '.join(good)}"
    if any(fits(here.kernel, one) for one in bad):
        told = f" ({apart})" if apart else ""
        yield f"it may be the kernel: {here.kernel} fails with {target.name}{told}"
    elif any(fits(here.kernel, one) for one in good):
        yield f"it is hardly the kernel: {here.kernel}, and {works}"
    elif good and apart:
        yield f"the kernel's number tells little ({here.kernel}, {apart}); {works}"
    elif good:
        yield f"it may be the kernel: {here.kernel}, and {works}"
