"""Two listings of one code object, compared instruction by instruction as they are written.

Where both are the same text, which is most often, they are compared and searched by the MiB; from the first
difference on, line by line. Memory use does not grow with the code.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import IO

from rocwheel.wheels.audit.facts import Concern, Flow

BLOCK = 1024 * 1024
"""Bytes of a listing that are compared at a time."""
LONGEST_LINE = 64 * 1024
EXAMPLES = 3
"""Differences of a function that are kept to be shown."""

_HEADER = re.compile(rb"^([0-9a-f]{8,16}) <.*>:$", re.MULTILINE)
_NAME = re.compile(rb"^\t([^\s/]+)", re.MULTILINE)
_NOT_CODE = re.compile(rb"^(?:\t(?:\.|<)|[^\t\n])[^\n]*", re.MULTILINE)
_TITLE = re.compile(rb".*:\tfile format .*|Disassembly of section .*:")
_PLACE = re.compile(rb" ([0-9A-F]{8,16}): ([0-9A-F ]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionDifference:
    """The instruction at an address as both processors take it; "" where one has none that begins there."""

    address: int
    code: str
    on: str


@dataclass(slots=True, kw_only=True)
class Function:
    """What was found from `start` to the next function.

    `instructions` as the processor takes them that the code is for, `differing` among them, words that
    are `undecoded` for either; `concerns` are indices of those that were looked for; `leaves` says that
    another function may come next. `listed` says that a listing began here.
    """

    start: int
    name: str
    instructions: int = 0
    differing: int = 0
    undecoded: int = 0
    concerns: set[int] = field(default_factory=set)
    leaves: bool = False
    listed: bool = False
    examples: list[InstructionDifference] = field(default_factory=list)


class Comparison:
    """The functions of a code object, filled from two listings by `read`.

    `starts` are the addresses and names of functions; what lies before the first is a function of its own.
    `concerns` are what to look for in them.
    """

    def __init__(self, starts: Sequence[tuple[int, str]], concerns: Sequence[Concern], flow: Flow) -> None:
        named = dict(reversed(starts))
        self.functions = [
            Function(start=-1, name="code before any function"),
            *(Function(start=start, name=named[start]) for start in sorted(named)),
        ]
        self._starts = [function.start for function in self.functions]
        self.concerns = concerns
        self._searches = [_Search(concern) for concern in concerns]
        self._branch = re.compile(
            rb"^\t(?:%b)[^/\n]*// ([0-9A-F]{8,16}): ([0-9A-F]{8})" % flow.branches.encode(), re.MULTILINE
        )
        self._leaving = re.compile(b"|".join(pattern.encode() for pattern in flow.leaves))
        self._current = self.functions[0]

    def read(self, code: IO[bytes], device: IO[bytes]) -> None:
        """Compare two listings to their ends."""
        pending = b""
        while True:
            ours, theirs = code.read(BLOCK), device.read(BLOCK)
            if ours != theirs:
                self._read_apart(_Lines(code, pending + ours), _Lines(device, pending + theirs))
                return
            if not ours:
                self._search(pending)
                return
            complete, newline, partial = (pending + ours).rpartition(b"\n")
            pending = partial
            self._search(complete + newline)

    def function_at(self, address: int) -> Function:
        """The function that an address belongs to."""
        return self.functions[bisect_right(self._starts, address) - 1]

    def _search(self, text: bytes) -> None:
        """Take in a part of the listing on which both agree, or that of the code's own processor."""
        begin = 0
        for header in _HEADER.finditer(text):
            self._add(text[begin : header.start()])
            self._current = self.function_at(int(header[1], 16))
            self._current.listed |= self._current.start == int(header[1], 16)
            begin = header.end()
        self._add(text[begin:])

    def _add(self, text: bytes) -> None:
        function = self._current
        names = _NAME.findall(text)
        unique = set(names)
        function.instructions += len(names)
        strange = any(name.startswith((b".", b"<")) for name in unique)
        function.undecoded += abs(text.count(b"// ") - len(names))  # each has its place behind this
        if strange or text.count(b"\n\t") + text.count(b"\n\n") != text.count(b"\n"):
            function.undecoded += sum(not _TITLE.match(line) for line in _NOT_CODE.findall(text))
        function.leaves |= any(map(self._leaving.match, unique))
        for number, search in enumerate(self._searches):
            if number not in function.concerns and search.matches(unique, text):
                function.concerns.add(number)
        if not function.leaves:
            function.leaves = any(self.function_at(to) is not function for to in self._targets(text))

    def _targets(self, text: bytes) -> Iterator[int]:
        """The addresses that branches go to."""
        for address, word in self._branch.findall(text):
            offset = int(word[-4:], 16)
            yield int(address, 16) + 4 + 4 * (offset - 0x10000 if offset & 0x8000 else offset)

    def _read_apart(self, code: _Lines, device: _Lines) -> None:
        """Take in two listings that differ, line by line, in the order of their addresses."""
        part: list[bytes] = []
        ours, theirs = next(code, None), next(device, None)
        while ours is not None or theirs is not None:
            our_address = ours.address if ours else _END
            their_address = theirs.address if theirs else _END
            if our_address <= their_address and ours is not None:
                if ours.instruction is None or len(part) > BLOCK // 64:
                    self._search(b"".join(part))
                    part = []
                part.append(ours.text)
            if our_address == their_address and ours is not None and theirs is not None:
                if ours.text != theirs.text and ours.parts != theirs.parts:
                    self._differ(our_address, ours, theirs)
            elif our_address < their_address:
                self._differ(our_address, ours, None)
            else:
                self._differ(their_address, None, theirs)
            ours, theirs = (
                next(code, None) if our_address <= their_address else ours,
                next(device, None) if their_address <= our_address else theirs,
            )
        self._search(b"".join(part))

    def _differ(self, address: int, ours: _Line | None, theirs: _Line | None) -> None:
        function = self.function_at(address)
        function.differing += 1
        if len(function.examples) < EXAMPLES:
            function.examples.append(
                InstructionDifference(
                    address=address, code=_instruction_text(ours), on=_instruction_text(theirs)
                )
            )


