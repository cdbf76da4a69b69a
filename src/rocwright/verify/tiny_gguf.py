"""A small llama model in GGUF, the same bytes everywhere for the same seed, for smoke tests of inference.

The weights are random but not arbitrary. The first layer's attention turns a token's embedding by an
orthogonal map, and the output row of the token's successor is that turned embedding: greedy decoding walks a
cycle through all printable pieces with a wide gap between the best logit and the next, so that two correct
backends agree on every token, while one that gets attention, the cache or a matrix product wrong does not.
The second layer and both feed-forward parts add to every logit, so that their faults show in the logits.

Only hashes and integer products decide the bytes (no BLAS, no LAPACK), then one rounding to float32.
"""

from __future__ import annotations

import hashlib
import math
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import gguf
import numpy as np
import numpy.typing as npt

from rocbase.files.atomic import write_atomic

SEED = 803
WIDTH = 128  # a power of two (Hadamard), and a multiple of 32 (ggml's block)
HEADS = 2
FEED_FORWARD = 256
LAYERS = 2
CONTEXT = 2048
ROPE_BASE = 10000.0
NORM_EPSILON = 1e-5

UNKNOWN, BEGIN, END = 0, 1, 2
FIRST_BYTE = 3
FIRST_PIECE = FIRST_BYTE + 256
SPACE = "\u2581"  # SentencePiece's mark for a space
PAIRS = "th he in er an re on at en nd ti es or te of ed is it al ar st to nt"  # codespell:ignore nd,te
PIECES = (SPACE, *(chr(code) for code in range(0x21, 0x7F)), *PAIRS.split())

# How strongly the parts act; together they keep the gap wide and every part visible in the logits.
FOCUS = 0.9  # query and key gain: attention looks mostly at the token itself
TURN = 1.5  # the first layer's attention, which carries the successor
STIR = 0.5  # the second layer's attention
MIX = 1.0  # each of the three matrices of a feed-forward part
LOGIT = 10.0  # the length of the output rows times the square root of the width

TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


class Vocabulary(NamedTuple):
    """SentencePiece pieces with their scores and kinds; a token's id is its place."""

    pieces: list[str]
    scores: list[float]
    kinds: list[int]


def write_tiny_model(path: Path, *, seed: int = SEED) -> None:
    """Write the model of `seed` to `path`, whole or not at all (about 1.7 MB, float32)."""
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "model.gguf"
        writer = gguf.GGUFWriter(draft, "llama")
        _add_metadata(writer, seed)
        for name, tensor in tensors(seed).items():
            writer.add_tensor(name, tensor)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        write_atomic(path, draft.read_bytes())


def greedy(token: int, count: int, *, seed: int = SEED) -> list[int]:
    """The `count` tokens that greedy decoding gives after `token`, which must be a piece (not a byte)."""
    following = successors(seed)
    walk = []
    for _ in range(count):
        token = following[token]
        walk.append(token)
    return walk


def successors(seed: int) -> dict[int, int]:
    """For each printable piece the piece that follows it; together they are one cycle."""
    ring = sorted(_live(), key=lambda token: _bytes(f"{seed}:ring:{token}", 8))
    return dict(zip(ring, [*ring[1:], ring[0]], strict=True))


def vocabulary() -> Vocabulary:
    """Three control pieces, a piece for every byte (so that any text has tokens), and printable pieces."""
    kind = gguf.TokenType
    fixed = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [kind.UNKNOWN, kind.CONTROL, kind.CONTROL] + [kind.BYTE] * 256 + [kind.NORMAL] * len(PIECES)
    scores = [0.0] * len(fixed) + [-float(place) for place in range(len(PIECES))]
    return Vocabulary([*fixed, *PIECES], scores, [int(code) for code in kinds])


