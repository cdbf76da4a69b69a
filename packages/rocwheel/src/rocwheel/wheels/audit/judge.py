"""One code object judged: each of its kernels is safe, not safe, or not checked, with the reasons."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rocbase.errors import CheckError
from rocwheel.wheels.audit.facts import Concern, concerns, isas, table
from rocwheel.wheels.audit.limits import excesses, may_want_more_lds
from rocwheel.wheels.audit.listing import Comparison, Function
from rocwheel.wheels.audit.llvm import Disassembler, check_listing
from rocwheel.wheels.devicecode.code_object import CodeFile
from rocwheel.wheels.devicecode.kernels import Kernel, kernels_of

MOST_FUNCTIONS = 200_000
"""More in one code object is none that a compiler wrote."""


class AuditVerdict(StrEnum):
    """What is known of a kernel; `SAFE` only where everything could be checked."""

    SAFE = "safe"
    NOT_SAFE = "not safe"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a kernel is not safe, or not checked: the kind of reason, for counting, and all of it in words."""

    verdict: AuditVerdict
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A kernel and what is known of it; `name` is "" for what concerns a code object as a whole."""

    name: str
    verdict: AuditVerdict
    reasons: tuple[Reason, ...]
    instructions: int = 0
    differing: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Is code for the processor `code` valid on `on`, whose modes (xnack-, sramecc+) are fixed by `modes`?"""

    code: str
    on: str
    modes: frozenset[str] = frozenset()


def judge(code: bytes, question: Question, disassembler: Disassembler, subject: str) -> list[Judged]:
    """Every kernel of a code object; one nameless entry where there is none, or the object is not sound.

    Raises CheckError or InputError where the disassembler itself does not work.
    """
    try:
        file = CodeFile(code, subject)
        kernels = kernels_of(file)
    except CheckError as error:
        return [_unchecked("damaged", error.message)]
    if strange := _strange(file):
        return [_unchecked("damaged", strange)]
    if not kernels:
        return [_unchecked("no kernels", "it names no kernels")]
    starts = _starts(file, kernels)
    watched = concerns(question.code, question.on)
    comparison = Comparison(starts, [concern for concern in watched if not concern.always], table().flow)
    try:
        _compare(code, question, disassembler, comparison, subject)
    except CheckError as error:
        return [_unchecked("not read", error.message)]
    general = [*_of_modes(file, question), *_of_features(watched)]
    called = [*_of_calls(_not_kernels(comparison, kernels), watched)]
    return [_judged(kernel, question, comparison, called, general) for kernel in kernels]


def _strange(file: CodeFile) -> str:
    """What could make a disassembler show other code than is run; "" in a sound file."""
    if name := next((symbol.name for symbol in file.symbols if not symbol.name.isprintable()), ""):
        return f"a symbol's name has unprintable characters: {name[:100]!r}"
    if sum(symbol.function for symbol in file.symbols) > MOST_FUNCTIONS:
        return f"it claims more than {MOST_FUNCTIONS:,} functions"
    for section in file.sections:
        if file.holds_code(section) and section.size and not file.is_loaded_as_shown(section):
            return f"the loader maps other bytes than its section {section.name[:100]!r} shows"
    return ""


