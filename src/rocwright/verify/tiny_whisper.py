"""A small model of speech in whisper.cpp's format, the same bytes for the same seed, for smoke tests.

The weights are random but not arbitrary. The decoder's last part turns a token's embedding by a fixed
rotation, and the embedding of the token's successor is the turned one: greedy decoding says one sentence
between two times, with a wide gap between the best token and the next, so that correct backends agree on it.
The encoder and both kinds of attention add to every logit, so that their faults show.

Shapes are those that whisper.cpp 1.8.5 wants (src/whisper.cpp, whisper_model_load): its special tokens stand
at fixed places, so the vocabulary has the size of the English models. gelu(x) - gelu(-x) = x, which makes a
feed-forward part of a matrix and its negative a linear map.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rocbase.files.atomic import atomic_file

SEED = 803
WIDTH = 64  # one head that every backend's attention knows, and a multiple of 32 (a block of Q8_0)
HEADS = 1
LAYERS = 4  # with two in the decoder whisper.cpp takes it for a distilled model, without times
AUDIO_CONTEXT, TEXT_CONTEXT = 1500, 448
MELS, FREQUENCIES = 80, 201

VOCABULARY = 51864
END, START, FIRST_TIME = 50256, 50257, 50363
WORDS = END
SPACE = 220  # whisper.cpp wants a piece that is one space
SENTENCE = (" This", " model", " is", " tiny", " and", " random", ".")
FIRST_WORD = 1000
SAID_BY = 100  # the sentence ends after two seconds, in steps of 0.02 s

F32, F16, Q8_0 = 0, 1, 8  # types of ggml
FILE_TYPE = 7  # mostly Q8_0
MAGIC = 0x67676D6C
BLOCK = 32

TURN = 6.0  # how strongly the last part turns a token into its successor
STIR = 0.05  # how strongly everything else acts
LENGTH = 4.0  # of an embedding
STEPS = 2**16  # a full turn, for the rotations

Floats = npt.NDArray[np.float64]
CONSONANTS, VOWELS = "bdfghjklmnprstvz", "aeiou"


def write_tiny_whisper(path: Path, *, seed: int = SEED) -> None:
    """Write the model of `seed` to `path`, whole or not at all (about 5 MB)."""
    with atomic_file(path) as file:
        sizes = (VOCABULARY, AUDIO_CONTEXT, WIDTH, HEADS, LAYERS, TEXT_CONTEXT, WIDTH, HEADS, LAYERS, MELS)
        file.write(struct.pack("<I11i", MAGIC, *sizes, FILE_TYPE))
        file.write(struct.pack("<2i", MELS, FREQUENCIES) + _filters().astype("<f4").tobytes())
        file.write(struct.pack("<i", WORDS))
        for piece in _pieces():
            file.write(struct.pack("<I", len(piece)) + piece)
        for name, kind, data in _tensors(seed):
            file.write(struct.pack("<3i", data.ndim, len(name), kind))
            file.write(struct.pack(f"<{data.ndim}i", *reversed(data.shape)) + name.encode())
            file.write(_packed(kind, data))


def _pieces() -> Iterator[bytes]:
    """A text for each token before the special ones."""
    texts = dict(enumerate(SENTENCE, FIRST_WORD)) | {SPACE: " "}
    for token in range(WORDS):
        yield texts.get(token, _word(token)).encode()


def _word(number: int) -> str:
    """A word of syllables, another one for each number."""
    word = ""
    number += 1
    while number:
        number, consonant = divmod(number, len(CONSONANTS))
        number, vowel = divmod(number, len(VOWELS))
        word += CONSONANTS[consonant] + VOWELS[vowel]
    return f" {word}"


def _filters() -> Floats:
    """Each mel is the mean of some neighbouring frequencies."""
    filters = np.zeros((MELS, FREQUENCIES))
    for mel in range(MELS):
        first = mel * (FREQUENCIES - 5) // (MELS - 1)
        filters[mel, first : first + 5] = 0.005
    return filters


def places() -> list[int]:
    """The place of each token on the cycle: the sentence one behind another, the others as they come."""
    sentence = [START, FIRST_TIME, *range(FIRST_WORD, FIRST_WORD + len(SENTENCE)), FIRST_TIME + SAID_BY, END]
    remaining = sorted(set(range(VOCABULARY)) - set(sentence))
    positions = [0] * VOCABULARY
    for place, token in enumerate(sentence + remaining):
        positions[token] = place
    return positions


def _tensors(seed: int) -> Iterator[tuple[str, int, Floats]]:
    yield "encoder.positional_embedding", F32, _random(f"{seed}:heard", AUDIO_CONTEXT, WIDTH)
    for number, inputs in ((1, MELS), (2, WIDTH)):
        conv = _random(f"{seed}:conv{number}", WIDTH, inputs * 3, 1 / math.sqrt(inputs * 3))
        yield f"encoder.conv{number}.weight", F16, conv.reshape(WIDTH, inputs, 3)
        yield f"encoder.conv{number}.bias", F32, np.zeros((WIDTH, 1))
    for layer in range(LAYERS):
        name = f"encoder.blocks.{layer}"
        yield from _attention(f"{name}.attn", f"{seed}:{name}")
        yield from _feed_forward(f"{name}.mlp", _stirring(f"{seed}:{name}:mlp"))
    yield from _norm("encoder.ln_post")
    steps = _bytes(f"{seed}:steps", 2 * (WIDTH // 2))
    speeds = np.frombuffer(steps, dtype="<u2").astype(np.int64) | 1
    yield "decoder.positional_embedding", F32, _random(f"{seed}:said", TEXT_CONTEXT, WIDTH, STIR)
    yield "decoder.token_embedding.weight", Q8_0, _embeddings(speeds)
    for layer in range(LAYERS):
        name = f"decoder.blocks.{layer}"
        yield from _attention(f"{name}.attn", f"{seed}:{name}")
        yield from _attention(f"{name}.cross_attn", f"{seed}:{name}:cross")
        last = layer == LAYERS - 1
        turn = _turn(speeds) * TURN if last else _stirring(f"{seed}:{name}:mlp")
        yield from _feed_forward(f"{name}.mlp", turn)
    yield from _norm("decoder.ln")


def _attention(name: str, label: str) -> Iterator[tuple[str, int, Floats]]:
    yield from _norm(f"{name}_ln")
    for part, scale in (("query", 1.0), ("key", 1.0), ("value", 1.0), ("out", STIR)):
        yield (
            f"{name}.{part}.weight",
            Q8_0,
            _random(f"{label}:{part}", WIDTH, WIDTH, scale / math.sqrt(WIDTH)),
        )
        if part != "key":
            yield f"{name}.{part}.bias", F32, np.zeros(WIDTH)


def _feed_forward(name: str, linear: Floats) -> Iterator[tuple[str, int, Floats]]:
    """Four times the width inside: a matrix and its negative, and as much of nothing."""
    identity, none = np.eye(WIDTH), np.zeros((2 * WIDTH, WIDTH))
    yield from _norm(f"{name}_ln")
    yield f"{name}.0.weight", Q8_0, np.concatenate([identity, -identity, none])
    yield f"{name}.0.bias", F32, np.zeros(4 * WIDTH)
    yield f"{name}.2.weight", Q8_0, np.concatenate([linear, -linear, none.T], axis=1)
    yield f"{name}.2.bias", F32, np.zeros(WIDTH)


def _stirring(label: str) -> Floats:
    return _random(label, WIDTH, WIDTH, STIR / math.sqrt(WIDTH))


def _norm(name: str) -> Iterator[tuple[str, int, Floats]]:
    yield f"{name}.weight", F32, np.ones(WIDTH)
    yield f"{name}.bias", F32, np.zeros(WIDTH)


def _embeddings(speeds: npt.NDArray[np.int64]) -> Floats:
    """A row for each token: its place on the cycle, as angles of WIDTH / 2 circles."""
    turned = np.array(places())[:, None] * speeds[None, :] % STEPS
    scale = LENGTH / math.sqrt(WIDTH // 2)
    rows = np.concatenate([_cosines()[turned], _cosines()[(turned - STEPS // 4) % STEPS]], axis=1)
    return rows * scale


def _turn(speeds: npt.NDArray[np.int64]) -> Floats:
    """The rotation that takes each row to that of the next place."""
    cosine, sine = _cosines()[speeds % STEPS], _cosines()[(speeds - STEPS // 4) % STEPS]
    return np.block([[np.diag(cosine), np.diag(-sine)], [np.diag(sine), np.diag(cosine)]])


def _cosines() -> Floats:
    """By steps of a full turn, rounded so far that every machine has the same."""
    cosines: Floats = np.round(np.cos(np.arange(STEPS) * (2 * math.pi / STEPS)) * 2**20) / 2**20
    return cosines


def _bytes(seed: str, count: int) -> bytes:
    return hashlib.shake_256(seed.encode()).digest(count)


def _random(label: str, rows: int, columns: int, spread: float = 1.0) -> Floats:
    """Evenly spread numbers of mean 0 and of this standard deviation."""
    drawn = np.frombuffer(_bytes(label, rows * columns), dtype=np.uint8).astype(np.int64)
    unit = math.sqrt((256**2 - 1) / 3)
    matrix: Floats = (2 * drawn - 255).astype(np.float64).reshape(rows, columns)
    return matrix * (spread / unit)


def _packed(kind: int, data: Floats) -> bytes:
    if kind == F32:
        return data.astype("<f4").tobytes()
    if kind == F16:
        return data.astype("<f2").tobytes()
    blocks = data.reshape(-1, BLOCK)
    scales = (np.abs(blocks).max(axis=1) / 127).astype("<f2")
    divisors = np.where(scales > 0, scales.astype(np.float64), 1.0)
    packed = np.empty(len(blocks), dtype=[("scale", "<f2"), ("values", "i1", BLOCK)])
    packed["scale"] = scales
    packed["values"] = np.clip(np.round(blocks / divisors[:, None]), -127, 127)
    return packed.tobytes()
