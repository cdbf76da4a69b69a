"""What a stranger stumbles over first: colours, folders, logs, words that are not known."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from tests.conftest import Command
from tests.terminal import run_in_terminal

from rocwright.cli import cli
from rocwright.execution.runs import LogFile, UnderWay
from rocwright.home import Home
from rocwright.plan.resolve.model import Request
from rocwright.records.model import StepRun

REQUEST = Request(stack="gfx-smoke", gpu=("gfx1151",), base="debian:sid")
PROJECT = 'stack = "gfx-smoke"\ngpu = ["gfx1151"]\nbase = "debian:sid"\n'


@pytest.fixture
def built(home: Home) -> Path:
    """A run with a log; its path."""
    with UnderWay("build", REQUEST, home, pytest.fail, run_id="mine") as under_way:
        path = under_way.folder / "source-x.log"
        log = LogFile(path)
        log.line("first \x1b[31mred")
        log.line("second")
        log.close()
        under_way.note(StepRun(name="source/x", key="k", outcome="built", state="ended", log=path.name))
        under_way.ended("built")
    return path


def test_a_run_that_goes_on_is_told_with_the_time_that_it_has_taken(rocwright: Command, home: Home) -> None:
    with UnderWay("build", REQUEST, home, pytest.fail, run_id="mine") as under_way:
        under_way.note(StepRun(name="source/x", key="k", outcome="", state="running"))
        assert "running" in rocwright("history").stdout
        begun = (datetime.now(UTC) - timedelta(minutes=10)).strftime("%Y-%m-%dT%H:%M:%SZ")
        with closing(sqlite3.connect(home.records)) as records, records:
            assert records.execute("update runs set started = ?", (begun,)).rowcount == 1
        told = rocwright("history").stdout
        under_way.ended("built")
    assert "running" in told and "10 min" in told


def test_a_log_is_told_as_json(rocwright: Command, built: Path) -> None:
    told = json.loads(rocwright("logs", "source/x", "--json").stdout)
    assert (told["run"], told["path"]) == ("mine", str(built))
    assert [line["text"] for line in told["lines"]] == ["first \x1b[31mred", "second"]
    assert all(line["time"].endswith("Z") for line in told["lines"])
    assert json.loads(rocwright("logs", "--path", "--json").stdout) == {"run": "mine", "path": str(built)}


def test_a_log_is_shown_without_the_codes_of_a_terminal(rocwright: Command, built: Path) -> None:
    assert "first red" in rocwright("logs", "source/x").stdout
    assert "first \x1b[31mred" in rocwright("logs", "source/x", "--raw").stdout


def test_no_log_is_an_error_in_json_too(rocwright: Command) -> None:
    done = rocwright("logs", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["class"] == "input"


def test_steps_with_logs_are_completed(home: Home, built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(home.path))

    def completed(word: str) -> list[str]:
        found = ShellComplete(cli, {}, "rocwright", "_ROCWRIGHT_COMPLETE").get_completions(["logs"], word)
        return [one.value for one in found]

    assert completed("") == completed("so") == ["source/x"]
    assert completed("y") == []


def test_a_project_in_a_folder_above_is_used_and_told(rocwright: Command, tmp_path: Path) -> None:
    (tmp_path / "rocwright.toml").write_text(PROJECT)
    done = rocwright("plan", "--json")
    assert done.returncode == 0, done.stderr
    assert f"rocwright.toml is that of {tmp_path}" in done.stderr


def test_the_lock_is_made_beside_the_project_file_above(rocwright: Command, tmp_path: Path) -> None:
    (tmp_path / "rocwright.toml").write_text("nonsense = 1\n")
    done = rocwright("lock", "--set", "gfx-smoke=0.1.0")
    assert f"{tmp_path}/rocwright.toml is not a valid project file" in done.stderr


@pytest.mark.parametrize(
    ("env", "styled"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
@pytest.mark.parametrize("words", [("issues", "nonesuch"), ("build", "--nope")])
def test_colours_are_written_where_they_are_wanted(
    words: tuple[str, ...], env: dict[str, str], styled: bool
) -> None:
    """One of them is refused by a verb, the other by the reader of the command line."""
    code, screen = run_in_terminal([sys.executable, "-m", "rocwright", *words], 80, env=env)
    assert code == 2
    assert screen.text[0].startswith("error[input] ")
    assert screen.styled is styled


def test_a_wrong_use_is_json_where_that_is_asked_for(rocwright: Command) -> None:
    done = rocwright("history", "--last", "x", "--json")
    told = json.loads(done.stdout)["error"]
    assert (told["class"], done.returncode) == ("input", 2)
    assert "--last" in told["message"]
    assert told["next"].endswith("history --help explains it")


def test_an_option_that_is_not_known_is_answered_with_the_nearest(rocwright: Command) -> None:
    done = rocwright("build", "--no-resum")
    assert "error[input] no such option '--no-resum'\n" in done.stderr
    assert "  next   --no-resume? " in done.stderr
    told = rocwright("plan", "--stack", "x").stderr
    assert re.search(r"^  next   STACK is no option: .* plan STACK$", told, re.MULTILINE)


@pytest.mark.parametrize("columns", [100, 80, 60])
@pytest.mark.parametrize("words", [("stacks",), ("targets",), ("targets", "RX 580"), ("targets", "-v")])
def test_tables_fit_the_terminal(rocwright: Command, words: tuple[str, ...], columns: int) -> None:
    code, screen = run_in_terminal([sys.executable, "-m", "rocwright", *words], columns, rows=50)
    assert code == 0
    assert max(map(len, screen.text)) <= columns
    # no line was wrapped by the terminal itself: that breaks words
    piped = rocwright(*words, env={"COLUMNS": str(columns)})
    assert max(map(len, piped.stdout.splitlines())) <= columns
    if words == ("stacks",) and columns >= 80:
        assert len(screen.text) <= 48


@pytest.mark.parametrize("columns", [100, 80, 60])
def test_no_name_of_a_run_is_broken_in_a_narrow_terminal(
    rocwright: Command, home: Home, columns: int
) -> None:
    request = Request(stack="torch-extensions", gpu=("gfx803", "gfx1103"), base="debian:experimental")
    with UnderWay("build", request, home, pytest.fail, run_id="mine") as under_way:
        under_way.ended("stopped")
    told = rocwright("history", env={"COLUMNS": str(columns)}).stdout
    assert max(map(len, told.splitlines())) <= columns
    for word in ("torch-extensions", "gfx1103", "debian:experimental", "stopped"):
        assert word in told


def test_a_run_fits_a_line_and_its_steps_are_told_with_v(rocwright: Command, built: Path) -> None:
    short, long = rocwright("history").stdout, rocwright("history", "-v").stdout
    assert short.splitlines()[1].endswith("1 built")
    assert long.splitlines()[1].endswith("source/x built")


def test_a_pipe_gets_whole_lines(rocwright: Command) -> None:
    assert max(map(len, rocwright("stacks", "-v").stdout.splitlines())) > 200


@pytest.mark.parametrize("word", ["RX 580", "780M"])
def test_the_page_of_a_card_opens_with_the_verdict(rocwright: Command, word: str) -> None:
    lines = rocwright("targets", word).stdout.splitlines()
    assert lines[0].startswith("gfx")
    assert lines[1].split()[0] in ("works", "unproven", "unknown")
    told = json.loads(rocwright("targets", word, "--json").stdout)["verdicts"]
    assert [one["target"] for one in told] == [lines[0].split()[0]]


def test_init_tells_the_verdict_of_the_card(rocwright: Command) -> None:
    done = rocwright("init", "--stack", "gfx-smoke", "--gpu", "RX 580", "--base", "debian:sid")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0].startswith(("gfx803: works: ", "gfx803: unproven: "))


def test_init_takes_the_stack_as_other_verbs_do(rocwright: Command, tmp_path: Path) -> None:
    done = rocwright("init", "gfx-smoke", "--gpu", "gfx1151", "--base", "debian:sid")
    assert done.returncode == 0, done.stderr
    assert 'stack = "gfx-smoke"' in (tmp_path / "project/rocwright.toml").read_text()
    assert "name one" in rocwright("init", "gfx-smoke", "--stack", "llama-hip").stderr


def test_init_without_a_stack_says_how_to_name_one(rocwright: Command) -> None:
    done = rocwright("init", "--gpu", "RX 580")
    assert done.returncode == 2
    assert "next   rocwright init STACK --gpu 'RX 580'; rocwright stacks lists them" in done.stderr


MATRIX = '[[matrix]]\nstack = ["gfx-smoke", "llama-hip"]\ngpu = ["gfx1151", "gfx803"]\nbase = "debian:sid"\n'
MATRIX_OF_ONE = '[[matrix]]\nstack = "llama-vulkan"\ngpu = "gfx1151"\nbase = "debian:sid"\n'


@pytest.mark.parametrize("words", [("cycle", "--dry-run"), ("watch",)], ids=" ".join)
def test_a_look_at_many_rows_waits_for_a_silent_network_once(
    rocwright: Command, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Every address is reached through a proxy that says nothing: a row by itself would wait for minutes."""
    rows = MATRIX if words[0] == "cycle" else MATRIX_OF_ONE
    (tmp_path / "project/rocwright.toml").write_text(rows)
    with socket.create_server(("127.0.0.1", 0), backlog=200) as server:
        proxy = f"http://127.0.0.1:{server.getsockname()[1]}"
        names = ("http_proxy", "https_proxy", "all_proxy")
        env = {one: proxy for name in names for one in (name, name.upper())}
        env |= {"no_proxy": "", "NO_PROXY": ""}
        begun = time.monotonic()
        done = rocwright(*words, "--seconds", "1", env=env)
        took = time.monotonic() - begun
    assert "Traceback" not in done.stderr
    if words[0] == "cycle":
        assert done.stdout.count("debian:sid: ") == 4
    else:
        assert "nothing new from those that answered" in done.stdout
    # 1 s of waiting, and what the command takes on a busy machine; without a limit it is a minute and more
    assert took < 25, f"{took:.0f} s"


def test_a_group_without_a_verb_shows_its_help(rocwright: Command) -> None:
    assert rocwright("store").stderr.startswith("Usage: ")