class _Search:
    """A concern as a search in listings."""

    def __init__(self, concern: Concern) -> None:
        self._name = re.compile(b"|".join(pattern.encode() for pattern in concern.rule.code))
        self._operands = concern.rule.operands.encode()

    def matches(self, names: set[bytes], text: bytes) -> bool:
        fitting = [name for name in names if self._name.match(name)]
        if not fitting or not self._operands:
            return bool(fitting)
        named = b"|".join(map(re.escape, fitting))
        lines = re.finditer(rb"^\t(?:%b)\s[^/\n]*" % named, text, re.MULTILINE)
        return any(re.search(self._operands, line[0]) for line in lines)


_END = 1 << 65


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a listing with an address: of an instruction, or (None) the header of a function."""

    text: bytes
    address: int
    instruction: bytes | None
    words: bytes

    @property
    def parts(self) -> tuple[bytes | None, bytes]:
        return self.instruction, self.words


class _Lines:
    """The lines of a listing, each with its address or that before it; `head` was read from it already."""

    def __init__(self, file: IO[bytes], head: bytes) -> None:
        self._lines = self._read(file, head)
        self._address = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> _Line:
        for text in self._lines:
            if text.startswith(b"\t"):
                instruction, _, place = text.partition(b"//")
                match = _PLACE.match(place)
                if match is not None:
                    self._address = int(match[1], 16)
                return _Line(text, self._address, instruction.strip(), match[2] if match else b"")
            if header := _HEADER.match(text.rstrip(b"\n")):
                self._address = int(header[1], 16)
                return _Line(text, self._address, None, b"")
            if text.strip() and not _TITLE.match(text):
                return _Line(text, self._address, text.strip(), b"")
        raise StopIteration

    @staticmethod
    def _read(file: IO[bytes], head: bytes) -> Iterator[bytes]:
        *lines, last = head.split(b"\n")
        yield from (line + b"\n" for line in lines)
        yield from chain([last + file.readline(LONGEST_LINE)], iter(lambda: file.readline(LONGEST_LINE), b""))


def _instruction_text(line: _Line | None) -> str:
    if line is None or line.instruction is None:
        return ""
    return line.instruction.decode(errors="replace")
