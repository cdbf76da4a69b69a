"""A wheel, folder or file audited: every code object for one target, judged for another."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rocbase.errors import InputError
from rocwheel.wheels.asked import code_target
from rocwheel.wheels.audit.facts import isas
from rocwheel.wheels.audit.judge import AuditVerdict, Judged, Question, Reason, judge
from rocwheel.wheels.audit.llvm import Disassembler, find_disassembler
from rocwheel.wheels.devicecode.code_objects import CodeObject, Unseen, code_objects, read_code
from rocwheel.wheels.overrides import the_overrides


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """A code object and its kernels, judged."""

    path: str
    index: int | None
    target: str
    size: int
    kernels: tuple[Judged, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What was found: code for `code`, were it run `on` another target, read with `llvm`.

    `unread` says which code was seen and cannot be read: whether some of it is for that target is not known.
    """

    code: str
    on: str
    llvm: Disassembler
    objects: tuple[Audited, ...]
    unread: tuple[str, ...] = ()

    @property
    def counts(self) -> Counter[AuditVerdict]:
        """Kernels by verdict."""
        return Counter(kernel.verdict for audited in self.objects for kernel in audited.kernels)

    @property
    def verdict(self) -> AuditVerdict:
        """Safe only where every kernel is, and all code could be read."""
        counts = self.counts
        if counts[AuditVerdict.NOT_SAFE]:
            return AuditVerdict.NOT_SAFE
        if counts[AuditVerdict.NOT_CHECKED] or not counts[AuditVerdict.SAFE] or self.unread:
            return AuditVerdict.NOT_CHECKED
        return AuditVerdict.SAFE

    @property
    def reasons(self) -> list[tuple[int, Judged, Reason]]:
        """Each kind of reason, worst first: how many kernels have it, and one of them with its own."""
        count: Counter[tuple[AuditVerdict, str]] = Counter()
        first: dict[tuple[AuditVerdict, str], tuple[Judged, Reason]] = {}
        for kernel in (kernel for audited in self.objects for kernel in audited.kernels):
            kinds = {(reason.verdict, reason.kind): reason for reason in reversed(kernel.reasons)}
            count.update(kinds.keys())
            for key, reason in kinds.items():
                first.setdefault(key, (kernel, reason))
        order = sorted(count, key=lambda key: (key[0] is not AuditVerdict.NOT_SAFE, -count[key], key))
        return [(count[key], *first[key]) for key in order]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The variable and value that make a card pass for another, and what is known of cards that tried.

    `value` is "" where none is known.
    """

    variable: str
    value: str
    tried: tuple[str, ...]
    warning: str


def advice(code: str, device: str) -> Advice:
    """What would make a card of the target `device` take code for `code`, as far as is known."""
    overrides = the_overrides()
    passes_for, device_override = overrides.by_target.get(_name(code)), overrides.by_target.get(_name(device))
    return Advice(
        variable=overrides.variable,
        value=passes_for.identity if passes_for else "",
        tried=device_override.values if device_override else (),
        warning=device_override.warning if device_override else "",
    )


def audit_override(
    path: Path,
    code: str,
    device: str,
    *,
    llvm: Path | None = None,
    tell: Callable[[int, int], object] = lambda completed, total: None,
) -> AuditReport:
    """Judge every kernel for the target `code` in `path` as if it ran on the target `device`.

    Both may be any name of a GPU, and have modes: gfx90a:xnack-. `llvm` is the folder of LLVM's tools, else
    the newest here that knows both. `tell` hears how many code objects are done, of how many. Raises
    InputError where a target is not known, there is no code for it or no LLVM; CheckError where `path` is
    damaged.
    """
    code, device = _known_target(code), _known_target(device)
    disassembler = find_disassembler([_name(code), _name(device)], llvm)
    unseen = Unseen()
    listed = code_objects(path, unseen=unseen)
    total = sum(_is_for(code_object, code) for code_object in listed)
    if total == 0:
        raise _no_code(path, code, listed, unseen.reasons)
    question = Question(code=_name(code), on=_name(device), modes=frozenset(device.split(":")[1:]))
    judged: dict[bytes, tuple[Judged, ...]] = {}
    objects: list[Audited] = []
    for code_object, content in read_code(path, lambda code_object: _is_for(code_object, code)):
        tell(len(objects), total)
        digest = hashlib.sha256(content).digest()
        if digest not in judged:
            judged[digest] = tuple(judge(content, question, disassembler, _place(code_object)))
        objects.append(
            Audited(
                path=code_object.path,
                index=code_object.index,
                target=code_object.target_id,
                size=code_object.size,
                kernels=judged[digest],
            )
        )
    tell(total, total)
    return AuditReport(
        code=code, on=device, llvm=disassembler, objects=tuple(objects), unread=tuple(unseen.reasons)
    )


def _is_for(code_object: CodeObject, code: str) -> bool:
    """Whether a code object is for a target; without modes, in any mode."""
    modes = set(code.split(":")[1:])
    return code_object.target == _name(code) and modes.issubset(code_object.features)


def _place(code_object: CodeObject) -> str:
    return (
        code_object.path if code_object.index is None else f"{code_object.path}, bundle {code_object.index}"
    )


def _name(target: str) -> str:
    return target.partition(":")[0]


def _known_target(name: str) -> str:
    processors = isas()
    target = name if _name(name) in processors else code_target(name)
    if _name(target) not in processors:
        raise InputError(
            f"the machine code of {target} is not known",
            cause=f"known: {', '.join(processors)}",
            next_step="check the name, or add it with tools/isas.py (see CONTRIBUTING.md)",
        )
    return target


def _no_code(path: Path, code: str, listed: Sequence[CodeObject], unseen: Sequence[str]) -> InputError:
    targets = sorted({code_object.target_id for code_object in listed})
    if unseen:
        return InputError(
            f"{path.name} holds no code for {code} that can be read",
            cause="it has GPU code that cannot be read, or that is in kpack archives which are not here"
            + (f"; what can be read is for {', '.join(targets)}" if targets else ""),
            next_step="give a folder or environment that has the archives too, or report what cannot be read",
            detail="\n".join(unseen),
            subject=str(path),
        )
    return InputError(
        f"{path.name} holds no code for {code}",
        cause=f"it holds code for {', '.join(targets)}" if targets else "it holds no GPU code",
        next_step="name one of these with --code" if targets else "check that it is the right file",
        subject=str(path),
    )