def tensors(seed: int) -> dict[str, Floats]:
    """All weights by their name in GGUF, as rows of outputs by columns of inputs."""
    size = FIRST_PIECE + len(PIECES)
    embedding = _noise(f"{seed}:embedding", size, WIDTH)
    value, out = _turn(f"{seed}:value"), _turn(f"{seed}:out")
    turned = embedding @ (out @ value).T
    rows = _noise(f"{seed}:output", size, WIDTH)
    for token, following in successors(seed).items():
        rows[following] = turned[token]

    unit = 1.0 / math.sqrt(WIDTH)
    weights: dict[str, Floats] = {
        "token_embd.weight": _rows_of_length(embedding, math.sqrt(WIDTH)),
        "output_norm.weight": np.ones(WIDTH, np.float32),
        "output.weight": _rows_of_length(rows, LOGIT * unit),
    }
    for layer in range(LAYERS):
        key = f"{seed}:{layer}"
        query = _scaled(_turn(f"{key}:query"), FOCUS * unit)
        if layer > 0:
            value, out = _turn(f"{key}:value"), _turn(f"{key}:out")
        weights |= {
            f"blk.{layer}.attn_norm.weight": np.ones(WIDTH, np.float32),
            f"blk.{layer}.attn_q.weight": query,
            f"blk.{layer}.attn_k.weight": query,
            f"blk.{layer}.attn_v.weight": _scaled(value, unit),
            f"blk.{layer}.attn_output.weight": _scaled(out, unit * (STIR if layer else TURN)),
            f"blk.{layer}.ffn_norm.weight": np.ones(WIDTH, np.float32),
            f"blk.{layer}.ffn_gate.weight": _random(f"{key}:gate", FEED_FORWARD, WIDTH),
            f"blk.{layer}.ffn_up.weight": _random(f"{key}:up", FEED_FORWARD, WIDTH),
            f"blk.{layer}.ffn_down.weight": _random(f"{key}:down", WIDTH, FEED_FORWARD),
        }
    return weights


def _add_metadata(writer: Any, seed: int) -> None:
    words = vocabulary()
    writer.add_name(f"rocwright tiny llama, seed {seed}")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_vocab_size(len(words.pieces))
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(NORM_EPSILON)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(words.pieces)
    writer.add_token_scores(words.scores)
    writer.add_token_types(words.kinds)
    writer.add_bos_token_id(BEGIN)
    writer.add_eos_token_id(END)
    writer.add_unk_token_id(UNKNOWN)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)


def _live() -> range:
    return range(FIRST_PIECE, FIRST_PIECE + len(PIECES))


def _bytes(label: str, count: int) -> bytes:
    return hashlib.shake_256(label.encode()).digest(count)


def _noise(label: str, rows: int, columns: int) -> Integers:
    """Odd numbers from -255 to 255, evenly spread, so that their mean is 0."""
    drawn = np.frombuffer(_bytes(label, rows * columns), dtype=np.uint8).astype(np.int64)
    return (2 * drawn - 255).reshape(rows, columns)


def _turn(label: str) -> Integers:
    """A matrix of +1 and -1 with orthogonal rows: Sylvester's, its rows and columns signed and mixed."""
    matrix: Integers = np.ones((1, 1), dtype=np.int64)
    while len(matrix) < WIDTH:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    drawn = np.frombuffer(_bytes(label, 2 * WIDTH), dtype=np.uint8).astype(np.int64)
    signs = 1 - 2 * (drawn & 1)
    mixed = np.argsort(drawn[WIDTH:], kind="stable")
    result: Integers = (matrix * signs[:WIDTH, None] * signs[None, WIDTH:])[:, mixed]
    return result


def _random(label: str, rows: int, columns: int) -> Floats:
    spread = math.sqrt((256**2 - 1) / 3)  # the standard deviation of _noise
    return _scaled(_noise(label, rows, columns), MIX / (spread * math.sqrt(columns)))


def _scaled(matrix: Integers, factor: float) -> Floats:
    return (matrix * factor).astype(np.float32)


def _rows_of_length(matrix: Integers, length: float) -> Floats:
    lengths = np.sqrt((matrix * matrix).sum(axis=1).astype(np.float64))
    result: Floats = (matrix / lengths[:, None] * length).astype(np.float32)
    return result
