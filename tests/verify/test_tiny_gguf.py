"""The tiny model: the same bytes for the same seed, and a greedy walk with wide gaps."""

from __future__ import annotations

import math
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
import pytest

from rocbase.files.atomic import sha256_file
from rocwright.verify import tiny_gguf
from rocwright.verify.tiny_gguf import BEGIN, FIRST_PIECE, HEADS, LAYERS, NORM_EPSILON, ROPE_BASE, WIDTH

Numbers = npt.NDArray[np.float64]

SHA256 = "14d61a59ce5b70683d01465da6c988dedbc854907d4fae756619986758a3cfcd"
COUNT = 48

# A float16 cache and float16 products move a logit by some 0.01; the checks allow 0.05.
LEAST_GAP = 2.0


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny") / "tiny.gguf"
    tiny_gguf.write_tiny_model(path)
    return path


@pytest.fixture(scope="module")
def weights(model: Path) -> dict[str, Numbers]:
    return {each.name: each.data.astype(np.float64) for each in gguf.GGUFReader(model).tensors}


def prompt(text: str) -> list[int]:
    """Tokens of a text without the pairs that would merge, after the begin token."""
    pieces = tiny_gguf.vocabulary().pieces
    return [BEGIN, *(pieces.index(each, FIRST_PIECE) for each in text)]


def logits(weights: dict[str, Numbers], tokens: list[int]) -> Numbers:
    """A llama forward pass in float64, written from the architecture and not from any backend."""

    def normal(x: Numbers) -> Numbers:
        scaled: Numbers = x / np.sqrt((x * x).mean(-1, keepdims=True) + NORM_EPSILON)
        return scaled

    length, size = len(tokens), WIDTH // HEADS
    angle = np.arange(length)[:, None] * ROPE_BASE ** (-np.arange(0, size, 2) / size)
    turn = np.exp(1j * angle)[:, None, :]

    def rope(x: Numbers) -> Numbers:
        pairs = x.reshape(length, HEADS, size // 2, 2)
        turned = (pairs[..., 0] + 1j * pairs[..., 1]) * turn
        return np.stack([turned.real, turned.imag], axis=-1).reshape(length, HEADS, size)

    x = weights["token_embd.weight"][tokens]
    for layer in range(LAYERS):
        part = {
            name.split(".")[2]: value for name, value in weights.items() if name.startswith(f"blk.{layer}.")
        }
        seen = normal(x) * part["attn_norm"]
        query, key = rope(seen @ part["attn_q"].T), rope(seen @ part["attn_k"].T)
        value = (seen @ part["attn_v"].T).reshape(length, HEADS, size)
        score = np.einsum("ihd,jhd->hij", query, key) / math.sqrt(size)
        score = np.where(np.tri(length, dtype=bool), score, -np.inf)
        share = np.exp(score - score.max(-1, keepdims=True))
        share /= share.sum(-1, keepdims=True)
        x = x + np.einsum("hij,jhd->ihd", share, value).reshape(length, WIDTH) @ part["attn_output"].T
        seen = normal(x) * part["ffn_norm"]
        gate = seen @ part["ffn_gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (seen @ part["ffn_up"].T)) @ part["ffn_down"].T
    found: Numbers = normal(x) * weights["output_norm.weight"] @ weights["output.weight"].T
    return found


def along(weights: dict[str, Numbers], tokens: list[int], walk: list[int]) -> Numbers:
    """The logits from which each token of `walk` is chosen, when all before it were: a row for each."""
    found: Numbers = logits(weights, [*tokens, *walk[:-1]])[len(tokens) - 1 :]
    return found


def test_the_same_seed_gives_the_bytes_on_record(model: Path) -> None:
    assert sha256_file(model) == SHA256


def test_another_seed_gives_other_bytes(tmp_path: Path) -> None:
    tiny_gguf.write_tiny_model(tmp_path / "other.gguf", seed=804)
    assert sha256_file(tmp_path / "other.gguf") != SHA256


def test_it_is_a_few_mebibytes_at_most(model: Path) -> None:
    assert model.stat().st_size < 4 * 2**20


def test_every_matrix_has_rows_of_whole_blocks_and_float32(model: Path) -> None:
    for each in gguf.GGUFReader(model).tensors:
        assert each.shape[0] % 32 == 0
        assert each.tensor_type == gguf.GGMLQuantizationType.F32


def test_every_byte_has_a_token() -> None:
    words = tiny_gguf.vocabulary()
    assert len(words.pieces) == len(words.scores) == len(words.kinds) == len(set(words.pieces))
    assert {f"<0x{byte:02X}>" for byte in range(256)} <= set(words.pieces)


def test_the_successors_are_one_cycle_through_all_printable_pieces() -> None:
    live = len(tiny_gguf.PIECES)
    assert sorted(tiny_gguf.greedy(FIRST_PIECE, live)) == list(range(FIRST_PIECE, FIRST_PIECE + live))


def test_greedy_decoding_walks_the_cycle_with_wide_gaps(weights: dict[str, Numbers]) -> None:
    tokens = prompt("A_quick_brown_fox_jumps_over_the_lazy_dog")
    walk = tiny_gguf.greedy(tokens[-1], COUNT)
    rows = along(weights, tokens, walk)
    second, best = np.sort(rows)[:, -2:].T
    assert rows.argmax(axis=1).tolist() == walk
    assert len(set(walk)) == COUNT
    assert (best - second).min() > LEAST_GAP


@pytest.mark.parametrize("part", ["blk.0.attn_q", "blk.0.attn_k", "blk.0.attn_v", "blk.0.attn_output"])
def test_without_a_part_of_the_first_attention_other_tokens_come(
    weights: dict[str, Numbers], part: str
) -> None:
    tokens = prompt("fox")
    broken = weights | {f"{part}.weight": np.zeros_like(weights[f"{part}.weight"])}
    walk = tiny_gguf.greedy(tokens[-1], COUNT)
    assert along(broken, tokens, walk).argmax(axis=1).tolist() != walk


@pytest.mark.parametrize("part", ["blk.0.ffn_down", "blk.1.attn_v", "blk.1.attn_q", "blk.1.ffn_gate"])
def test_without_another_part_the_logits_move_far_beyond_rounding(
    weights: dict[str, Numbers], part: str
) -> None:
    tokens = prompt("A_quick_brown_fox")
    broken = weights | {f"{part}.weight": np.zeros_like(weights[f"{part}.weight"])}
    moved = np.abs(logits(broken, tokens) - logits(weights, tokens))[-1]
    assert moved.max() > 0.5
