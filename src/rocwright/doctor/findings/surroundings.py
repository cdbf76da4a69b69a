"""What of the user's surroundings gets into builds and programs, or keeps sandboxes from working."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from fnmatch import fnmatchcase

from rocwright.catalog.load import Catalog
from rocwright.diagnosis.facts import HostFacts
from rocwright.diagnosis.machine.model import Machine
from rocwright.doctor.findings.model import DoctorFinding, finding_of, speaker


def surroundings(
    machine: Machine, catalog: Catalog, facts: HostFacts, stacks: tuple[str, ...]
) -> Iterator[DoctorFinding]:
    """Settings of the kernel, engines, variables, configuration, folders, leftovers, and what is unknown."""
    say = speaker(facts, stacks)
    for setting in facts.setting:
        number = machine.settings.get(setting.file)
        if number in setting.bad and machine.user.uid != 0:
            yield finding_of("setting", setting.grade, f"{setting.file} is {number}", setting, stacks)
    if not machine.sub_ids:
        message = f"{machine.user.name} has no range in /etc/subuid or /etc/subgid"
        yield say("sub-ids", "error", message, user=machine.user.name)
    yield from _engines(machine, facts, stacks)
    own = _identities(machine, catalog)
    for name, value in machine.variables.items():
        for leak in facts.leak:
            if not fnmatchcase(name, leak.variable) or not fnmatchcase(value, leak.value):
                continue
            if name.startswith(catalog.override_variable) and value in own:
                message = (
                    f"{name}={value}, which is {own[value]}'s own identity: the card does not pose as another"
                )
                yield finding_of("variable", "note", message, leak, stacks, variable=name)
            else:
                yield finding_of("variable", leak.grade, f"{name}={value}", leak, stacks, variable=name)
    for place, value in machine.configured.items():
        file, key = place.rsplit(": ", 1)
        for rule in facts.configured:
            if key.replace("_", "-") in rule.keys and file.endswith(
                tuple(suffix.lstrip("~") for suffix in rule.files)
            ):
                yield finding_of("configured", rule.grade, f"{place} = {value}", rule, stacks)
                break
    for folder in facts.folder:
        if folder.path in machine.folders:
            yield finding_of("folder", "note", f"there is a {folder.path}", folder, stacks)
    for path in machine.leftovers:
        yield say("leftover", "warning", f"{path} is a FIFO without a reader", path=shlex.quote(path))
    for unread in machine.unread:
        yield say("unread", "note", f"{unread.path}: {unread.why}")


def _identities(machine: Machine, catalog: Catalog) -> dict[str, str]:
    """The value of the override that changes nothing -> the GPU here that it is of."""
    targets = (catalog.targets.get(gpu.target or "") for gpu in machine.gpus)
    return {target.override.identity: target.name for target in targets if target and target.override}


def _engines(machine: Machine, facts: HostFacts, stacks: tuple[str, ...]) -> Iterator[DoctorFinding]:
    """Nothing where they were not tried."""
    if machine.engines is None:
        return
    working = [name for name, reason in machine.engines.items() if not reason]
    if working:
        yield DoctorFinding(name="engine", grade="ok", what=f"sandboxes that work: {', '.join(working)}")
        return
    reasons = "; ".join(f"{name}: {reason}" for name, reason in machine.engines.items())
    yield speaker(facts, stacks)("engine", "error", f"no sandbox works ({reasons})")
