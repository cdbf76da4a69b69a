"""The diagnosis of real logs, against GNU grep with the same patterns; its memory; a short log."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.measure import BenchError, Took, middle, paired, processor, timed
from benchmarks.place import BIN, LLAMA, TORCH, Scratch, Stack, bench_home, scratch
from benchmarks.results import Measured
from rocwright.catalog.issue import the_issues, unnamed

# Bytes of each log: what was printed, again and again where that is less.
SIZE = 10 * 1000**2

MIB = 1024**2
SHORT = 50
APT = ("apt-get", "-s", "-o", "Debug::pkgDepCache::Marker=1", "-o", "Debug::pkgDepCache::AutoInstall=1")
PACKAGES = ("gnome", "kde-standard", "texlive-latex-extra", "build-essential", "libboost-all-dev")
# It ends with 1 where no line matches.
GREP = 'grep -n -E -f "$0" "$1" || test $? = 1'

END = (
    b"/build/src/a.cpp:3:10: fatal error: numa.h: No such file or directory\n"
    b"compilation terminated.\nFAILED: a.o\nninja: build stopped: subcommand failed.\n"
)


def measure(runs: int | None) -> Sequence[Measured]:
    """Measure processor time against grep over all logs, memory, and a log of 50 lines."""
    with scratch(LLAMA, TORCH) as place:
        logs = _write(place)
        patterns = place.path / "patterns"
        patterns.write_text("".join(f"{one}\n" for one in _extended()))
        return [
            _against_grep(logs, patterns, place.log, runs or 5),
            _memory(logs, place.log),
            _short(logs["llama"], place, runs or 11),
        ]


def _against_grep(logs: Mapping[str, Path], patterns: Path, said: Path, runs: int) -> Measured:
    told: list[str] = []
    sums = [Took(0, 0)] * runs, [Took(0, 0)] * runs
    for name, log in logs.items():
        pairs = paired(
            partial(_diagnose, log, said),
            partial(timed, ["sh", "-c", GREP, patterns, log], log=said, env={"LC_ALL": "C.UTF-8"}),
            runs,
            warm=1,
        )
        told.append(f"{name} {processor(pairs.a)} against {processor(pairs.b)}")
        for own, more in zip(sums, (pairs.a, pairs.b), strict=True):
            own[:] = [a + b for a, b in zip(own, more, strict=True)]
    return Measured(
        name="diagnose:grep",
        what="`diagnose` of real logs of 10 MB: times as fast as grep -E -f with the same patterns",
        values=[grep.cpu / own.cpu for own, grep in zip(*sums, strict=True)],
        least=1,
        note=f"processor time of whole commands: {'; '.join(told)}; grep in C.UTF-8",
    )


def _memory(logs: Mapping[str, Path], said: Path) -> Measured:
    peaks = []
    for log in logs.values():
        timed([BIN / "python", "-m", __name__, log], log=said)
        peaks.append(int(said.read_text().split()[-1]) / MIB)
    return Measured(
        name="diagnose:memory",
        what="`diagnose` of real logs of 10 MB: the most memory",
        values=[max(peaks)],
        unit="MiB",
        most=100,
        note="peak resident memory of the process (VmHWM)",
    )


def _short(log: Path, place: Scratch, runs: int) -> Measured:
    short = place.path / "short.log"
    lines = log.read_bytes().splitlines(keepends=True)[: SHORT - END.count(b"\n")]
    short.write_bytes(b"".join(lines) + END)
    took = [_diagnose(short, place.log) for _ in range(runs + 1)][1:]
    return Measured(
        name="diagnose:short",
        what=f"`diagnose` of a log of {SHORT} lines: processor time of the whole command",
        values=[one.cpu for one in took],
        unit="s",
        most=0.3,
        note=f"wall time {middle([one.wall for one in took]):.2f} s",
    )


def _diagnose(log: Path, said: Path) -> Took:
    return timed([BIN / "python", "-m", "rocwright", "diagnose", log], log=said)


def _write(place: Scratch) -> dict[str, Path]:
    """What apt, dpkg and builds print, each in a file; and all of it as `docker build` prints it."""
    apt = b"".join(_printed(*APT, "install", package) for package in PACKAGES)
    dpkg = b"".join(path.read_bytes() for path in sorted(Path("/var/log").glob("dpkg.log*[!z]")))
    llama, torch = _built(place, LLAMA), _built(place, TORCH)
    steps = (apt[:MIB], dpkg[:MIB], torch, llama)
    docker = b"".join(
        b"#%d %.3f %s\n" % (number, at / 50, line)
        for number, step in enumerate(steps, start=5)
        for at, line in enumerate(step.splitlines())
    )
    texts = {"docker": docker, "apt": apt, "dpkg": dpkg, "llama": llama, "torch": torch}
    paths = {name: place.path / f"{name}.log" for name in texts}
    for name, text in texts.items():
        if not text:
            raise BenchError(f"this machine has no log of {name}")
        paths[name].write_bytes((text * (SIZE // len(text) + 1))[:SIZE].rpartition(b"\n")[0] + b"\n")
    return paths


def _built(place: Scratch, stack: Stack) -> bytes:
    """What the steps of a stack printed when it was built in the benchmarks' home."""
    names = {f"{step.name.replace('/', '-')}.log" for step in place.plan(stack).steps}
    logs = [path for path in sorted(bench_home().runs.glob("*/*.log")) if path.name in names]
    return b"".join(path.read_bytes() for path in logs)


def _printed(*command: str) -> bytes:
    return subprocess.run(command, capture_output=True, check=False).stdout


def _extended() -> list[str]:
    """Every signature as grep -E reads it: no named or silent groups."""
    issues, lines = the_issues()
    found = [text for one in (*issues.values(), *lines.error_line) for text in one.patterns]
    silent = r"\(\?(?:i?:|i\))"
    return [
        re.sub(silent, lambda match: "" if match[0].endswith(")") else "(", unnamed(text)) for text in found
    ]


def _peak() -> int:
    """Bytes; of this program alone."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    from rocwright.cli import cli

    cli(["diagnose", sys.argv[1]], standalone_mode=False)
    print(_peak())
