"""The head of a model of whisper.cpp's own format, and whether all of its tensors are there.

Source: whisper.cpp 1.8.5 src/whisper.cpp, whisper_model_load.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path

from rocwright.catalog.model_files import ModelsFile
from rocwright.serving.models.cursor import Cursor
from rocwright.serving.models.model import Head
from rocwright.serving.models.refused import cut_short, damaged, shown

MAGIC = b"lmgg"

# Bytes of everything before the tensors; the vocabulary takes less than 1 MB.
MOST_HEAD = 16 * 1024**2

# No width, length or vocabulary is larger; the largest vocabulary has 51,866 pieces.
MOST_NUMBER = 2**24

MOST_LAYERS = 1024
MOST_TENSORS = 65_536
MOST_PIECE, MOST_NAME = 4096, 1024
MOST_DIMENSIONS = 4
MOST_FILTERS = 2**20
# The type of the numbers is what remains when its version is taken off (GGML_QNT_VERSION_FACTOR).
TYPE_FACTOR = 1000


def read_ggml_bin(path: Path, facts: ModelsFile) -> Head:
    """The head of a file. Nothing of the tensors is read.

    Raises CheckError where it is damaged or cut short, with the bytes that are missing; OSError where it
    cannot be read.
    """
    length = path.stat().st_size
    with path.open("rb") as file:
        cursor = Cursor(path, file, length, MOST_HEAD)
        if length < len(MAGIC) or cursor.bytes(len(MAGIC), "the file") != MAGIC:
            raise damaged(path, "it does not begin as a model of whisper.cpp")
        vocabulary, *sizes, kind = (cursor.number("i", "its head") for _ in range(11))
        _, width, heads, audio_layers, text_context, _, _, text_layers, _ = sizes
        if any(not 0 < number <= MOST_NUMBER for number in (vocabulary, *sizes)) or width % heads:
            raise damaged(path, "the sizes in its head cannot be")
        if max(audio_layers, text_layers) > MOST_LAYERS:
            raise damaged(path, "its head says that it has more layers than any model")
        mels, frequencies = cursor.number("i", "its filters"), cursor.number("i", "its filters")
        if min(mels, frequencies) <= 0 or mels * frequencies > MOST_FILTERS:
            raise damaged(path, "the sizes of its filters cannot be")
        cursor.skip(4 * mels * frequencies, "its filters")
        pieces = cursor.number("i", "its vocabulary")
        if not 0 <= pieces <= vocabulary:
            raise damaged(path, f"its vocabulary says that it has {pieces:,} pieces")
        for _ in range(pieces):
            cursor.text(cursor.number("I", "its vocabulary"), MOST_PIECE, "a piece of its vocabulary")
        weights, parameters = _tensors(path, length, cursor.at, facts)
    quantisation = facts.quantisation(kind % TYPE_FACTOR) if kind >= 0 else None
    return Head(
        weights=weights,
        parameters=parameters,
        architecture="whisper",
        quantisation=quantisation.name if quantisation else "",
        context=text_context,
        layers=text_layers,
        kv_heads=(heads,) * text_layers,
        key=width // heads,
        value=width // heads,
    )


def _tensors(path: Path, length: int, offset: int, facts: ModelsFile) -> tuple[int, int]:
    """The bytes and the numbers of all tensors; they lie one behind another to the end of the file."""
    weights = parameters = count = 0
    types = {entry.id: entry for entry in facts.tensor_types.types}
    with path.open("rb") as file:
        while offset < length:
            file.seek(offset)
            header = file.read(3 * 4 + MOST_DIMENSIONS * 4 + MOST_NAME)
            if len(header) < 12:
                raise cut_short(path, 12 - len(header), "the words before a tensor")
            dimensions, name_length, kind = struct.unpack_from("<3i", header)
            if not 0 <= dimensions <= MOST_DIMENSIONS or not 0 < name_length <= MOST_NAME:
                raise damaged(path, f"what stands at byte {offset:,} is no tensor")
            begins = 12 + 4 * dimensions + name_length
            if len(header) < begins:
                raise cut_short(path, begins - len(header), "the words before a tensor")
            shape = struct.unpack_from(f"<{dimensions}i", header, 12)
            name = shown(header[begins - name_length : begins].decode("utf-8", "replace"))
            tensor_type = types.get(kind)
            if (
                tensor_type is None
                or any(extent <= 0 for extent in shape)
                or (shape and shape[0] % tensor_type.values)
            ):
                raise damaged(path, f"the tensor {name} has a type or a shape that cannot be")
            values = math.prod(shape)
            size = values // tensor_type.values * tensor_type.bytes
            if offset + begins + size > length:
                raise cut_short(path, offset + begins + size - length, f"the tensor {name}")
            offset += begins + size
            weights, parameters, count = weights + size, parameters + values, count + 1
            if count > MOST_TENSORS:
                raise damaged(path, f"it has more than {MOST_TENSORS:,} tensors")
    return weights, parameters
