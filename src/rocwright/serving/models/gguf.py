"""The head of a GGUF file: what the model is, what its tensors take, and whether all of them are there.

Source: ggml docs/gguf.md (versions 2 and 3), ggml/src/gguf.cpp for what a loader refuses.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocwright.catalog.model_files import ModelsFile
from rocwright.serving.models.cursor import Cursor
from rocwright.serving.models.model import Head
from rocwright.serving.models.refused import cut_short, damaged, shown, unsuited

MAGIC = b"GGUF"
VERSIONS = (2, 3)

# Bytes of a head; those of the largest vocabularies take some 20 MB.
MOST_HEAD = 64 * 1024**2

MOST_KEYS = 65_536
MOST_TENSORS = 262_144
# Bytes of a key (ggml docs/gguf.md).
MOST_KEY = 65_535

# Bytes of a tensor's name; ggml takes 64.
MOST_NAME = 1024

# Bytes of a text that is kept; of longer ones (templates) nothing is.
MOST_TEXT = 256

# Numbers of an array that are kept, and ends of the keys of such: those by layer.
MOST_ITEMS, BY_LAYER = 4096, (".attention.head_count", ".attention.head_count_kv")

MOST_DIMENSIONS = 4
DEFAULT_ALIGNMENT = 32
MOST_ALIGNMENT = 2**20

TEXT, ARRAY = 8, 9
# Types of values -> struct's letters.
FORMS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

SIZES = {"B": 1, "b": 1, "H": 2, "h": 2, "I": 4, "i": 4, "f": 4, "?": 1, "Q": 8, "q": 8, "d": 8}

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor's place: `size` is None where the catalog does not know its type."""

    name: str
    kind: int
    values: int
    offset: int
    size: int | None


