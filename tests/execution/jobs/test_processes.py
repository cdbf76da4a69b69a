from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from rocwheel_samples.reused_pids import lives
from rocwheel_samples.tables import each
from rocwright.execution.jobs.processes import ProcessKind, StepProcess, Watch, _Stat, programs, send, unit_of
from rocwright.sandbox import cgroup, state
from rocwright.sandbox.engine import MARK

pytestmark = pytest.mark.timing

GROWS = "import time; held = bytearray(b'x') * (40 << 20); time.sleep(60)"
STARTS = f"import subprocess; subprocess.run(['/proc/self/exe', '-c', {GROWS!r}])"


@pytest.fixture(params=["cgroup", "beside it", "no cgroup"])
def box(request: pytest.FixtureRequest) -> Iterator[Callable[[list[str]], subprocess.Popen[bytes]]]:
    """Starts programs in a sandbox's cgroup, or only with its mark: as docker has them, which has a cgroup of
    its own, or where none can be made."""
    folder = state.new_folder()
    group = cgroup.create(folder.name) if request.param != "no cgroup" else None
    if request.param != "no cgroup" and group is None:
        pytest.skip("no cgroup may be made here")
    state.write_record(folder, (), group)
    enter = f"echo 0 > {group.procs} && " if group and request.param == "cgroup" else ""

    def start(words: list[str]) -> subprocess.Popen[bytes]:
        script = f'{enter}exec -a "$0" "$@"'
        return subprocess.Popen(["bash", "-c", script, *words], env=os.environ | {MARK: folder.name})

    started: list[subprocess.Popen[bytes]] = []

    def begin(words: list[str]) -> subprocess.Popen[bytes]:
        started.append(start(words))
        return started[-1]

    try:
        yield begin
    finally:
        state.dispose(folder)
        for one in started:
            one.wait()


def until(
    look: Callable[[], list[StepProcess]], holds: Callable[[list[StepProcess]], bool]
) -> list[StepProcess]:
    for _ in range(1000):
        found = look()
        if holds(found):
            return found
        time.sleep(0.02)
    pytest.fail(f"not seen: {found}")


def test_a_compiler_is_seen_with_its_memory_paused_and_ended(
    box: Callable[[list[str]], subprocess.Popen[bytes]],
) -> None:
    watch = Watch()
    owners = {os.getpid(): "step"}

    def look() -> list[StepProcess]:
        return [one for one in watch.read(owners).seen if one.kind is not ProcessKind.OTHER]

    compiler = box(["/usr/lib/gcc/cc1plus", sys.executable, "-c", GROWS])
    found = until(look, lambda seen: bool(seen) and seen[0].memory > 40 << 20)
    assert [(one.pid, one.step, one.kind, one.paused) for one in found] == [
        (compiler.pid, "step", ProcessKind.COMPILE, False)
    ]
    assert found[0].memory < 120 << 20
    assert found[0].unit == unit_of(["cc1plus", "-c", GROWS])
    assert 0 <= found[0].area <= found[0].peak * found[0].cpu
    compiler.send_signal(signal.SIGSTOP)
    until(look, lambda seen: bool(seen) and seen[0].paused)
    compiler.kill()
    for _ in range(1000):
        sight = watch.read(owners)
        if sight.ended:
            break
        time.sleep(0.02)
    assert [(one.pid, one.peak > 40 << 20) for one in sight.ended] == [(compiler.pid, True)]


def test_a_look_while_a_program_starts_settles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel shows a new program's name before its words: who looked then held a compiler for something
    else as long as it ran."""
    words = ["", "/usr/lib/gcc/cc1plus\0a.cc\0"]
    monkeypatch.setattr("rocwright.execution.jobs.processes.text", lambda path: words.pop(0))
    watch = Watch()
    stat = _Stat(name="python3", state="R", parent=1, cpu=0, threads=1, started=1)
    assert watch._kind(2, stat, False)[0] is ProcessKind.OTHER
    for _ in range(2):
        assert watch._kind(2, stat, False) == (ProcessKind.COMPILE, unit_of(["cc1plus", "a.cc", ""]))


def test_what_waits_for_others_is_no_compiler_whatever_its_name(
    box: Callable[[list[str]], subprocess.Popen[bytes]],
) -> None:
    watch = Watch()
    driver = box(["clang++", sys.executable, "-c", STARTS])
    found = until(
        lambda: list(watch.read({os.getpid(): "step"}).seen),
        lambda seen: len(seen) > 1 and any(one.parent == driver.pid for one in seen),
    )
    assert [one.kind for one in found if one.pid == driver.pid] == [ProcessKind.OTHER]


def test_steps_of_others_and_sandboxes_that_are_gone_are_nothing() -> None:
    assert Watch().read({}).seen == ()
    assert Watch().read({1: "step"}).seen == ()


@each(
    ("name", "words", "kind"),
    [
        ("cc1plus", [], ProcessKind.COMPILE),
        ("clang-19", ["-cc1", "-triple"], ProcessKind.COMPILE),
        ("ld", ["-o", "a.out"], ProcessKind.LINK),
        ("ld.lld", ["-o", "lib.so"], ProcessKind.LINK),
        ("lld", ["-flavor", "gnu", "-plugin-opt=mcpu=gfx1151"], ProcessKind.LTO),
        ("lto1", [], ProcessKind.LTO),
        ("mlir-tblgen", [], ProcessKind.COMPILE),
        ("rustc", [], ProcessKind.COMPILE),
        ("g++", ["-c", "a.cc"], ProcessKind.OTHER),
        ("collect2", [], ProcessKind.OTHER),
        ("make", ["-j8"], ProcessKind.OTHER),
        ("python3", ["setup.py"], ProcessKind.OTHER),
        ("", [], ProcessKind.OTHER),
    ],
)
def test_what_programs_do(name: str, words: list[str], kind: ProcessKind) -> None:
    assert programs().kind(name, words) is kind


def test_a_unit_has_one_name_in_all_builds_and_another_for_each_target() -> None:
    line = ["cc1plus", "-quiet", "-I", "inc", "a.cpp", "-dumpbase", "a.cpp", "-O2", "-o", "/tmp/ccAbc.s"]
    again = [
        "/opt/cc1plus",
        "-quiet",
        "-I",
        "inc",
        "a.cpp",
        "-dumpbase",
        "a.cpp",
        "-O3",
        "-o",
        "/tmp/ccXyz.s",
    ]
    assert unit_of(line) == unit_of(again)
    assert unit_of(line) != unit_of([word.replace("a.cpp", "b.cpp") for word in line])
    assert unit_of([*line, "-target-cpu", "gfx803"]) != unit_of([*line, "-target-cpu", "gfx906"])


def test_a_signal_goes_to_the_process_that_was_seen_and_to_no_later_one_of_its_number() -> None:
    with subprocess.Popen(["sleep", "600"]) as living:
        started = state.start_time(living.pid)
        assert started is not None
        earlier, same = (
            StepProcess(pid=living.pid, started=when, step="step", memory=0, kind=ProcessKind.COMPILE)
            for when in (started - 1, started)
        )
        send(signal.SIGKILL, [earlier])
        assert lives(living)
        send(signal.SIGKILL, [earlier, same])
        assert not lives(living)
