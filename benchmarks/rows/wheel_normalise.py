"""A real wheel in its one form, and its pieces merged for one target, against zipfile writing the same."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from samples.fetched import real_wheel

from benchmarks.measure import Took, paired, processor, seconds, timed
from benchmarks.place import BIN, bench_home
from benchmarks.results import Measured
from rocwright.bases.roots import remove_tree

PROJECT, VERSION, GPU = "onnxruntime-rocm", "1.22.2.post3", "gfx1100"


def measure(runs: int | None) -> Sequence[Measured]:
    """Two rows: normalise, merge."""
    folder = bench_home().path / "bench" / "wheel-normalise"
    remove_tree(folder)
    folder.mkdir(parents=True)
    try:
        return _measure(real_wheel(PROJECT, VERSION), folder, runs or 3)
    finally:
        remove_tree(folder)


def _measure(wheel: Path, folder: Path, runs: int) -> list[Measured]:
    out, pieces, log = folder / "out", folder / "pieces", folder / "log"

    def verb(*words: str | Path) -> Callable[[], Took]:
        def run() -> Took:
            remove_tree(out)
            out.mkdir()
            return timed([BIN / "python", "-m", "rocwright", "wheel", *words, "-o", out], log=log)

        return run

    timed([BIN / "python", "-m", "rocwright", "wheel", "split", wheel, "-o", pieces], log=log)
    chosen = [*pieces.glob("*+neutral-*.whl"), *pieces.glob(f"*_{GPU}-*.whl")]
    return [
        _row(
            "wheel-normalise",
            f"`wheel canonicalize` of {PROJECT} {VERSION}",
            verb("canonicalize", wheel),
            folder,
            runs,
        ),
        _row(
            "wheel-merge", "`wheel merge` of it for one target of eight", verb("merge", *chosen), folder, runs
        ),
    ]


def _row(name: str, what: str, run: Callable[[], Took], folder: Path, runs: int) -> Measured:
    files = folder / "files"
    run()
    (made,) = (folder / "out").glob("*.whl")
    size = made.stat().st_size
    remove_tree(files)
    with zipfile.ZipFile(made) as archive:
        archive.extractall(files)
    other = folder / "zip.whl"
    zipped: list[str | Path] = [BIN / "python", "-m", __name__, files, other]
    pairs = paired(run, lambda: timed(zipped, log=folder / "log"), runs)
    return Measured(
        name=name,
        what=f"{what}: times as fast as zipfile writing the same files",
        values=[b.wall / a.wall for a, b in zip(pairs.a, pairs.b, strict=True)],
        note=f"{seconds(pairs.a)} against {seconds(pairs.b)}, processor time {processor(pairs.a)} against "
        f"{processor(pairs.b)}; whole commands; {size:,} bytes against {other.stat().st_size:,}; "
        "rocwright reads wheels, zipfile files that are unpacked already; files in the page cache",
    )


def _zip(folder: Path, out: Path) -> None:
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))


if __name__ == "__main__":
    _zip(Path(sys.argv[1]), Path(sys.argv[2]))
