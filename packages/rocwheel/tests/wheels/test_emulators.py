"""A process that has an emulator's library mapped is known, whatever its GPUs are called."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rocwheel.wheels import detect
from rocwheel.wheels.emulators import emulator_below, emulator_in, emulator_of, emulators
from rocwheel_samples.trees import write_tree

MAPS = """\
import mmap, sys
file = open(sys.argv[1], "rb")
held = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
print(flush=True)
sys.stdin.read()
"""
STARTS = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]], check=True)"


@contextmanager
def process(library: Path, *before: str) -> Iterator[int]:
    """A process with that file mapped, or one that has started it; ready, and ended with the block."""
    library.parent.mkdir(parents=True, exist_ok=True)
    library.write_bytes(b"\x7fELF" + bytes(4096))
    command = [sys.executable, "-c", *before, MAPS, str(library)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        yield started.pid


@pytest.mark.parametrize("name", ["librocjitsu.so", "librocjitsu.so.0.2.0", "librocjitsu_hooks.so"])
def test_a_process_that_maps_an_emulators_library_is_known(tmp_path: Path, name: str) -> None:
    library = tmp_path / "a folder" / name
    with process(library) as pid:
        assert emulator_of(pid) == str(library)
        library.unlink()
        assert emulator_of(pid).startswith(str(library)), "a file that was deleted since is still mapped"


@pytest.mark.parametrize("name", ["libamdhip64.so", "notlibrocjitsu.so", "librocjits.so"])
def test_a_process_without_it_is_not(tmp_path: Path, name: str) -> None:
    with process(tmp_path / "librocjitsu" / name) as pid:
        assert emulator_of(pid) == ""


def test_a_process_that_was_started_by_another_is_found_below_it(tmp_path: Path) -> None:
    library = tmp_path / "librocjitsu.so"
    with process(library, STARTS) as pid:
        assert emulator_of(pid) == ""
        assert emulator_below(pid) == emulator_below(os.getpid()) == str(library)
    assert emulator_below(os.getpid()) == ""


def test_a_process_that_is_gone_has_none() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    assert emulator_of(ended.pid) == ""


def test_what_only_looks_like_a_path_is_none() -> None:
    assert emulator_in("7f00-7f01 r--p 0 00:00 0 [librocjitsu]\n7f02-7f03 rw-p 0 00:00 0\nlibrocjitsu") == ""


def test_in_an_emulator_no_gpu_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = "class/kfd/kfd/topology/nodes/1/properties"
    sysfs = write_tree(tmp_path, {node: "gfx_target_version 110003\nsimd_count 24\ndevice_id 5567\n"})
    monkeypatch.setattr(detect, "SYSFS", sysfs)
    assert [one.target for one in detect.find_gpus({}, sysfs)] == ["gfx1103"]
    library = tmp_path / "librocjitsu.so"
    with process(library) as pid:
        monkeypatch.setattr(detect, "emulator_of", lambda: emulator_of(pid))
        assert detect.find_gpus({}, sysfs) == []


def test_each_emulator_says_where_it_is_to_be_had() -> None:
    (one,) = emulators()
    assert {"rocjitsu", "amdrocm-emulation"} <= {word for text in one.packages for word in text.split()}
    assert not set(one.configurations) & set(one.lacks)
