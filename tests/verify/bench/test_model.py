"""What is measured is data, and figures are read from what a program prints."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rocwheel_samples.tables import each
from rocwright.verify.bench.model import FigureKind, Measurement, measurements, read_figures

KIND = FigureKind(name="prompt", unit="tokens/s", better="higher", pattern=r"^prompt: (\S+) tokens/s$")
LLAMA_BENCH = (
    '{"backends": "Vulkan", "devices": "Vulkan0", "n_prompt": 256, "n_gen": 0, "n_depth": 0, '
    '"avg_ns": 320353268, "avg_ts": 799.117804, "stddev_ts": 0.000000}'
)
"""From llama-bench b11669 on llvmpipe, shortened."""


def test_each_line_that_has_the_number_is_one_run() -> None:
    lines = ["loading", "prompt: 10.5 tokens/s", "prompt: 11 tokens/s", "prompt: much tokens/s"]
    assert read_figures([KIND], lines) == {"prompt": [10.5, 11.0]}


@each("value", ["nan", "inf", "-3", "0", "1e999", "", "0x10"])
def test_what_is_no_number_above_nothing_is_not_there(value: str) -> None:
    assert read_figures([KIND], [f"prompt: {value} tokens/s"]) == {"prompt": []}


@given(st.lists(st.text(max_size=300), max_size=20))
def test_whatever_a_program_prints_is_read(lines: list[str]) -> None:
    assert set(read_figures([KIND], lines)) == {"prompt"}


def test_the_fields_of_llama_bench_are_found() -> None:
    (bench,) = (one for one in measurements() if one.name == "llama-bench")
    assert read_figures(bench.figure, [LLAMA_BENCH]) == {"prompt": [799.117804], "generation": []}


@each("pattern", ["no group", "(two) (groups)", "(unclosed"])
def test_a_pattern_has_one_group(pattern: str) -> None:
    with pytest.raises(ValidationError):
        KIND.model_validate(KIND.model_dump() | {"pattern": pattern})


def test_two_figures_of_one_name_are_refused() -> None:
    (one, *_) = measurements()
    twice: dict[str, Any] = one.model_dump() | {"figure": [KIND.model_dump()] * 2}
    with pytest.raises(ValidationError, match="two figures have one name"):
        Measurement.model_validate(twice)
