"""The one way to start a process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocbase.processes import run as process
from rocbase.processes.run import LINE_LIMIT, attach, run, split_lines, stream
from rocwheel_samples.reused_pids import lives, taken_over
from rocwheel_samples.tables import each

pytestmark = pytest.mark.timing


def sh(script: str) -> tuple[str, ...]:
    return ("sh", "-c", script)


def lines_of(script: str, **more: float) -> list[str]:
    lines: list[str] = []
    stream(sh(script), lines.append, **more)  # type: ignore[arg-type]
    return lines


def test_both_outputs_and_the_status_are_captured() -> None:
    done = run(sh("echo out; echo err >&2; exit 3"))
    assert (done.stdout, done.stderr, done.returncode, done.ok) == ("out\n", "err\n", 3, False)


def test_a_signal_is_a_negative_status() -> None:
    assert run(sh("kill -TERM $$")).returncode == -signal.SIGTERM


def test_input_is_given_and_otherwise_empty() -> None:
    assert run(("cat",), stdin=b"x").stdout == "x"
    assert run(("cat",)).stdout == ""


def test_output_that_is_no_text_is_told_all_the_same() -> None:
    assert run(("printf", "a\\377b")).stdout == "a\ufffdb"


@each("start", [run, lambda argv: stream(argv, print), attach])
def test_a_program_that_is_not_installed_is_told_with_how_to_get_it(start: object) -> None:
    with pytest.raises(InputError, match="no-such-program is not installed") as caught:
        start(("no-such-program",))  # type: ignore[operator]
    assert caught.value.next_step.endswith("no-such-program; then try again")


@pytest.mark.parametrize("way", ["run", "stream"])
def test_a_process_past_its_time_is_ended_with_all_that_it_started(way: str, tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/pid; wait"
    done = run(sh(script), timeout=0.5) if way == "run" else stream(sh(script), print, timeout=0.5)
    assert done.timed_out
    assert done.seconds < 50
    child = int((tmp_path / "pid").read_text())
    end = time.monotonic() + 5
    while Path(f"/proc/{child}").exists() and time.monotonic() < end:
        if ") Z" in Path(f"/proc/{child}/stat").read_text():
            break
        time.sleep(0.02)
    else:
        assert not Path(f"/proc/{child}").exists()


def test_lines_come_as_they_are_printed_and_both_outputs_in_order() -> None:
    assert lines_of("echo 1; echo 2 >&2; echo 3") == ["1", "2", "3"]


def test_a_line_is_told_before_the_process_ends() -> None:
    begun = time.monotonic()
    when: list[float] = []
    stream(sh("echo now; sleep 1"), lambda line: when.append(time.monotonic() - begun))
    assert when[0] < 0.8


def test_a_carriage_return_ends_a_line_and_the_last_needs_no_end() -> None:
    assert lines_of(r"printf '10%%\r20%%\r\nlast'") == ["10%", "20%", "last"]


def test_a_line_without_end_is_cut_and_not_kept_in_memory() -> None:
    told = lines_of(f"head -c {5 * LINE_LIMIT} /dev/zero | tr '\\0' x")
    assert "".join(told) == "x" * 5 * LINE_LIMIT
    assert max(map(len, told)) <= LINE_LIMIT


def test_a_line_end_cut_by_a_read_is_one_line_end() -> None:
    """CR at the end of one read and LF at the start of the next."""
    readable, writable = os.pipe()
    lines = split_lines(readable)
    os.write(writable, b"one\nt")
    assert next(lines) == "one"
    os.write(writable, b"wo\n")
    os.close(writable)
    assert list(lines) == ["two"]
    os.close(readable)


def test_a_listener_that_fails_ends_the_process() -> None:
    def fail(line: str) -> None:
        raise ValueError(line)

    begun = time.monotonic()
    with pytest.raises(ValueError, match="x"):
        stream(sh("echo x; sleep 60"), fail)
    assert time.monotonic() - begun < 50


def test_output_is_read_as_a_file_and_the_end_told() -> None:
    with process.reading(["sh", "-c", "printf one; echo two >&2; exit 3"]) as running:
        assert running.output.read() == b"one"
        finished = running.finish()
    assert (finished.returncode, finished.stderr) == (3, "two\n")


def test_a_process_whose_reader_leaves_is_ended() -> None:
    with process.reading(["sh", "-c", "echo $$; exec sleep 600"]) as running:
        pid = int(running.output.readline())
    assert not Path(f"/proc/{pid}").exists()


def test_a_program_to_read_from_that_is_not_installed_is_an_input_error() -> None:
    with pytest.raises(InputError, match="is not installed"), process.reading(["no-such-program"]):
        pass


def test_no_group_is_killed_by_a_number_that_is_anothers_by_now() -> None:
    with taken_over() as (ended, living):
        process.kill_group(ended)
        assert lives(living)
        process.kill_group(living)
        assert not lives(living)


def test_a_signal_goes_only_to_those_that_are_still_meant_however_many_there_are() -> None:
    with contextlib.ExitStack() as stack:
        sleepers = [stack.enter_context(subprocess.Popen(["sleep", "100"])) for _ in range(3)]
        gone = subprocess.Popen(["true"])
        gone.wait()
        numbers = [each.pid for each in sleepers]
        process.send(signal.SIGKILL, [*numbers, gone.pid] * 150, lambda: {numbers[1]})
        assert sleepers[1].wait(10) == -signal.SIGKILL
        assert [each.poll() for each in (sleepers[0], sleepers[2])] == [None, None]
        process.send(signal.SIGKILL, numbers, lambda: numbers)
        assert [each.wait(10) for each in sleepers] == [-signal.SIGKILL] * 3


def test_errors_can_be_had_apart_and_are_waited_for_only_so_long() -> None:
    lines: list[str] = []
    errors: list[str] = []
    script = "echo out; echo err >&2; (sleep 8 > /dev/null) & exit 3"
    done = process.stream(["sh", "-c", script], lines.append, on_error=errors.append)
    assert (done.returncode, lines, errors) == (3, ["out"], ["err"])
