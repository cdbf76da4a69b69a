"""What is drawn on the server: lines stay in their box, circles of steps end."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from importlib.resources import files

from hypothesis import given, settings
from hypothesis import strategies as st

from rocbase.units import size
from rocwright.records.model import Artifact, Figure, Sample, StepAt, StepRun
from rocwright.web.charts import HEIGHT, WIDTH, chart
from rocwright.web.graph import GAP_X, graph
from rocwright.web.graph import WIDTH as BOX
from rocwright.web.pages import charts
from rocwright.web.render import ago, day, render, short_device
from rocwright.web.speeds import by_lock, speeds
from rocwright.web.trends import figures, side_by_side
from tests.web.serving import a_run, a_step

AT = "2026-01-01T00:00:00Z"
NUMBERS = st.floats(-1e300, 1e300) | st.integers(-5, 2**63) | st.sampled_from([float("inf"), float("nan")])
CURVES = st.dictionaries(st.text(max_size=5), st.lists(st.tuples(NUMBERS, NUMBERS), max_size=12), max_size=4)


@settings(max_examples=40)
@given(CURVES)
def test_any_points_stay_in_the_box(curves: dict[str, list[tuple[float, float]]]) -> None:
    drawn = chart("Memory", curves, ("a", "b"), str)
    for curve in drawn.curves if drawn else ():
        for x, y in (point.split(",") for point in curve.points.split()):
            assert 0 <= float(x) <= WIDTH and 0 <= float(y) <= HEIGHT


def test_a_chart_goes_from_its_first_time_to_its_last_and_up_to_its_most() -> None:
    drawn = chart("Memory", {"one": [(10, 1), (20, 4)], "other": [(15, 2)]}, ("a", "b"), str)
    assert drawn is not None
    assert [one.name for one in drawn.curves] == ["one"]
    assert drawn.curves[0].points == "0.0,92.0 640.0,8.0"
    assert (drawn.top, drawn.curves[0].last) == ("4", "4")
    assert chart("Memory", {"one": [(1, 1)]}, ("a", "b"), str) is None


def test_a_device_keeps_its_whole_name() -> None:
    assert short_device("AMD Radeon RX 7900 XTX (RADV NAVI31)") == "AMD Radeon RX 7900 XTX"
    assert short_device("llvmpipe (LLVM 19.1.7, 256 bits)") == "llvmpipe"


NAMES = st.sampled_from("abcdefgh")


def a_figure(value: float) -> Figure:
    return Figure(name="speed", unit="GB/s", better="higher", values=(value,), device="cpu")


@given(st.lists(st.tuples(NAMES, st.lists(NAMES, max_size=4)), max_size=12))
def test_every_step_has_a_place_of_its_own_whatever_waits_for_what(rows: list[tuple[str, list[str]]]) -> None:
    drawn = graph([a_step(name=name, needs=tuple(needs)) for name, needs in rows])
    assert {box.name for box in drawn.boxes} == {name for name, _ in rows}
    assert len({(box.x, box.y) for box in drawn.boxes}) == len(drawn.boxes)
    assert all(0 <= box.x <= drawn.width - BOX and 0 <= box.y <= drawn.height for box in drawn.boxes)


def test_a_step_stands_right_of_all_that_it_waits_for() -> None:
    needs = {"last": ("one", "two"), "two": ("one",), "one": ("last-that-is-not-there",), "alone": ()}
    drawn = graph([a_step(name=name, needs=some) for name, some in needs.items()])
    column = {box.name: box.x // (BOX + GAP_X) for box in drawn.boxes}
    assert column == {"one": 0, "alone": 0, "two": 1, "last": 2}
    assert len(drawn.arrows) == 3


def test_six_columns_fit_a_window_of_1280_pixels_and_more_are_drawn_smaller() -> None:
    names = "abcdef"
    drawn = graph([a_step(name=name, needs=tuple(names[max(0, n - 1) : n])) for n, name in enumerate(names)])
    assert drawn.width + 8 <= 1280 - 48
    css = files("rocwright.web").joinpath("static", "site.css").read_text(encoding="utf-8")
    assert ".graph { max-width: 100%; height: auto; }" in css


def test_many_steps_are_placed_whatever_their_order() -> None:
    # layers of two, each waiting for both before it, told backwards: as many ways through as 2 to the 600
    layers = [
        a_step(name=f"{number}{side}", needs=(f"{number - 1}a", f"{number - 1}b"))
        for number in range(600)
        for side in "ab"
    ]
    drawn = graph(layers[::-1])
    assert max(box.x for box in drawn.boxes) == 599 * (BOX + GAP_X)


WORDS = st.text(max_size=12)


@given(
    st.lists(
        st.builds(
            lambda at, name, seconds, memory, hit: StepAt(
                run="r",
                at=at,
                stack="s",
                gpu=("g",),
                base="b",
                step=StepRun(
                    name=name,
                    key="k",
                    outcome="built",
                    seconds=seconds,
                    peak_memory=memory,
                    compiler_cache={"hit": hit, "miss": 1},
                    measured=(a_figure(seconds),),
                ),
            ),
            WORDS | st.just(AT),
            st.sampled_from(["a", "b", "c"]),
            st.floats(-10, 1e9),
            st.none() | st.integers(0, 2**60),
            st.integers(0, 9),
        ),
        max_size=8,
    ),
    st.lists(
        st.builds(
            lambda at, name, size: Artifact(
                component=name, step="s", filename="f", sha256="0", size=size, at=at, gpu=("g",)
            ),
            WORDS | st.just(AT),
            WORDS,
            st.integers(0, 2**60),
        ),
        max_size=6,
    ),
)
def test_any_records_make_a_page_of_trends(steps: list[StepAt], made: list[Artifact]) -> None:
    page = render(
        "trends.html",
        session=None,
        here="/trends",
        stacks=["s"],
        stack="s",
        gpu="",
        base="",
        gpus=["g"],
        bases=["b"],
        charts=[*figures(steps, made), *speeds(steps)],
        locks=by_lock(steps),
    )
    assert page.count("<svg") == page.count("</svg>") == page.count("<figure")


def test_each_lock_stands_against_the_one_before_it() -> None:
    def at(day: int, lock: str, *values: float) -> StepAt:
        measured = (Figure(name="speed", unit="GB/s", better="higher", values=values, device="cpu"),)
        step = StepRun(name="bench/a/b", key="", outcome="ok", measured=measured)
        when = f"2026-01-0{day}T00:00:00Z"
        return StepAt(run=f"r{day}", at=when, stack="s", gpu=("g",), base="b", step=step, lock=lock)

    first, again, then = at(1, "old", 99, 100, 101), at(2, "old", 100, 101, 99), at(3, "new", 50, 51, 49)
    told = [(one.lock, one.told, one.change, one.verdict) for one in by_lock([then, again, first])]
    assert told == [("new", "50 GB/s", "50.0% worse", ""), ("old", "100 GB/s", "", "")]
    (drawn,) = speeds([then, again, first])
    assert (drawn.title, drawn.curves[0].name, drawn.curves[0].last) == (
        "Measured: GB/s",
        "speed on cpu",
        "50 GB/s",
    )


def test_steps_of_two_runs_stand_side_by_side_as_they_ended() -> None:
    first, again = a_step(name="a", outcome="again"), a_step(name="a")
    before = a_run(steps=(first, again))
    after = a_run(steps=(a_step(name="b"),))
    assert side_by_side(before, after) == [("a", again, None), ("b", None, after.steps[0])]


@given(st.text(max_size=30))
def test_any_word_is_a_time_of_some_kind(text: str) -> None:
    assert isinstance(ago(text), str) and len(day(text)) <= 16


def test_times_are_told_in_a_word() -> None:
    now = datetime(2026, 1, 10, tzinfo=UTC)
    told = {"2026-01-09T23:59:30Z": "now", "2026-01-09T22:00:00+00:00": "2 h", "2026-01-03T00:00:00Z": "7 d"}
    assert {at: ago(at, now) for at in told} == told
    assert ago("2026-02-01T00:00:00Z", now) == "in the future"
    assert ago("2026-01-01T00:00:00", now) == "2026-01-01T00:00:00"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", day(AT))


def test_what_is_nothing_throughout_is_at_most_nothing() -> None:
    drawn = chart("Size", {"one": [(1, 0), (2, 0)]}, ("a", "b"), size)
    assert drawn is not None
    assert drawn.top == "0 B"


def test_memory_that_was_never_measured_is_not_drawn() -> None:
    samples = [Sample(step="alpha", at=at, memory=0, processes=2) for at in (1.0, 6.0)]
    assert [one.title for one in charts(samples)] == ["Processes"]
