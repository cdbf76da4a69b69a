"""`rocwright wheel repair` against `auditwheel repair`, where both bring in the same libraries."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.measure import BenchError, Pairs, Took, paired, processor, seconds, timed
from benchmarks.place import bench_home
from benchmarks.results import Measured
from rocwheel.files.atomic import sha256_file
from rocwheel.wheels.repair import Request, plan_for
from rocwheel.wheels.write import File, write_wheel
from rocwright.bases.roots import remove_tree

NEEDED = ("librocrand.so.1", "libamdhip64.so.*", "libamd_comgr.so.*")
"""What the wheel's library is linked against: comgr too, which HIP opens by name, unseen by auditwheel."""

_HASH = re.compile(r"needy\.libs/.*-([0-9a-f]{8})\.")


def measure(runs: int | None) -> Sequence[Measured]:
    """Two rows: auditwheel as it compresses by itself, and at its quickest."""
    folder = bench_home().path / "bench" / "wheel-bundle"
    remove_tree(folder)
    folder.mkdir(parents=True)
    try:
        return _measure(folder, runs or 5)
    finally:
        remove_tree(folder)


def _measure(folder: Path, runs: int) -> list[Measured]:
    root, log = folder / "rocm", folder / "log"
    _fetch(folder, root)
    lib = next(root.glob("usr/lib/*-linux-gnu"))
    wheel = _wheel(folder, lib)
    plan = plan_for(wheel, Request(roots=(root,)))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {"LD_LIBRARY_PATH": str(lib), "PATH": path}
    theirs, ours = folder / "theirs", folder / "ours"

    def auditwheel(*words: str) -> Callable[[], Took]:
        argv = [sys.executable, "-m", "auditwheel", "repair", *words, "-w", str(theirs), str(wheel)]
        return lambda: _alone(lambda: timed(argv, log=log, env=env), theirs)

    def bundle() -> Took:
        argv: list[str | Path] = [
            sys.executable,
            "-m",
            "rocwright",
            "wheel",
            "repair",
            wheel,
            "--rocm",
            root,
            "-o",
            ours,
        ]
        return _alone(lambda: timed(argv, log=log), ours)

    usual = paired(auditwheel(), bundle, runs)
    sizes = [next(one.glob("*.whl")).stat().st_size for one in (theirs, ours)]
    _same(next(theirs.glob("*.whl")), {sha256_file(one.source)[:8] for one in plan.libraries})
    quick = paired(auditwheel("-z", "1"), bundle, runs)
    size = f"{plan.size / 1024**2:.0f} MiB"
    what = f"{len(plan.libraries)} libraries of ROCm and what it needs, {size}, into a wheel: times as fast"
    told = f"wheels of {sizes[1]:,} bytes against {sizes[0]:,}; the same libraries in both, by their hashes"
    return [
        _row("wheel-bundle", f"{what} as auditwheel repair", usual, told, 2),
        _row("wheel-bundle:quick", f"{what} as auditwheel repair -z 1", quick, "lightest compression", None),
    ]


def _row(name: str, what: str, pairs: Pairs, told: str, least: float | None) -> Measured:
    return Measured(
        name=name,
        what=what,
        values=pairs.ratios,
        least=least,
        note=f"{seconds(pairs.b)} against {seconds(pairs.a)}; processor time {processor(pairs.b)} against "
        f"{processor(pairs.a)}; {told}; Debian's libraries, whole processes",
    )


def _fetch(folder: Path, root: Path) -> None:
    told = subprocess.run(
        ["apt-cache", "depends", "--recurse", "--important", "--no-suggests", "librocrand1"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    listed = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} "], capture_output=True, text=True, check=False
    )
    names = set(re.findall(r"^(lib[\w.+-]+)$", told, re.MULTILINE)) - set(listed.stdout.split())
    if not names:
        raise BenchError("this machine's apt knows no librocrand1")
    timed(["apt-get", "download", "-q", *sorted(names)], log=folder / "log", cwd=folder)
    for package in folder.glob("*.deb"):
        timed(["dpkg", "-x", package, root], log=folder / "log")


def _wheel(folder: Path, lib: Path) -> Path:
    source, library = folder / "native.c", folder / "_native.so"
    source.write_text("int nothing(void) { return 0; }")
    needs = [next(one for one in sorted(lib.glob(pattern)) if one.is_symlink()) for pattern in NEEDED]
    flags = ["-shared", "-fPIC", "-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined"]
    timed(["gcc", *flags, "-o", library, source, *needs], log=folder / "log")
    info = "needy-1.0.dist-info"
    out = folder / "needy-1.0-py3-none-linux_x86_64.whl"
    files = [
        File(path="needy/__init__.py", content=b""),
        File(path="needy/_native.so", content=library),
        File(path=f"{info}/METADATA", content=b"Metadata-Version: 2.1\nName: needy\nVersion: 1.0\n"),
        File(
            path=f"{info}/WHEEL",
            content=b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n",
        ),
    ]
    write_wheel(out, files, epoch=0)
    return out


def _same(repaired: Path, ours: set[str]) -> None:
    with zipfile.ZipFile(repaired) as archive:
        theirs = {match[1] for name in archive.namelist() if (match := _HASH.search(name))}
    if theirs != ours:
        raise BenchError(f"the two bring in other libraries: {theirs ^ ours}")


def _alone(run: Callable[[], Took], out: Path) -> Took:
    """Run with nothing written yet, and nothing waiting to be written."""
    remove_tree(out)
    os.sync()
    return run()