def read_gguf(path: Path, facts: ModelsFile) -> tuple[Head, Values]:
    """The head of a file, and its values by key. Nothing of the tensors is read.

    Raises CheckError where it is damaged, cut short (with the bytes that are missing), or of a version that
    no program here loads; OSError where it cannot be read.
    """
    length = path.stat().st_size
    with path.open("rb") as file:
        cursor = Cursor(path, file, length, MOST_HEAD)
        tensors_count, keys = _begin(cursor)
        values = dict(_values(cursor, keys))
        if len(values) < keys:
            raise damaged(path, "one of its keys stands there twice")
        tensors = list(_tensors(cursor, tensors_count, facts))
    alignment = _alignment(path, values)
    _check_places(path, length, -(-cursor.at // alignment) * alignment, alignment, tensors)
    return _head(values, tensors, facts), values


def _begin(cursor: Cursor) -> tuple[int, int]:
    """How many tensors and keys there are."""
    if cursor.length < len(MAGIC) or cursor.bytes(len(MAGIC), "the file") != MAGIC:
        raise damaged(cursor.path, "it does not begin with GGUF")
    version = cursor.number("I", "its version")
    if version.bit_length() > 16:
        raise unsuited(
            cursor.path, "it is for big-endian machines", "use the little-endian file of this model"
        )
    if version not in VERSIONS:
        raise unsuited(
            cursor.path,
            f"it is of version {version} of GGUF; llama.cpp reads {VERSIONS[0]} and {VERSIONS[1]}",
            "convert the model anew with llama.cpp's convert_hf_to_gguf.py",
        )
    tensors, keys = cursor.number("Q", "the head"), cursor.number("Q", "the head")
    for count, limit, label in ((tensors, MOST_TENSORS, "tensors"), (keys, MOST_KEYS, "keys")):
        if count > limit:
            raise damaged(cursor.path, f"it says that it has {count:,} {label}")
    return tensors, keys


def _values(cursor: Cursor, count: int) -> Iterator[tuple[str, Any]]:
    for _ in range(count):
        key = cursor.text(cursor.number("Q", "a key"), MOST_KEY, "a key")
        yield key, _value(cursor, cursor.number("I", shown(key)), shown(key))


def _value(cursor: Cursor, kind: int, key: str) -> Any:
    """A value; None where it is not kept."""
    if kind in FORMS:
        return cursor.number(FORMS[kind], key)
    if kind == TEXT:
        return _text(cursor, key)
    if kind != ARRAY:
        raise damaged(cursor.path, f"{key} has a value of the unknown type {kind}")
    element, count = cursor.number("I", key), cursor.number("Q", key)
    if element == TEXT:
        if count > cursor.left // 8:
            raise cut_short(cursor.path, count * 8 - cursor.left, key)
        cursor.skip_texts(count, key)
        return None
    if element not in FORMS:
        raise damaged(cursor.path, f"{key} is an array of the type {element}, which no program reads")
    size = count * SIZES[FORMS[element]]
    if count > MOST_ITEMS or not key.endswith(BY_LAYER):
        cursor.skip(size, key)
        return None
    return struct.unpack(f"<{count}{FORMS[element]}", cursor.bytes(size, key))


def _text(cursor: Cursor, key: str) -> str | None:
    length = cursor.number("Q", key)
    if length <= MOST_TEXT:
        return cursor.text(length, MOST_TEXT, key)
    cursor.skip(length, key)
    return None


def _tensors(cursor: Cursor, count: int, facts: ModelsFile) -> Iterator[Tensor]:
    types = {entry.id: entry for entry in facts.tensor_types.types}
    for _ in range(count):
        raw_name = cursor.text(cursor.number("Q", "a tensor"), MOST_NAME, "a tensor's name")
        name = shown(raw_name)
        dimensions = cursor.number("I", name)
        if dimensions > MOST_DIMENSIONS:
            raise damaged(cursor.path, f"the tensor {name} has {dimensions:,} dimensions")
        shape = [cursor.number("Q", name) for _ in range(dimensions)]
        kind, offset = cursor.number("I", name), cursor.number("Q", name)
        values = math.prod(shape)
        if values.bit_length() > 63:
            raise damaged(cursor.path, f"the tensor {name} has more numbers than any machine can hold")
        tensor_type = types.get(kind)
        if tensor_type and shape and shape[0] % tensor_type.values:
            raise damaged(
                cursor.path,
                f"rows of the tensor {name} have {shape[0]:,} numbers, which is no multiple of the "
                f"{tensor_type.values} of a block of {tensor_type.name}",
            )
        size = values // tensor_type.values * tensor_type.bytes if tensor_type else None
        yield Tensor(raw_name, kind, values, offset, size)


def _alignment(path: Path, values: Values) -> int:
    alignment = values.get("general.alignment", DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or not 0 < alignment <= MOST_ALIGNMENT or alignment & alignment - 1:
        raise damaged(path, "its alignment is no power of two")
    return alignment


def _check_places(path: Path, length: int, start: int, alignment: int, tensors: Sequence[Tensor]) -> None:
    """Each tensor behind the one before it, without a gap, and the last one inside of the file."""
    names = {tensor.name for tensor in tensors}
    if len(names) < len(tensors):
        raise damaged(path, "two of its tensors have one name")
    expected: int | None = 0
    for tensor in tensors:
        if tensor.offset % alignment or (expected is not None and tensor.offset != expected):
            raise damaged(path, f"the tensor {shown(tensor.name)} does not lie where it should")
        if tensor.offset > length - start and tensor.size is None:
            raise cut_short(path, start + tensor.offset - length)
        expected = None if tensor.size is None else tensor.offset + -(-tensor.size // alignment) * alignment
    ends = [start + tensor.offset + (tensor.size or 0) for tensor in tensors]
    if ends and max(ends) > length:
        raise cut_short(path, max(ends) - length)


def _head(values: Values, tensors: Sequence[Tensor], facts: ModelsFile) -> Head:
    architecture = _word(values, "general.architecture")
    layers = _count(values, f"{architecture}.block_count")
    heads = _by_layer(values, f"{architecture}.attention.head_count", layers)
    width = _count(values, f"{architecture}.embedding_length")
    head_width = width // heads[0] if heads and heads[0] else 0
    kv_heads = _by_layer(values, f"{architecture}.attention.head_count_kv", layers) or heads
    kind = facts.quantisation(_count(values, "general.file_type", -1))
    return Head(
        weights=sum(tensor.size or 0 for tensor in tensors),
        parameters=sum(tensor.values for tensor in tensors),
        architecture=architecture,
        name=_word(values, "general.name"),
        quantisation=kind.name if kind else _most_used(tensors, facts),
        context=_count(values, f"{architecture}.context_length"),
        layers=layers,
        kv_heads=kv_heads,
        key=_count(values, f"{architecture}.attention.key_length") or head_width,
        value=_count(values, f"{architecture}.attention.value_length") or head_width,
        window=_count(values, f"{architecture}.attention.sliding_window"),
        attends=not any(key.startswith((f"{architecture}.ssm.", f"{architecture}.wkv.")) for key in values),
    )


def _most_used(tensors: Sequence[Tensor], facts: ModelsFile) -> str:
    """The type of most of the numbers."""
    by_kind: dict[int, int] = {}
    for tensor in tensors:
        by_kind[tensor.kind] = by_kind.get(tensor.kind, 0) + tensor.values
    tensor_type = facts.tensor_type(max(by_kind, key=by_kind.__getitem__)) if by_kind else None
    return tensor_type.name if tensor_type else ""


# No length, no number of heads or layers is larger: those that are count as not told.
MOST_COUNT = 2**40

MOST_LAYERS = MOST_ITEMS


def _count(values: Values, key: str, without: int = 0) -> int:
    number = values.get(key)
    return number if isinstance(number, int) and 0 <= number <= MOST_COUNT else without


def _word(values: Values, key: str) -> str:
    word = values.get(key)
    return shown(word) if isinstance(word, str) else ""


def _by_layer(values: Values, key: str, layers: int) -> tuple[int, ...]:
    """A number that is the same for all layers, or told for each."""
    counts = values.get(key)
    if isinstance(counts, tuple):
        return tuple(count for count in counts if isinstance(count, int) and 0 <= count <= MOST_COUNT)
    count = _count(values, key)
    return (count,) * min(layers, MOST_LAYERS) if count else ()
