"""What one sees while steps run."""

from __future__ import annotations

import threading
import time
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocbase.units import duration, size
from rocwheel_samples.tables import each
from rocwright.execution import progress
from rocwright.execution.progress import GOES_ON, LiveProgress, PlainProgress, RunningStep, parse_counter

pytestmark = pytest.mark.timing


@each(
    ("line", "counter"),
    [
        ("[12/345] Building CXX object a.o", (12, 345)),
        ("[ 12%] Building CXX object a.o", (12, 100)),
        ("[100%] Built target x", (100, 100)),
        ("  [1/2] linking", (1, 2)),
        ("[0/7] ninja begins", (0, 7)),
        ("[5/0] nothing", None),
        ("[8/7] more than all", None),
        ("[101%] more than all", None),
        ("building [1/2]", None),
        ("[a/b]", None),
        ("", None),
        ("[12]", None),
    ],
)
def test_the_counters_of_ninja_and_make_are_read(line: str, counter: tuple[int, int] | None) -> None:
    assert parse_counter(line) == counter


@given(text=st.text(max_size=40))
def test_a_counter_never_says_more_than_all(text: str) -> None:
    found = parse_counter(text)
    assert found is None or 0 <= found[0] <= found[1] > 0


@each(
    ("seconds", "words"),
    [
        (0, "0.0 s"),
        (4.21, "4.2 s"),
        (12.4, "12 s"),
        (60, "1 min 00 s"),
        (200.9, "3 min 20 s"),
        (3599, "59 min 59 s"),
        (3720, "1 h 02 min"),
        (100 * 3600, "100 h 00 min"),
    ],
)
def test_times_are_told_for_people(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@given(seconds=st.floats(0, 10**6))
def test_no_time_is_told_with_sixty_of_anything(seconds: float) -> None:
    assert not {"60 s", "60 min", "60.0 s"} & {
        " ".join(duration(seconds).split()[at : at + 2]) for at in (0, 2)
    }


@each(
    ("count", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536 * 1024, "1.5 MiB"),
        (4 * 1024**3, "4.00 GiB"),
        (5000 * 1024**3, "5000.00 GiB"),
    ],
)
def test_sizes_are_told_for_people(count: int, words: str) -> None:
    assert size(count) == words


def running(**more: float) -> RunningStep:
    return RunningStep("torch", 14, **more)  # type: ignore[arg-type]


def test_a_step_without_counter_or_history_tells_neither_share_nor_time() -> None:
    step = running()
    step.note("compiling")
    assert (step.share, step.left) == (None, None)
    assert step.describe().endswith("no history")
    assert step.last == "compiling"


def test_the_share_done_is_the_counters() -> None:
    step = running(expected=1000)
    step.note("[25/100] cc")
    assert step.share == 0.25


def test_the_time_left_follows_from_the_counter() -> None:
    step = running()
    step.note("[25/100] cc")
    step.counting_since = time.monotonic() - 50
    assert step.left == pytest.approx(150, rel=0.01)
    assert "25 %" in step.describe()
    assert "2 min 30 s left" in step.describe() or "2 min 29 s left" in step.describe()


def test_the_time_left_is_weighed_between_the_counter_and_the_last_time() -> None:
    """A quarter done in 50 s: 150 s more by the counter; 950 s more by the last time."""
    step = running(expected=1000, begun=time.monotonic() - 50)
    step.note("[25/100] cc")
    step.counting_since = time.monotonic() - 50
    assert step.left == pytest.approx(0.25 * 150 + 0.75 * 950, rel=0.01)
    step.note("[99/100] cc")
    assert step.left is not None
    assert step.left < 15


def test_a_first_part_of_what_was_counted_last_time_is_no_whole() -> None:
    """LLVM's own build counts to 300; with what follows, it was 1,000 the last time."""
    step = running(expected=100, past=1000)
    step.note("[300/300] the first part")
    assert step.share == 0.3
    step.note("[50/700] the second part")
    assert (step.share, step.counted) == (0.35, 350)
    assert "50/700 · 35 %" in step.describe()


def test_a_step_that_goes_on_counts_what_is_left_and_expects_that_much() -> None:
    """500 of 2,000 things are left, of which the last time took 4,000 s."""
    step = running(expected=4000, past=2000)
    step.note(f"{GOES_ON}: 1 of its 2 commands had ended")
    step.note("[1/500] cc")
    assert step.share == 1 / 500
    step.counting_since = step.begun = time.monotonic() - 20
    step.note("[11/500] cc")
    assert step.done == (11, 500)
    assert step.left == pytest.approx(980, rel=0.02)
    step.note(f"{GOES_ON} says a command of a step")
    assert running(expected=1, past=9).resumed is False


