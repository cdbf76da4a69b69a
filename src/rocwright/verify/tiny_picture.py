"""Small models of pictures for stable-diffusion.cpp, the same bytes for the same seed, for smoke tests.

Three files: what makes a picture out of noise, what reads the words, and what turns the result into colours.
The weights are random and of right shapes: a picture of the size that was asked for says that the program and
its device work, the same one for the same seed on each that is right, within its tolerance.

Of the families that stable-diffusion.cpp knows, this one (FLUX.2 klein, a Qwen3 that reads the words, a
TAEF2 that decodes) takes its sizes from the files: src/flux.hpp, src/llm.hpp and src/tae.hpp of master-596.
The reader has heads of fixed sizes, and the vocabulary of its tokenizer.
"""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt

from rocbase.files.atomic import write_atomic

SEED = 803
WIDTH = 128  # one head of 128, which the places of a picture's parts take
FEED_FORWARD = 3 * WIDTH
STEPS = 256  # numbers that a time is told in
CHANNELS = 128  # of what is made: 32 for each of two by two points

WORD = 32  # a block of Q8_0
VOCABULARY = 151_936
HEADS, KEY_HEADS, HEAD = 32, 8, 128

DECODED = 32
COLOURS = 64
CONTRAST = np.float32(0.125)  # keeps most of a picture between black and white
EMBEDDING = "model.embed_tokens.weight"

Floats = npt.NDArray[np.float32]
Tensors = Iterator[tuple[str, Floats]]


def write_tiny_diffusion(path: Path, *, seed: int = SEED) -> None:
    """Write what makes a picture out of noise (about 4 MB), whole or not at all."""
    _write(path, "flux", _diffusion(f"{seed}:diffusion"))


def write_tiny_reader(path: Path, *, seed: int = SEED) -> None:
    """Write what reads the words (about 6.5 MB), whole or not at all."""
    _write(path, "qwen3", _reader(f"{seed}:reader"))


def write_tiny_decoder(path: Path, *, seed: int = SEED) -> None:
    """Write what turns the result into colours and back (about 5 MB), whole or not at all."""
    _write(path, "taef2", _coder(f"{seed}:decoder"))


def _write(path: Path, architecture: str, tensors: Tensors) -> None:
    q8 = gguf.GGMLQuantizationType.Q8_0
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "model.gguf"
        writer = gguf.GGUFWriter(draft, architecture)
        for name, tensor in tensors:
            if tensor.ndim == 2 and tensor.size >= VOCABULARY:
                writer.add_tensor(name, gguf.quants.quantize(tensor, q8), raw_dtype=q8)
            else:
                writer.add_tensor(name, tensor.astype(np.float16) if tensor.ndim == 4 else tensor)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        write_atomic(path, draft.read_bytes())


def _diffusion(seed: str) -> Tensors:
    """One block of both streams, one of a single stream."""
    yield "img_in.weight", _random(f"{seed}:in", WIDTH, CHANNELS)
    yield "txt_in.weight", _random(f"{seed}:words", WIDTH, WORD)
    yield "time_in.in_layer.weight", _random(f"{seed}:time", WIDTH, STEPS)
    yield "time_in.out_layer.weight", _random(f"{seed}:time:out", WIDTH, WIDTH)
    for name, parts in (
        ("double_stream_modulation_img", 6),
        ("double_stream_modulation_txt", 6),
        ("single_stream_modulation", 3),
    ):
        yield f"{name}.lin.weight", _random(f"{seed}:{name}", parts * WIDTH, WIDTH)
    for stream in ("img", "txt"):
        name = f"double_blocks.0.{stream}"
        yield f"{name}_attn.qkv.weight", _random(f"{seed}:{name}:qkv", 3 * WIDTH, WIDTH)
        yield f"{name}_attn.proj.weight", _random(f"{seed}:{name}:proj", WIDTH, WIDTH)
        yield from _head_norms(f"{name}_attn.norm")
        yield f"{name}_mlp.0.weight", _random(f"{seed}:{name}:up", 2 * FEED_FORWARD, WIDTH)
        yield f"{name}_mlp.2.weight", _random(f"{seed}:{name}:down", WIDTH, FEED_FORWARD)
    name = "single_blocks.0"
    yield f"{name}.linear1.weight", _random(f"{seed}:{name}:1", 3 * WIDTH + 2 * FEED_FORWARD, WIDTH)
    yield f"{name}.linear2.weight", _random(f"{seed}:{name}:2", WIDTH, WIDTH + FEED_FORWARD)
    yield from _head_norms(f"{name}.norm")
    yield "final_layer.linear.weight", _random(f"{seed}:out", CHANNELS, WIDTH)
    yield "final_layer.adaLN_modulation.1.weight", _random(f"{seed}:last", 2 * WIDTH, WIDTH)


