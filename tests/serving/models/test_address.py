"""Names and addresses of models as a hub shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocwright.home import Home
from rocwright.serving.models.address import as_address
from rocwright.serving.models.find import find_model

HUB = "https://huggingface.co"


@pytest.mark.parametrize(
    ("words", "address"),
    [
        ("Qwen/Qwen3-0.6B", "hf:Qwen/Qwen3-0.6B"),
        ("Qwen/Qwen3-GGUF/a/b.gguf", "hf:Qwen/Qwen3-GGUF/a/b.gguf"),
        (f"{HUB}/Qwen/Qwen3-0.6B", "hf:Qwen/Qwen3-0.6B"),
        (f"{HUB}/Qwen/Qwen3-0.6B/tree/main", "hf:Qwen/Qwen3-0.6B"),
        (f"{HUB}/Qwen/Qwen3-0.6B/resolve/main/a.gguf?download=true", "hf:Qwen/Qwen3-0.6B/a.gguf"),
        (f"{HUB}/Qwen/Qwen3-0.6B/blob/v2/a.gguf", "hf:Qwen/Qwen3-0.6B@v2/a.gguf"),
        ("models/a.gguf", ""),
        ("a.gguf", ""),
        ("./Qwen/Qwen3", ""),
        ("https://example.com/a/b.gguf", ""),
    ],
)
def test_a_name_of_a_hub_is_said_as_rocwright_says_it(words: str, address: str) -> None:
    assert as_address(words) == address


@pytest.mark.parametrize(
    ("words", "next_step"),
    [
        (f"{HUB}/Qwen/Qwen3-0.6B", "--model hf:Qwen/Qwen3-0.6B"),
        ("Qwen/Qwen3-0.6B", "--model hf:Qwen/Qwen3-0.6B"),
        ("https://example.com/b.gguf", "download the file, then: --model FILE"),
    ],
)
def test_an_address_is_no_path(home: Home, words: str, next_step: str) -> None:
    with pytest.raises(InputError, match="is no file or folder") as caught:
        find_model(words, ("gguf",), home=home, say=print)
    assert caught.value.next_step == next_step


def test_an_empty_model_is_told_with_its_path(home: Home, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models/a.gguf").touch()
    with pytest.raises(Exception, match=f"{tmp_path}/models/a.gguf is damaged"):
        find_model(str(tmp_path / "models"), ("gguf",), home=home, say=print)
