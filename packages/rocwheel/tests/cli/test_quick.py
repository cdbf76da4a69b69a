"""What is answered without the library of command lines is answered as with it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from rocwheel.cli import quick
from rocwheel_samples.fatbin import entry_id, fatbin, gpu_elf, host_elf, plain_bundle, write_wheel

COMMAND = (sys.executable, "-m", "rocwheel")
BY_CLICK = (*COMMAND, "--debug")
"""With an option of the command itself nothing is answered quickly."""

LIBRARY = host_elf(fatbin([plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A))])]))


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "x.so").write_bytes(LIBRARY)
    (tmp_path / "x.txt").write_bytes(b"text")
    (tmp_path / "damaged.so").write_bytes(LIBRARY[:200])
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "library_gfx1151.dat").write_bytes(b"\0")
    kernels = {f"x/k{number}.hsaco": gpu_elf(0x2A) for number in range(3)}
    wheel = write_wheel(tmp_path / "x-1-py3-none-any.whl", {"x/a.so": LIBRARY, **kernels})
    bill = write_wheel(tmp_path / "y-1-py3-none-any.whl", {"y-1.dist-info/sboms/a.json": b"{}"})
    return {
        "library": tmp_path / "x.so",
        "text": tmp_path / "x.txt",
        "folder": tmp_path / "folder",
        "wheel": wheel,
        "bill": bill,
        "damaged": tmp_path / "damaged.so",
        "missing": tmp_path / "missing",
    }


def done(*words: str | Path) -> tuple[int, str, str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    ran = subprocess.run([str(one) for one in words], capture_output=True, text=True, env=env)
    return ran.returncode, ran.stdout, ran.stderr


def on_a_terminal(*words: str | Path, **env: str) -> bytes:
    """What a command prints where its output is a terminal."""
    ours, its = pty.openpty()
    with (
        os.fdopen(ours, "rb", buffering=0) as terminal,
        subprocess.Popen(
            [str(one) for one in words],
            stdout=its,
            stderr=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name != "NO_COLOR"}
            | {"TERM": "xterm", "COLUMNS": "60"}
            | env,
        ),
    ):
        os.close(its)
        told = b""
        try:
            while piece := terminal.read(4096):
                told += piece
        except OSError:  # the other end is closed
            pass
    return told


@pytest.mark.parametrize("heads", [(), ("--targets",)], ids=["all", "targets"])
@pytest.mark.parametrize("what", ["library", "folder", "wheel", "bill", "missing"])
def test_the_answer_is_the_same_with_click_and_without(
    files: dict[str, Path], what: str, heads: tuple[str, ...]
) -> None:
    assert done(*COMMAND, "inspect", *heads, files[what]) == done(*BY_CLICK, "inspect", *heads, files[what])


def test_a_failure_is_told_as_by_the_command(files: dict[str, Path]) -> None:
    for name, code, kind in (("damaged", 12, "check"), ("text", 2, "input")):
        status, out, told = done(*COMMAND, "inspect", files[name])
        assert (status, out) == (code, "")
        assert told.startswith(f"error[{kind}]") and "Traceback" not in told


@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["", "no-color", "dumb"])
def test_a_terminal_gets_the_same(files: dict[str, Path], env: dict[str, str]) -> None:
    told = on_a_terminal(*COMMAND, "inspect", files["wheel"], **env)
    assert told == on_a_terminal(*BY_CLICK, "inspect", files["wheel"], **env)
    assert (b"\x1b[1m" in told) == (not env)


def test_click_is_not_loaded_for_it(files: dict[str, Path]) -> None:
    program = (
        "import sys; from rocwheel.cli import quick;"
        "assert quick.answered(sys.argv[1:]);"
        "print({'click', 're2', 'pickle', 'rocwheel.wheels.devicecode.kpack'} & set(sys.modules))"
    )
    code, out, told = done(sys.executable, "-c", program, "inspect", files["library"])
    assert (code, told) == (0, "")
    assert out.splitlines()[-1] == "set()"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("inspect",),
        ("inspect", "-h"),
        ("inspect", "--json", "LIBRARY"),
        ("inspect", "LIBRARY", "LIBRARY"),
        ("inspect", "--targets", "--targets", "LIBRARY"),
        ("--debug", "inspect", "LIBRARY"),
        ("check-gpu", "LIBRARY"),
        ("inspect", "BILL"),
        ("inspect", "MISSING"),
    ],
    ids=" ".join,
)
def test_other_words_are_left_to_the_command(
    files: dict[str, Path], words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert not quick.answered([str(files.get(one.lower(), one)) for one in words])
    assert capsys.readouterr().out == ""


def test_who_reads_no_further_is_no_failure_of_ours(files: dict[str, Path]) -> None:
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(
        [*COMMAND, "inspect", str(files["wheel"])], stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    assert (ran.returncode, ran.stderr) == (141, "")


def test_what_was_to_be_done_at_the_end_is_done(files: dict[str, Path]) -> None:
    program = (
        "import atexit, sys; atexit.register(print, 'at the end');"
        "from rocwheel.cli import main; main(); print('never')"
    )
    code, out, told = done(sys.executable, "-c", program, "inspect", files["library"])
    assert (code, told) == (0, "")
    assert out.splitlines()[-1] == "at the end"