def _head_norms(name: str) -> Tensors:
    for part in ("query", "key"):
        yield f"{name}.{part}_norm.scale", np.ones(HEAD, np.float32)


def _reader(seed: str) -> Tensors:
    yield EMBEDDING, _random(f"{seed}:embedding", VOCABULARY, WORD)
    name = "model.layers.0"
    for norm in ("input_layernorm", "post_attention_layernorm"):
        yield f"{name}.{norm}.weight", np.ones(WORD, np.float32)
    for part, heads in (("q", HEADS), ("k", KEY_HEADS), ("v", KEY_HEADS)):
        yield f"{name}.self_attn.{part}_proj.weight", _random(f"{seed}:{part}", heads * HEAD, WORD)
    for part in ("q", "k"):
        yield f"{name}.self_attn.{part}_norm.weight", np.ones(HEAD, np.float32)
    yield f"{name}.self_attn.o_proj.weight", _random(f"{seed}:o", WORD, HEADS * HEAD)
    for part in ("gate_proj", "up_proj"):
        yield f"{name}.mlp.{part}.weight", _random(f"{seed}:{part}", 2 * WORD, WORD)
    yield f"{name}.mlp.down_proj.weight", _random(f"{seed}:down", WORD, 2 * WORD)
    yield "model.norm.weight", np.ones(WORD, np.float32)


def _coder(seed: str) -> Tensors:
    """Both ways: sd-server loads what reads a picture, too."""
    yield from _decoder(seed)
    yield from _encoder(f"{seed}:back")


def _encoder(seed: str) -> Tensors:
    """A first layer and a block, three stages of half the size and three blocks each, and the result."""
    yield from _convolution("encoder.layers.0", f"{seed}:0", COLOURS, 3)
    yield from _block("encoder.layers.1", f"{seed}:1", middle=False)
    layer = 2
    for stage in range(3):
        yield from _convolution(f"encoder.layers.{layer}", f"{seed}:{layer}", COLOURS, COLOURS, bias=False)
        for number in range(layer + 1, layer + 4):
            yield from _block(f"encoder.layers.{number}", f"{seed}:{number}", middle=stage == 2)
        layer += 4
    yield from _convolution(f"encoder.layers.{layer}", f"{seed}:{layer}", DECODED, COLOURS)


def _decoder(seed: str) -> Tensors:
    """A first layer, three stages of three blocks and an upscaling each, a last block, and the colours."""
    yield from _convolution("decoder.layers.0", f"{seed}:0", COLOURS, DECODED)
    layer = 2
    for stage in range(3):
        for _ in range(3):
            yield from _block(f"decoder.layers.{layer}", f"{seed}:{layer}", middle=stage == 0)
            layer += 1
        layer += 1  # upscaling has no weights
        yield from _convolution(f"decoder.layers.{layer}", f"{seed}:{layer}", COLOURS, COLOURS, bias=False)
        layer += 1
    yield from _block(f"decoder.layers.{layer}", f"{seed}:{layer}", middle=False)
    last = _random(f"{seed}:{layer + 1}", 3, COLOURS * 9) * CONTRAST
    yield f"decoder.layers.{layer + 1}.weight", last.reshape(3, COLOURS, 3, 3)
    yield f"decoder.layers.{layer + 1}.bias", np.full(3, 0.5, np.float32)


def _block(name: str, seed: str, *, middle: bool) -> Tensors:
    for number in (0, 2, 4):
        yield from _convolution(f"{name}.conv.{number}", f"{seed}:{number}", COLOURS, COLOURS)
    if middle:
        yield from _convolution(f"{name}.pool.0", f"{seed}:p0", 4 * COLOURS, COLOURS, edge=1, bias=False)
        yield f"{name}.pool.1.weight", np.ones(4 * COLOURS, np.float32)
        yield f"{name}.pool.1.bias", np.zeros(4 * COLOURS, np.float32)
        yield from _convolution(f"{name}.pool.3", f"{seed}:p3", COLOURS, 4 * COLOURS, edge=1, bias=False)


def _convolution(
    name: str, seed: str, outputs: int, inputs: int, *, edge: int = 3, bias: bool = True
) -> Tensors:
    flat = _random(seed, outputs, inputs * edge * edge)
    yield f"{name}.weight", flat.reshape(outputs, inputs, edge, edge)
    if bias:
        yield f"{name}.bias", np.zeros(outputs, np.float32)


def _random(label: str, rows: int, columns: int) -> Floats:
    """Evenly spread numbers of mean 0 that keep the size of what they are multiplied with."""
    data = hashlib.shake_256(label.encode()).digest(rows * columns)
    drawn = 2 * np.frombuffer(data, dtype=np.uint8).astype(np.int64) - 255
    unit = math.sqrt((256**2 - 1) / 3)
    matrix: Floats = (drawn / (unit * math.sqrt(columns))).astype(np.float32).reshape(rows, columns)
    return matrix
