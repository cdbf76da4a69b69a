"""`rocwright run STACK -- python -c "import torch"` against the same sandbox, typed by hand."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import BenchError, paired, processor, seconds, timed
from benchmarks.place import BIN, bench_home
from benchmarks.place import TORCH as STACK
from benchmarks.results import Measured
from rocwright.api.environments import known_environment
from rocwright.home import Home
from rocwright.serving.environments import INSIDE, PLACE, Environment

PROGRAM = ("python", "-c", "import torch")


def measure(runs: int | None) -> Sequence[Measured]:
    """One row."""
    home = bench_home()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        env = {"ROCWRIGHT_HOME": str(home.path)}
        words: list[str | Path] = [BIN / "rocwright", "run", *STACK.words, "--", *PROGRAM]
        timed(words, log=log, env=env, cwd=Path(folder))
        found = known_environment(STACK.name, gpu=",".join(STACK.gpu), base=STACK.base, home=home.path)
        if found is None:
            raise BenchError("the environment that was just used is not known")
        pairs = paired(
            lambda: timed(words, log=log, env=env, cwd=Path(folder)),
            lambda: timed(by_hand(found, home, Path(folder)), log=log, cwd=Path(folder)),
            runs or 11,
            warm=2,
        )
    more = [a.wall - b.wall for a, b in zip(pairs.a, pairs.b, strict=True)]
    return [
        Measured(
            name="run-program",
            what=f'`rocwright run {STACK.name} -- python -c "import torch"`: more than the sandbox alone',
            values=more,
            unit="s",
            most=0.3,
            note=f"{seconds(pairs.a)} against {seconds(pairs.b)}; "
            f"processor time {processor(pairs.a)} against {processor(pairs.b)}",
        )
    ]


def by_hand(environment: Environment, home: Home, folder: Path) -> list[str | Path]:
    """The shortest command line of bubblewrap that runs the program."""
    root = home.roots / environment.root
    words: list[str | Path] = ["bwrap", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for one in sorted(root.iterdir()):
        if one.is_symlink():
            words += ["--symlink", one.readlink(), f"/{one.name}"]
        elif one.name not in ("proc", "dev", "tmp"):
            words += ["--ro-bind", one, f"/{one.name}"]
    words += [
        "--ro-bind",
        environment.folder(home) / INSIDE,
        PLACE,
        "--bind",
        folder,
        folder,
        "--chdir",
        folder,
    ]
    words += ["--clearenv", "--setenv", "PATH", f"{PLACE}/bin:/usr/bin:/bin"]
    return [*words, "--", *PROGRAM]
