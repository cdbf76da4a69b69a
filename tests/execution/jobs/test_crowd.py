"""Real processes in a real cgroup: with the job server nothing is killed, without it something is."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.crowd import Compiler, Shop, lay_out

from rocwright.home import Home
from rocwright.sandbox import cgroup
from rocwright.sandbox.host import HostEngine

MIB = 1024**2
LIMIT = 320 * MIB
CROWD = [
    Compiler(peak=peak, seconds=0.3, late=late)
    for peak, late in [(150, 0.0), (150, 0.0), (150, 0.0), (60, 0.0), (140, 0.7), (20, 0.0), (130, 0.7)]
]
"""All at once come to more than twice the limit."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    missing = [name for name in ("cc", "make") if shutil.which(name) is None]
    group = cgroup.create("rocwright-test-crowd")
    if missing or group is None:
        pytest.skip(f"no {missing[0]} here" if missing else "no cgroup may be made here")
    group.folder.rmdir()
    return tmp_path / "work"


def test_a_crowd_larger_than_the_limit_is_built_whole_and_would_be_killed_without_the_server(
    folder: Path, tmp_path: Path
) -> None:
    # peaks that last meet on a busy machine too: of 0.3 s they once came one after the other
    lay_out(folder, [replace(compiler, seconds=1.5) for compiler in CROWD])
    shop = Shop(engine=HostEngine(), folder=folder)
    plain = shop.with_number("make -j7", LIMIT)
    assert (plain.ok, plain.killed) == (False, True)
    shutil.rmtree(folder)
    lay_out(folder, CROWD)
    served = shop.under_server("make", LIMIT, jobs=7, reckoned=100 * MIB, home=Home(tmp_path))
    assert not served.killed, served.lines
    assert served.ok, served.lines
    # the recipe reckons with less than they take: two begin, and one of them has to wait
    assert served.paused > 0
    assert sorted(int(made.read_text()) for made in folder.glob("*.o")) == sorted(one.peak for one in CROWD)


def test_a_process_that_alone_wants_more_than_there_is_is_said_and_what_cannot_be_read_too(
    folder: Path, tmp_path: Path
) -> None:
    lay_out(folder, [Compiler(peak=300, seconds=2, late=0.0)])
    home = Home(tmp_path)
    home.job_memory.write_text("{")
    ran = Shop(engine=HostEngine(), folder=folder).under_server(
        "make", 160 * MIB, jobs=2, reckoned=50 * MIB, home=home
    )
    assert ran.killed
    said = "\n".join(ran.lines)
    assert "crowd: one process (compile) alone uses" in said
    assert "fewer jobs do not help" in said
    assert "job-memory.json.damaged" in said
