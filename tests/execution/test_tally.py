"""How far a download or a root file system is: packages and bytes, not only a time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rocwright.catalog.load import builtin_catalog
from rocwright.execution import tally
from rocwright.execution.progress import RunningStep
from rocwright.execution.tally import TALLY, count_downloads, count_packages
from rocwright.model.steps import BuiltinOrigin, FilePin

MANAGERS = builtin_catalog().managers.values()


def files(folder: Path, **sizes: int) -> list[tuple[str, Path]]:
    paths = {name: folder / name for name in sizes}
    for name, length in sizes.items():
        paths[name].write_bytes(bytes(length))
    return [*paths.items()]


def told(packages: list[tuple[str, Path]], lines: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(tally, "EVERY", 0)
    output: list[str] = []
    note = count_packages(packages, MANAGERS, output.append)
    for line in lines:
        note(line)
    assert [line for line in output if not TALLY.match(line)] == lines
    return [line for line in output if TALLY.match(line)]


def test_packages_of_debian_are_counted_when_unpacked_and_when_set_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"libfoo-2.0-0_2.0-1_amd64.deb": 3 << 20, "libfoo-2.0-0-dev_2.0-1_amd64.deb": 1 << 20}
    lines = [
        "I: installing essential packages...",
        "Unpacking libfoo-2.0-0:amd64 (2.0-1) ...",
        "Unpacking libfoo-2.0-0:amd64 (2.0-1) over (1.0-1) ...",
        "Unpacking another (1.0) ...",
        "Unpacking libfoo-2.0-0-dev (2.0-1) ...",
        "Setting up libfoo-2.0-0:amd64 (2.0-1) ...",
    ]
    assert told(files(tmp_path, **names), lines, monkeypatch) == [
        "[ 38%] 1 of 2 packages, 3.0 MiB of 4.0 MiB unpacked",
        "[ 38%] 1 of 2 packages, 3.0 MiB of 4.0 MiB unpacked",
        "[ 50%] 2 of 2 packages, 4.0 MiB of 4.0 MiB unpacked",
        "[ 88%] 2 of 2 packages, 4.0 MiB of 4.0 MiB unpacked",
    ]


def test_packages_of_arch_have_one_line_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"zlib-1:1.3.1-2-x86_64.pkg.tar.zst": 1024, "zlib-ng-2.2-1-x86_64.pkg.tar.zst": 3072}
    lines = ["installing zlib-ng...", "upgrading zlib...", "removing gone..."]
    assert told(files(tmp_path, **names), lines, monkeypatch) == [
        "[ 75%] 1 of 2 packages, 3.0 KiB of 4.0 KiB unpacked",
        "[100%] 2 of 2 packages, 4.0 KiB of 4.0 KiB unpacked",
    ]


def test_a_manager_that_counts_by_itself_is_passed_on_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(files(tmp_path, **{"zlib-1.3-1.rpm": 10}), ["[1/2] Installing zlib"], monkeypatch) == []


def test_what_arrives_in_a_folder_is_told_in_files_and_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tally, "EVERY", 0.01)
    pins = [
        FilePin(filename=name, sha256="0" * 64, size=size, origin=BuiltinOrigin(name=name))
        for name, size in (("a.deb", 1000), ("b.deb", 3000))
    ]
    output: list[str] = []
    with count_downloads(pins, (tmp_path, tmp_path / "absent"), output.append):
        for name, size, line in (
            ("a%3a.deb", 1000, "[ 25%] 1 of 2 files, 1000 B of 3.9 KiB downloaded"),
            ("b.deb", 2000, "[ 75%] 1 of 2 files, 2.9 KiB of 3.9 KiB downloaded"),
            ("b.deb", 3000, "[100%] 2 of 2 files, 3.9 KiB of 3.9 KiB downloaded"),
        ):
            (tmp_path / name).write_bytes(bytes(size))
            deadline = time.monotonic() + 20
            while line not in output and time.monotonic() < deadline:
                time.sleep(0.01)
        (tmp_path / "b.deb").unlink()
        time.sleep(0.1)
    assert output[-1] == line
    assert all(map(TALLY.match, output))


def test_a_step_shows_packages_and_bytes_beside_the_time() -> None:
    step = RunningStep("root/build", 1)
    step.note("Unpacking zlib1g:amd64 (1:1.3) ...")
    step.note("[ 38%] 1 of 2 packages, 3.0 MiB of 4.0 MiB unpacked")
    assert "38 % · 1 of 2 packages, 3.0 MiB of 4.0 MiB unpacked · " in step.describe()
    assert step.last.startswith("Unpacking")
