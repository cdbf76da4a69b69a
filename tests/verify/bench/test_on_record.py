"""Figures come back from the records as they were kept, and two stacks stand side by side."""

from __future__ import annotations

import pytest

from rocbase.errors import InputError
from rocwright.home import Home
from rocwright.records.model import Figure, Run, StepRun, Which
from rocwright.records.opening import open_records
from rocwright.records.upkeep import export, take_in
from rocwright.verify.bench.on_record import figures_of, measured, side_by_side
from rocwright.verify.bench.text import COMPARED, compared, rows, where

SOFTWARE = "llvmpipe (LLVM 22.1.8, 256 bits)"


def figure(*values: float, name: str = "generation", device: str = SOFTWARE) -> Figure:
    return Figure(name=name, unit="tokens/s", better="higher", values=values, device=device)


def run(number: int, *figures: Figure, stack: str = "vllm", lock: str = "one") -> Run:
    step = StepRun(name="bench/vllm/speed", key="", outcome="ok", kind="bench", measured=figures)
    return Run(
        id=f"run-{number}",
        command="bench",
        started=f"2026-01-{number:02d}T00:00:00Z",
        seconds=1,
        stack=stack,
        gpu=("gfx1151",),
        base="debian:sid",
        outcome="measured",
        lock=lock,
        steps=(step,),
    )


def test_the_newest_figure_of_each_device_and_lock_counts(home: Home) -> None:
    old, new, other = figure(1, 2), figure(3, 4.5), figure(9, device="cpu")
    with open_records(home) as records:
        records.put(run(1, old, other))
        records.put(run(2, new))
        records.put(run(3, figure(7), lock="two"))
        assert measured(records, Which(stack="vllm", lock="one")) == (new, other)
        assert measured(records, Which(stack="vllm", lock="two")) == (figure(7),)
        assert records.matrix() == []


def test_figures_are_exported_and_taken_in(home: Home, tmp_path_factory: pytest.TempPathFactory) -> None:
    with open_records(home) as records:
        records.put(run(1, figure(3, 4.5)))
        lines = list(export(records))
    with open_records(Home(tmp_path_factory.mktemp("other"))) as records:
        assert take_in(records, lines) == 1
        assert measured(records, Which(stack="vllm")) == (figure(3, 4.5),)


def test_a_stack_without_figures_says_what_makes_some(home: Home) -> None:
    with open_records(home) as records:
        records.put(run(1))
        with pytest.raises(InputError) as refused:
            figures_of(records, "vllm", "gfx1151")
    assert refused.value.next_step == "rocwright bench vllm --gpu gfx1151"


def test_two_backends_stand_side_by_side_each_on_its_device() -> None:
    slow, fast = figure(100, 101, 99, 100, 100), figure(150, 151, 149, 150, 150, device="cpu")
    (row,) = compared(side_by_side([slow], [fast]))
    told = dict(zip(COMPARED, row, strict=True))
    assert (told["change"], told["says"]) == ("+50.0%", "better")
    assert told["on"] == f"{SOFTWARE}, in software / cpu"
    (row,) = compared(side_by_side([fast], [slow]))
    assert row[-2] == "worse"
    (row,) = compared(side_by_side([slow], [figure(150, 120)]))
    assert "too few runs" in row[-2]
    (row,) = compared(side_by_side([slow], [figure(99.9, 101, 99, 100, 100)]))
    assert row[-2] == "within the spread"
    assert compared(side_by_side([slow], [figure(1, name="prompt")])) == []


def test_a_device_that_is_a_program_is_called_software() -> None:
    assert where(SOFTWARE).endswith("in software")
    assert where("AMD Radeon 780M Graphics (gfx1103)") == "AMD Radeon 780M Graphics (gfx1103)"
    assert where("cpu") == "cpu"
    ((name, median, spread, unit, *_),) = rows([figure(1234.5)])
    assert (name, median, spread, unit) == ("generation", "1,234", "-", "tokens/s")
