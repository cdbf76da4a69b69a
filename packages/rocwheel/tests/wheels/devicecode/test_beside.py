"""Large members of a wheel, read in several processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.wheels.devicecode.beside import _shared_out
from rocwheel_samples.fatbin import compressed_bundle, entry_id, fatbin, host_elf, plain_bundle
from rocwheel_samples.wheel import CODE, make_wheel

READS = """
import json, os, sys
from pathlib import Path
from rocbase.errors import CheckError
from rocwheel.wheels.devicecode import beside, code_objects
beside.LARGE, beside._processors = 1, lambda: int(sys.argv[2])
forked, parent, fork, real = [], os.getpid(), os.fork, code_objects.fat_binary

def counted():
    pid = fork()
    forked.append(pid)
    return pid

def read(source, **how):
    if os.getpid() != parent:
        HERE
    return real(source, **how)

os.fork, code_objects.fat_binary = counted, read
try:
    found = [
        [member.path, [one.target_id for one in code_objects.objects_in(member.path, binary)], source.size]
        for member, source, binary in code_objects.fat_binaries(Path(sys.argv[1]))
    ]
except CheckError as error:
    found = str(error)
try:
    os.waitpid(-1, os.WNOHANG)
    left = True
except ChildProcessError:
    left = False
print(json.dumps({"found": found, "processes": len(forked), "left": left}))
"""


def library(*targets: str, damaged: bool = False) -> bytes:
    bundle = plain_bundle([(entry_id(one), CODE[one]) for one in targets])
    packed = compressed_bundle(bundle, version=3, method=1)
    return host_elf(fatbin([packed[:-9] + b"\xff" * 9 if damaged else packed]))


def read(wheel: Path, processors: int, *, here: str = "pass", fork: str = "fork()") -> dict[str, object]:
    """What is found, by a process of its own: where there are other threads none is started."""
    script = READS.replace("HERE", here).replace("pid = fork()", f"pid = {fork}")
    command = [sys.executable, "-c", script, str(wheel), str(processors)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    told: dict[str, object] = json.loads(done.stdout)
    return told


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    files = {
        "a/one.so": library("gfx1030"),
        "a/none.so": host_elf(b""),
        "b/two.so": library("gfx1100", "gfx1151"),
        "c/three.so": library("gfx1151"),
    }
    return make_wheel(tmp_path, "several", files=files)


@pytest.mark.parametrize("processors", [2, 3, 16])
def test_several_processes_find_what_one_finds(wheel: Path, processors: int) -> None:
    alone, several = read(wheel, 1), read(wheel, processors)
    assert alone["processes"] == 0
    assert several["processes"] == min(processors, 4) - 1
    assert several["found"] == alone["found"]
    assert not several["left"]
    assert [one[:2] for one in several["found"]] == [  # type: ignore[attr-defined]
        ["a/one.so", ["gfx1030"]],
        ["b/two.so", ["gfx1100", "gfx1151"]],
        ["c/three.so", ["gfx1151"]],
    ]


@pytest.mark.parametrize("here", ["os.kill(os.getpid(), 9)", "os._exit(3)", "raise MemoryError", "1 / 0"])
def test_what_an_ended_process_did_not_tell_is_read_here(wheel: Path, here: str) -> None:
    several = read(wheel, 3, here=here)
    assert several["processes"] == 2
    assert several["found"] == read(wheel, 1)["found"]
    assert not several["left"]


@pytest.mark.parametrize("after", [0, 1])
def test_where_no_process_can_be_had_it_does_without(wheel: Path, after: int) -> None:
    several = read(wheel, 3, fork=f"fork() if len(forked) < {after} else os.open('/nowhere', 0)")
    assert several["processes"] == after
    assert several["found"] == read(wheel, 1)["found"]
    assert not several["left"]


def test_a_damaged_member_is_told_as_by_one_process(tmp_path: Path) -> None:
    files = {f"p/{name}.so": library("gfx1030", damaged=name == "b") for name in "abc"}
    wheel = make_wheel(tmp_path, "damaged", files=files)
    alone, several = read(wheel, 1), read(wheel, 2)
    assert "not a valid offload bundle" in str(alone["found"])
    assert several["found"] == alone["found"]
    assert not several["left"]


def test_work_of_other_processes_is_paid_for(wheel: Path) -> None:
    spends = "found, source.budget.left = real(source, **how), 0; return found"
    assert "far more work" in str(read(wheel, 2, here=spends)["found"])


@pytest.mark.parametrize("one", ["threads", "one large member"])
def test_no_process_is_started_where_it_would_gain_nothing(tmp_path: Path, wheel: Path, one: str) -> None:
    if one == "threads":
        script = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        command = [sys.executable, "-c", script + READS.replace("HERE", "pass"), str(wheel), "4"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        told = json.loads(done.stdout)
    else:
        told = read(make_wheel(tmp_path / "other", "alone", files={"a.so": library("gfx1030")}), 4)
    assert told["processes"] == 0
    assert told["found"]


@given(st.lists(st.integers(1, 100), min_size=1, max_size=30), st.integers(1, 6))
def test_work_is_shared_out_evenly(costs: list[int], count: int) -> None:
    numbers = list(range(len(costs)))
    shares = _shared_out(numbers, costs, count)
    assert len(shares) == count
    assert sorted(one for share in shares for one in share) == numbers
    loads = [sum(costs[one] for one in share) for share in shares]
    # who has most would have less than another without its last
    assert max(loads) - min(loads) <= max(costs)
    assert loads[0] > 0
