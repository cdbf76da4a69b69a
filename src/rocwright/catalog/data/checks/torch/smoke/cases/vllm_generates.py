"""vLLM: it imports, finds its platform, and a tiny model of random weights generates, twice the same."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smoke.model import AbsentError, Case, Context, Told, WrongError

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKENS = 16
WORDS = 512
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": WORDS,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float16",
}
"""A llama of two layers; the engine fills it with dummy weights of its own."""


def cases() -> Iterator[Case]:
    for run in (loads, platform, generates):
        yield Case("vllm", run.__name__, run)


def imported() -> Any:
    """vllm. Raises AbsentError where it is not installed."""
    try:
        import vllm
    except ModuleNotFoundError as error:
        if error.name != "vllm":
            raise
        raise AbsentError("vllm is not installed") from None
    return vllm


def loads(context: Context) -> Told:
    """The package imports."""
    return Told(f"vllm {imported().__version__} on torch {context.torch.__version__}")


def platform(context: Context) -> Told:
    """vLLM takes the device for what torch takes it for."""
    imported()
    from vllm.platforms import current_platform

    kind = type(current_platform).__name__
    expected = "rocm" if context.torch.version.hip else "cuda"
    if context.on_gpu and expected not in kind.lower():
        raise WrongError(f"vLLM found {kind} where torch has a device of {expected}")
    return Told(f"{kind}, device type {current_platform.device_type!r}")


def generates(context: Context) -> Told:
    """Greedy decoding of a fixed prompt gives the tokens asked for, all of the vocabulary, twice the same."""
    vllm = imported()
    if not context.on_gpu:
        raise AbsentError("only tried on a GPU")
    with tempfile.TemporaryDirectory(prefix="smoke-vllm-") as folder:
        (Path(folder) / "config.json").write_text(json.dumps(CONFIG))
        engine = vllm.LLM(
            model=folder,
            load_format="dummy",
            skip_tokenizer_init=True,
            enforce_eager=True,
            max_model_len=128,
            gpu_memory_utilization=0.3,
            seed=context.seed,
        )
        wanted = vllm.SamplingParams(temperature=0, max_tokens=TOKENS, ignore_eos=True, detokenize=False)
        prompt = {"prompt_token_ids": [1, *range(7, 40)]}
        first, again = (list(engine.generate([prompt], wanted)[0].outputs[0].token_ids) for _ in range(2))
    if len(first) != TOKENS or not all(0 <= one < WORDS for one in first):
        raise WrongError(f"{first} where {TOKENS} tokens below {WORDS} are expected")
    if first != again:
        raise WrongError(f"{first}, and then {again}, for the same prompt")
    return Told(f"{TOKENS} tokens, {len(set(first))} different ones, twice the same")
