"""What a person sees in a terminal while steps run."""

from __future__ import annotations

import sys
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tests.terminal import Screen, run_in_terminal

from rocwheel_samples.tables import each
from rocwright.execution.progress import LiveProgress, RunningStep
from rocwright.execution.row import RowPart, fit

NAMES = ("torch", "packages/runtime-python", "stable-diffusion.cpp-hip")
PROGRAM = """
import time
from rocwright.execution.progress import RunningStep, choose_progress

steps = [RunningStep(name, 14, 100, load=lambda: "14 jobs · 26.10 GiB · ccache 38 %") for name in {names!r}]
with choose_progress() as shown:
    shown.of(lambda: "about 1 h 02 min left · 3 of 11 steps to go · no history of vllm, triton, torch")
    for step in steps:
        shown.started(step)
    for count in range(1, 41):
        for step in steps:
            shown.line(step, f"[{{count * 100}}/7950] Building CXX object caffe2/CMakeFiles/torch.dir/a.o")
        time.sleep(0.03)
    for step in steps:
        shown.ended(step, "built in 3.0 s")
        time.sleep(0.3)
    shown.say("3 steps built")
print("the end")
"""


def shown(columns: int, **env: str) -> tuple[Screen, list[list[str]]]:
    """The screen at the end, and every screen on the way."""
    frames: list[list[str]] = []
    words = [sys.executable, "-c", PROGRAM.format(names=NAMES)]
    code, screen = run_in_terminal(words, columns, env=env, seen=lambda one: frames.append(one.text))
    assert code == 0
    return screen, frames


@each("columns", [100, 80, 60])
def test_names_are_whole_and_no_line_wraps(columns: int) -> None:
    _, frames = shown(columns)
    running = [frame for frame in frames if any("3 of 11" in line or "about 1 h" in line for line in frame)]
    assert len(running) >= 3
    whole = [frame for frame in running if sum("built" in line for line in frame) == 0 and len(frame) >= 4]
    for name in NAMES:
        assert any(line.startswith(f"  {name} ") for line in whole[-1])
    assert all(len(line) < columns for frame in frames for line in frame)
    assert any("left" in line for line in whole[-1] if line.startswith("  torch "))


@pytest.mark.parametrize("columns", [100, 60])
def test_nothing_of_a_frame_is_left_at_the_end(columns: int) -> None:
    screen, _ = shown(columns)
    ended = [f"  {name}: built in 3.0 s" for name in NAMES]
    assert [line for line in screen.text if line] == [*ended, "3 steps built", "the end"]


def test_a_dumb_terminal_is_told_in_plain_lines() -> None:
    screen, _ = shown(80, TERM="dumb")
    lines = [line for line in screen.text if line]
    assert lines[0] == "  torch: started, 14 jobs"
    assert lines[-2:] == ["3 steps built", "the end"]
    assert not screen.styled


@pytest.mark.parametrize(("env", "styled"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_no_color_is_honoured(env: dict[str, str], styled: bool) -> None:
    assert shown(100, **env)[0].styled is styled


@given(width=st.integers(4, 120), names=st.lists(st.text("abc/-", min_size=1, max_size=40), max_size=4))
def test_a_frame_has_no_more_columns_than_the_terminal(width: int, names: list[str]) -> None:
    live = LiveProgress()
    for name in names:
        step = RunningStep(name, 2, 100, load=lambda: "2 jobs")
        step.note("[3/10] cc a very long line of what a compiler is asked to do, with all its options")
        live.started(step)
    page = StringIO()
    Console(width=width, file=page).print(live.frame(width))
    lines = page.getvalue().splitlines()
    assert len(lines) == len(set(names))
    for name, line in zip(dict.fromkeys(names), lines, strict=True):
        assert len(line) <= width
        if len(name) + 3 <= width:
            assert line.startswith(f"  {name}")


def test_what_tells_least_goes_first() -> None:
    parts = [RowPart("40/100", 4), RowPart("40 %", 2), RowPart("2 min left", 1), RowPart("14 jobs", 5)]
    assert fit(parts, 60) == "40/100 · 40 % · 2 min left · 14 jobs"
    assert fit(parts, 30) == "40/100 · 40 % · 2 min left"
    assert fit(parts, 20) == "40 % · 2 min left"
    assert fit(parts, 12) == "2 min left"
    assert fit(parts, 6) == "2 min…"
    assert fit(parts, 0) == ""
