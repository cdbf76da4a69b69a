"""The diagnosis of a large log, against GNU grep with the same patterns."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Took, paired, processor, seconds, timed
from benchmarks.place import BIN, bench_home
from benchmarks.results import Measured
from rocwright.bases.roots import remove_tree
from rocwright.catalog.issue import the_issues, unnamed

SIZE = 1024**3
MIB = 1024**2
UNITS = 7950
END = (
    "/build/src/a.cpp:3:1: error: 'uint8_t' does not name a type\n"
    "FAILED: a.o\nninja: build stopped: subcommand failed.\n"
)


def measure(runs: int | None) -> Sequence[Measured]:
    """Two rows: speed against grep, and memory."""
    folder = bench_home().path / "bench" / "diagnose"
    remove_tree(folder)
    folder.mkdir(parents=True)
    try:
        return _log(folder, runs or 7)
    finally:
        remove_tree(folder)


def _log(folder: Path, runs: int) -> list[Measured]:
    log, patterns, said = folder / "build.log", folder / "patterns", folder / "said"
    _write(log)
    patterns.write_text("".join(f"{one}\n" for one in _extended()))

    def diagnose() -> Took:
        return timed([BIN / "python", "-m", "rocwright", "diagnose", log], log=said)

    def grep() -> Took:
        return timed(["grep", "-n", "-E", "-f", patterns, log], log=said, env={"LC_ALL": "C.UTF-8"})

    pairs = paired(diagnose, grep, runs, warm=1)
    memory = []
    for _ in range(3):
        timed([BIN / "python", "-m", __name__, log], log=said)
        memory.append(int(said.read_text().split()[-1]) / MIB)
    what = f"`diagnose` of a log of {SIZE / MIB:.0f} MiB"
    return [
        Measured(
            name="diagnose:grep",
            what=f"{what}: times as fast as grep -E -f with the same patterns",
            values=[b.wall / a.wall for a, b in zip(pairs.a, pairs.b, strict=True)],
            least=1,
            note=f"{seconds(pairs.a)} against {seconds(pairs.b)}, processor time {processor(pairs.a)} "
            f"against {processor(pairs.b)}; whole commands, log in the page cache; grep in C.UTF-8 tells "
            f"matching lines and no more; {len(_extended())} patterns",
        ),
        Measured(
            name="diagnose:memory",
            what=f"{what}: its memory",
            values=memory,
            unit="MiB",
            most=100,
            note="peak resident memory of the process (VmHWM)",
        ),
    ]


def _extended() -> list[str]:
    """Every signature as grep -E reads it: no named or silent groups."""
    issues, lines = the_issues()
    found = [text for one in (*issues.values(), *lines.error_line) for text in one.patterns]
    silent = r"\(\?(?:i?:|i\))"
    return [
        re.sub(silent, lambda match: "" if match[0].endswith(")") else "(", unnamed(text)) for text in found
    ]


def _write(path: Path) -> None:
    """What ninja writes of a large build with warnings, over and over, and an error at the end."""
    unit = "".join(
        f"[{n}/{UNITS}] /usr/bin/c++ -DFOO=1 -I/build/src/include -Werror=return-type -O2 -fPIC -std=gnu++17 "
        f"-o CMakeFiles/x.dir/a{n}.cpp.o -c /build/src/error/a{n}.cpp\n"
        f"/build/src/include/x{n}.h:{n}:3: warning: unused variable 'y{n}' [-Wunused-variable]\n"
        f"   12 |   int y{n} = 3;\n      |       ^~\n"
        for n in range(UNITS)
    ).encode()
    with path.open("wb") as file:
        while file.tell() < SIZE - len(unit):
            file.write(unit)
        file.write(END.encode())


def _peak() -> int:
    """Bytes; of this program alone."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    from rocwright.cli import cli

    cli(["diagnose", sys.argv[1]], standalone_mode=False)
    print(_peak())
