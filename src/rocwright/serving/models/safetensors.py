"""The head of a safetensors file: what its tensors take, and whether all of them are there.

Source: safetensors README.md (format) and safetensors/src/tensor.rs (what is refused, and the bound).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rocwright.serving.models.cursor import Cursor
from rocwright.serving.models.model import Head
from rocwright.serving.models.refused import cut_short, damaged, shown

# Bytes of the number that says how long the head is.
LENGTH = 8

# Bytes of a head (safetensors: MAX_HEADER_SIZE).
MOST_HEAD = 100_000_000

# Tensors of a file, and bytes about one: the largest models have 100,000 in all of their files.
MOST_TENSORS, MOST_ENTRY = 262_144, 4096

METADATA = "__metadata__"

_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TEXTS = rb"\{\s*+(?:%b\s*+:\s*+%b\s*+,?+\s*+)*+\}" % (_TEXT, _TEXT)
_PAIR = rb"\s*+(%b)\s*+:\s*+(%b|%b|\{[^{}]*+\}|[^{},\[\]\s]++)\s*+([,}])" % (_TEXT, _TEXT, _TEXTS)
_PAIRS, _OPEN, _END = re.compile(_PAIR, re.DOTALL), re.compile(rb"\s*+\{\s*+(\}?)"), re.compile(rb"\s*+\Z")

# Bits of a number of types whose names do not tell them at once.
BITS = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}


def looks_like_safetensors(begin: bytes) -> bool:
    """Whether a file begins as one: a short length, and then an object."""
    return begin[LENGTH : LENGTH + 1] == b"{" and int.from_bytes(begin[:LENGTH], "little") <= MOST_HEAD


def read_safetensors(path: Path) -> Head:
    """The head of a file. Nothing of the tensors is read.

    Raises CheckError where it is damaged or cut short, with the bytes that are missing; OSError where it
    cannot be read.
    """
    length = path.stat().st_size
    with path.open("rb") as file:
        cursor = Cursor(path, file, length, LENGTH + MOST_HEAD)
        head = cursor.number("Q", "its head")
        if head > MOST_HEAD:
            raise damaged(path, f"it says that its head is {head:,} bytes long")
        tensors = _tensors(path, cursor.bytes(head, "its head"))
    if not tensors:
        return Head(weights=0, parameters=0)
    end = 0
    for name, (begins, ends, _, _) in sorted(tensors.items(), key=lambda entry: entry[1][:2]):
        if begins != end:
            raise damaged(path, f"the tensor {shown(name)} does not lie where the one before it ends")
        end = ends
    total = LENGTH + head + end
    if total > length:
        raise cut_short(path, total - length)
    if total < length:
        raise damaged(path, f"{length - total:,} bytes behind its last tensor belong to nothing")
    kinds: dict[str, int] = {}
    for _, _, values, kind in tensors.values():
        kinds[kind] = kinds.get(kind, 0) + values
    return Head(weights=end, parameters=sum(kinds.values()), quantisation=max(kinds, key=kinds.__getitem__))


def _tensors(path: Path, data: bytes) -> dict[str, tuple[int, int, int, str]]:
    """Begin, end, count of numbers and type of each tensor, by name."""
    tensors: dict[str, tuple[int, int, int, str]] = {}
    try:
        for key, value in json_pairs(data):
            name = json.loads(key)
            if name in tensors or len(tensors) >= MOST_TENSORS:
                raise ValueError("a name stands there twice, or there are too many")
            if name != METADATA:
                tensors[name] = _tensor(path, name, json.loads(value[:MOST_ENTRY]))
    except (ValueError, RecursionError) as error:
        raise damaged(path, "its head is not a JSON object of tensors, or names one twice") from error
    return tensors


def json_pairs(data: bytes, offset: int = 0) -> Iterator[tuple[bytes, bytes]]:
    """Yield the pairs of a flat JSON object at `offset`, as they are written: parsed, all take 30 times that.

    Raises ValueError where it is none, and where something follows an object that is the whole.
    """
    complete = not offset
    match = _OPEN.match(data, offset)
    while match and match[match.re.groups] != b"}":
        offset = match.end()
        match = _PAIRS.match(data, offset)
        if match:
            yield match[1], match[2]
    if match is None or (complete and not _END.match(data, match.end())):
        raise ValueError("it is no JSON object of such pairs")


def _tensor(path: Path, name: str, description: Any) -> tuple[int, int, int, str]:
    match description:
        case {"dtype": str(kind), "shape": list(shape), "data_offsets": [int(begins), int(ends)]}:
            if all(type(number) is int and 0 <= number < 2**63 for number in (*shape, begins, ends)):
                values = math.prod(shape) if len(shape) <= 64 else 2**64
                bits = _bits(kind)
                right = bits is None or (values < 2**63 and values * bits == 8 * (ends - begins))
                if begins <= ends and right:
                    return begins, ends, values if bits is not None else 0, shown(kind)
    raise damaged(path, f"what it says of the tensor {shown(name)} cannot be")


def _bits(kind: str) -> int | None:
    """Bits of a number of a type such as F16, BF16, I64, F8_E4M3; None for a type that is not known."""
    digits = kind.partition("_")[0].lstrip("BFIUC")
    return BITS.get(kind) or (int(digits) if digits.isdecimal() and len(digits) <= 3 else None)
