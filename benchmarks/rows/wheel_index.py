"""An index of 100,000 wheels: all of it, and after one new file."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from benchmarks.measure import Took, processor, seconds, timed
from benchmarks.place import BIN, bench_home
from benchmarks.results import Measured
from rocwheel_samples.fatbin import entry_id, fatbin, gpu_elf, host_elf, plain_bundle
from rocwright.bases.roots import remove_tree

PROJECTS = 1_000
RELEASES = 100
WITH_CODE = 10
"""One project in so many has code for GPUs."""

TARGETS = {"gfx1100": 0x041, "gfx1103": 0x044, "gfx1151": 0x04A, "gfx942": 0x04C}


def measure(runs: int | None) -> Sequence[Measured]:
    """All of it, one more found by listing the folder, one more that was named."""
    folder = bench_home().path / "bench" / "wheel-index"
    remove_tree(folder)
    try:
        return _measure(folder, runs or 3)
    finally:
        remove_tree(folder)


def _measure(folder: Path, runs: int) -> list[Measured]:
    wheels = folder / "wheels"
    print(f"    making {PROJECTS * RELEASES:,} wheels", flush=True)
    for number in range(PROJECTS):
        for release in range(RELEASES):
            _write(wheels, number, f"1.{release}")
    os.sync()
    full: list[Took] = []
    again: list[Took] = []
    named: list[Took] = []
    for number in range(runs):
        for old in (wheels / "simple", *wheels.glob("gfx*")):
            remove_tree(old)
        for old in wheels.rglob("*.metadata"):
            old.unlink()
        (wheels / ".rocwright-index.json").unlink(missing_ok=True)
        remove_tree(folder / "home")
        os.sync()
        full.append(_index(folder))
        os.sync()
        for one in range(3):
            _write(wheels, one, f"2.{number}.{one}")
            again.append(_index(folder))
        for one in range(3):
            new = _write(wheels, one, f"3.{number}.{one}")
            named.append(_index(folder, "--changed", new))
    note = (
        f"{PROJECTS:,} projects, {RELEASES} releases of a few KiB each, one project in {WITH_CODE} with code "
        f"for {len(TARGETS)} GPUs, so {1 + len(TARGETS)} views; the whole command, files in the page cache; "
    )
    return [
        Measured(
            name="wheel-index",
            what="`wheel index build` of 100,000 wheels, hashed, their metadata and GPU code read, "
            "all pages written",
            values=[one.wall for one in full],
            unit="s",
            most=30,
            note=note + f"processor time {processor(full)}",
        ),
        Measured(
            name="wheel-index:one-more",
            what="`wheel index build` after one new wheel among 100,000",
            values=[one.wall for one in again],
            unit="s",
            most=1,
            note=f"the folder is listed whole, one wheel is read; {seconds(again)}, "
            f"processor time {processor(again)}",
        ),
        Measured(
            name="wheel-index:changed",
            what="`wheel index build --changed` with one new wheel among 100,000",
            values=[one.wall for one in named],
            unit="s",
            most=0.3,
            note=f"it is named, no folder is listed; {seconds(named)}, processor time {processor(named)}",
        ),
    ]


def _index(folder: Path, *words: str | Path) -> Took:
    return timed(
        [BIN / "python", "-m", "rocwright", "wheel", "index", "build", folder / "wheels", *words],
        log=folder / "log",
        env={"ROCWRIGHT_HOME": str(folder / "home")},
    )


def _write(folder: Path, number: int, version: str) -> Path:
    name = f"project_{number:04}"
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": f"VERSION = {version!r}\n".encode(),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        f"Requires-Python: >=3.9\nSummary: one of many\n\n{'It says more. ' * 100}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    if number % WITH_CODE == 0:
        files[f"{name}/lib.so"] = _LIBRARY
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    place = folder / f"{number % 100:02}"
    place.mkdir(parents=True, exist_ok=True)
    wheel = place / f"{name}-{version}-py3-none-any.whl"
    wheel.write_bytes(packed.getvalue())
    return wheel


_LIBRARY = host_elf(
    fatbin([plain_bundle([(entry_id(name), gpu_elf(flags)) for name, flags in TARGETS.items()])])
)