def _compare(
    code: bytes, question: Question, disassembler: Disassembler, comparison: Comparison, subject: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "code"
        path.write_bytes(code)
        with (
            disassembler.listing(path, question.code) as ours,
            disassembler.listing(path, question.on) as theirs,
        ):
            comparison.read(ours.output, theirs.output)
            for reading in (ours, theirs):
                check_listing(reading.finish(), subject)


def _starts(file: CodeFile, kernels: Sequence[Kernel]) -> list[tuple[int, str]]:
    """Where functions begin, and their names."""
    entries = [(kernel.descriptor.entry, kernel.name) for kernel in kernels if kernel.descriptor is not None]
    functions = [
        (symbol.address, symbol.name)
        for symbol in file.symbols
        if symbol.function and file.holds_code(file.sections[symbol.section])
    ]
    return [*entries, *functions]


def _not_kernels(comparison: Comparison, kernels: Sequence[Kernel]) -> list[Function]:
    """What a kernel may come to that leaves its own code: every function with code but the kernels."""
    entries = {kernel.descriptor.entry for kernel in kernels if kernel.descriptor is not None}
    return [
        function
        for function in comparison.functions
        if function.start not in entries and _holds_anything(function)
    ]


def _holds_anything(function: Function) -> bool:
    return bool(function.instructions or function.undecoded or function.start >= 0)


def _judged(
    kernel: Kernel,
    question: Question,
    comparison: Comparison,
    called: Sequence[Reason],
    general: Sequence[Reason],
) -> Judged:
    descriptor = kernel.descriptor
    if descriptor is None:
        return _unchecked("no descriptor", "it has no descriptor: the code was not linked", kernel.name)
    function = comparison.function_at(descriptor.entry)
    reasons = [*_of_code(function, comparison.concerns), *general]
    if function.leaves:
        reasons += called
    code, device = isas()[question.code], isas()[question.on]
    reasons += (
        _unsafe("resources", text) for text in excesses(kernel, descriptor, code, device, question.on)
    )
    if may_want_more_lds(kernel, code, device):
        text = f"it may ask for more LDS at launch than {question.on} has ({device.lds:,} bytes)"
        reasons.append(_unknown("resources", text))
    reasons += (_unknown("contradiction", text) for text in kernel.contradictions)
    if any(reason.verdict is AuditVerdict.NOT_SAFE for reason in reasons):
        verdict = AuditVerdict.NOT_SAFE
    else:
        verdict = AuditVerdict.NOT_CHECKED if reasons else AuditVerdict.SAFE
    return Judged(
        name=kernel.name,
        verdict=verdict,
        reasons=tuple(dict.fromkeys(reasons)),
        instructions=function.instructions,
        differing=function.differing,
    )


def _of_code(function: Function, watched: Sequence[Concern]) -> Iterator[Reason]:
    """What the listings show of one function."""
    if function.differing:
        count = f"{function.differing:,} of its {function.instructions:,} instructions decode differently"
        first = function.examples[0]
        shown = f"{first.code or 'nothing'} is {first.on or 'nothing'}"
        yield _unsafe("decoding", f"{count}; at {first.address:#x} {shown}")
    if function.undecoded:
        yield _unknown(
            "data", f"{function.undecoded:,} words of it are not instructions that this LLVM knows"
        )
    if not function.listed:
        yield _unknown("no symbol", "no symbol marks its start, so its disassembly may be misaligned")
    for number in sorted(function.concerns):
        yield _unknown(watched[number].name, watched[number].text)


def _of_calls(functions: Sequence[Function], watched: Sequence[Concern]) -> Iterator[Reason]:
    """A kernel that calls or jumps may come to any function: which one, is not followed."""
    wanting = [(function, next(_of_code(function, watched), None)) for function in functions]
    unsafe = [(function, reason) for function, reason in wanting if reason is not None]
    if unsafe:
        function, reason = unsafe[0]
        count = f"{len(unsafe):,} of {len(functions):,} functions that it may call"
        yield _unknown("calls", f"{count} are not safe or not checked; {function.name}: {reason.text}")


def _of_features(watched: Sequence[Concern]) -> Iterator[Reason]:
    yield from (_unknown(concern.name, concern.text) for concern in watched if concern.always)


def _of_modes(file: CodeFile, question: Question) -> Iterator[Reason]:
    """Modes that the code is fixed to and the card may not be in."""
    for feature in file.header.features:
        supported = f"{feature[:-1]}-support" in isas()[question.on].features
        if supported and feature not in question.modes:
            text = (
                f"it is for cards with {feature}; whether that holds of this {question.on} is not in the file"
            )
            yield _unknown("mode", text)


def _unsafe(kind: str, text: str) -> Reason:
    return Reason(verdict=AuditVerdict.NOT_SAFE, kind=kind, text=text)


def _unknown(kind: str, text: str) -> Reason:
    return Reason(verdict=AuditVerdict.NOT_CHECKED, kind=kind, text=text)


def _unchecked(kind: str, text: str, name: str = "") -> Judged:
    return Judged(name=name, verdict=AuditVerdict.NOT_CHECKED, reasons=(_unknown(kind, text),))
