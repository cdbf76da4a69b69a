"""What is taken out of a text before others see it."""

from __future__ import annotations

import pytest

from rocwright.diagnosis.masking import masked

SECRET = "Zm9vOmJhcg-and-more"


@pytest.mark.parametrize(
    "line",
    [
        f"HF_TOKEN={SECRET}",
        f"api-key: {SECRET}",
        f"> Authorization: Bearer {SECRET}",
        f"authorization:basic {SECRET}",
        f'{{"model": "x", "api_key": "{SECRET}", "stream": true}}',
        f'{{"api_key":"{SECRET}"}}',
        f"{{'hf_token': 'two words and {SECRET}'}}",
        f'"{{\\"password\\": \\"{SECRET}\\"}}"',
        f'"Authorization": "Bearer {SECRET}"',
        f"cloning https://me:{SECRET}@example.org/x.git",
    ],
)
def test_what_a_line_itself_calls_a_secret_is_masked(line: str) -> None:
    assert SECRET not in masked(line, ())
    assert "***" in masked(line, ())


def test_what_follows_a_secret_in_json_stays() -> None:
    line = f'{{"api_key": "{SECRET}", "stream": true}}'
    assert masked(line, ()) == '{"api_key": ***, "stream": true}'


@pytest.mark.parametrize(
    "line",
    [
        '{"max_tokens": 16, "tokenizer": "gpt2"}',
        "slot update_slots: id  0 | task 0 | prompt done, n_tokens = 11, batch.n_tokens = 11",
        "print_info: EOS token        = 2 '</s>'",
        "load: control token: 128009 '<|eot_id|>' is not marked as EOG",
        "SamplingParams(stop_token_ids=[], max_tokens=16, min_tokens=0, skip_special_tokens=True)",
        "tokenizer='facebook/opt-125m', tokenizer_revision=None, max_num_batched_tokens=2048,",
        "tokens_per_second: 1,204.5",
    ],
)
def test_a_count_of_tokens_is_no_secret(line: str) -> None:
    assert masked(line, ()) == line


@pytest.mark.parametrize(
    "line",
    [
        f"HF_TOKENS={SECRET},",
        f"tokenizer_token={SECRET}",
        "HF_TOKEN=1234567890123",
        "password: 1234",
        "token_secret=[12]",
        f"max_tokens=5,HF_TOKEN={SECRET}",
        f"TOKEN={SECRET}",
    ],
)
def test_a_secret_named_like_a_count_is_masked(line: str) -> None:
    assert masked(line, ()) == line[: min(line.index(mark) for mark in "=:" if mark in line) + 1] + (
        " ***" if ": " in line else "***"
    )


def test_a_line_that_only_speaks_of_authorization_stays() -> None:
    line = "error: authorization: the bearer of this was refused"
    assert masked(line, ()) == line


def test_a_value_that_is_known_is_masked_wherever_it_stands() -> None:
    assert masked(f"x{SECRET}y", (SECRET,)) == "x***y"