def test_the_time_left_follows_what_is_seen_within_a_minute_or_two() -> None:
    """Ten minutes were expected, and a thing takes 18 s."""
    step = running(expected=600, begun=time.monotonic() - 110)
    step.note("[1/1199] cc")
    step.counting_since = time.monotonic() - 72
    step.note("[5/1199] cc")
    assert step.left == pytest.approx(18 * 1194, rel=0.05)


def test_without_history_the_line_says_that_it_only_counts() -> None:
    step = running()
    step.note("[25/100] cc")
    assert step.describe().endswith("no history: counting steps")


def test_the_first_counts_are_too_few_to_tell_a_time_from() -> None:
    step = running()
    step.note("[2/100] cc")
    assert step.left is None


def test_the_time_left_follows_from_the_last_run_where_nothing_is_counted() -> None:
    step = running(expected=100, begun=time.monotonic() - 40)
    assert step.left == pytest.approx(60, rel=0.01)
    assert step.share == pytest.approx(0.4, rel=0.01)


def test_a_step_that_takes_longer_than_last_time_is_never_told_as_done() -> None:
    step = running(expected=10, begun=time.monotonic() - 100)
    assert step.share == 0.99
    assert step.left is None


def test_a_counter_that_begins_anew_counts_its_time_anew() -> None:
    step = running()
    step.note("[90/100] first part")
    step.counting_since = time.monotonic() - 1000
    step.note("[10/40] second part")
    assert step.counter == (10, 40)
    assert step.left is not None
    assert step.left < 10


def test_without_a_terminal_a_step_is_told_in_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    step = running()
    with PlainProgress() as shown:
        shown.started(step)
        shown.line(step, "[1/2] cc")
        shown.ended(step, "done in 3 s")
    assert capsys.readouterr().err == "  torch: started, 14 jobs\n  torch: done in 3 s\n"


def test_without_a_terminal_a_long_step_is_told_of_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PLAIN_EVERY", 0)
    step = running()
    PlainProgress().line(step, "[50/100] cc")
    assert "50 %" in capsys.readouterr().err


def test_a_step_that_prints_nothing_is_told_of_until_it_ends(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SILENCE", 0.02)
    shown, step, other = PlainProgress(), running(), RunningStep(name="vision", jobs=1)
    said = ""
    for one in (step, other):
        shown.started(one)
    shown.ended(other, "done")
    until = time.monotonic() + 120
    while said.count("no history") < 2 and time.monotonic() < until:
        time.sleep(0.01)
        said += capsys.readouterr().err
    assert said.count("  torch: ") >= 3
    shown.ended(step, "done in 3 s")
    time.sleep(0.1)
    assert capsys.readouterr().err.endswith("  torch: done in 3 s\n")
    assert not any(one.name.endswith("(_break_silence)") and one.is_alive() for one in threading.enumerate())


def test_the_whole_is_told_beside_the_steps(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.console import Console

    monkeypatch.setattr(progress, "PLAIN_EVERY", 0)
    plain, live = PlainProgress(), LiveProgress()
    page = StringIO()
    for shown in (plain, live):
        shown.of(lambda: "about 2 h left")
    plain.line(running(), "[50/100] cc")
    assert capsys.readouterr().err.endswith("; in all about 2 h left\n")
    Console(file=page, width=160).print(live.frame(160))
    assert page.getvalue().split() == ["in", "all", "about", "2", "h", "left"]


def test_on_a_terminal_every_running_step_has_a_line_with_a_bar() -> None:
    from rich.console import Console

    shown = LiveProgress()
    one, other = running(), RunningStep("triton", 1, 100, load=lambda: "1 job · 2.00 GiB")
    one.load = lambda: "14 jobs · 26.10 GiB"
    one.note("[25/100] Building [b]not markup[/b]")
    for step in (one, other):
        shown.started(step)
    page = StringIO()
    Console(file=page, width=160).print(shown.frame(160))
    first, second = page.getvalue().splitlines()
    assert first.split()[0] == "torch"
    assert "25 %" in first
    assert "14 jobs · 26.10 GiB" in first
    assert "[b]not markup[/b]" in first
    assert second.split()[0] == "triton"
    assert "1 job · 2.00 GiB" in second
    shown.ended(one, "done")
    page = StringIO()
    Console(file=page, width=160).print(shown.frame(160))
    assert "torch" not in page.getvalue()
