"""Fuzz the readers: `python -m tests.fuzz TARGET|all|each SECONDS [FOLDER]`; inputs that fail lie in FOLDER.

`all` fuzzes the targets together, `each` one after another for SECONDS each.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

import atheris

with atheris.instrument_imports(
    include=[
        *("rocwheel.wheels", "rocwright.provenance", "rocwright.web", "h11"),
        *(
            "rocwright.sources",
            "rocwright.plan.resolve",
            "rocwright.store.seal",
            "rocwright.serving.models",
            "tarfile",
        ),
    ],
    enable_loader_override=False,
):
    for name in ("archives", "images", "zips"):  # which the readers import only when they need them
        importlib.import_module(f"rocwheel.wheels.{name}")
    from tests.fuzz import targets

CORPUS = Path(__file__).parent / "corpus"


def write_seeds(target: str, folder: Path) -> None:
    """Write the inputs that fuzzing begins with."""
    folder.mkdir(parents=True, exist_ok=True)
    seeds = targets.seeds()
    for number, kind in enumerate(targets.TARGETS):
        corpus = {file.name: file.read_bytes() for file in sorted((CORPUS / kind).glob("*"))}
        for name, content in {**seeds.get(kind, {}), **corpus}.items():
            if target in (kind, "all"):
                first = bytes([number]) if target == "all" else b""
                (folder / f"seed-{kind}-{name}").write_bytes(first + content)


def fuzz(target: str, seconds: str, folder: Path) -> NoReturn:
    """Fuzz one target, or all together, until the time is over; ends the process."""
    write_seeds(target, folder / "corpus")
    targets.bound_work()
    tempfile.tempdir = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    options = ["-max_len=65536", "-timeout=20", "-rss_limit_mb=1500", f"-artifact_prefix={folder}/"]
    run = targets.call_any if target == "all" else lambda data: targets.call(target, data)
    atheris.Setup([sys.argv[0], *options, f"-max_total_time={seconds}", str(folder / "corpus")], run)
    atheris.Fuzz()
    raise AssertionError("atheris came back")


def fuzz_each(seconds: str, folder: Path) -> int:
    """Fuzz every target in a process of its own, all with the readers that are instrumented here."""
    failed = []
    for target in targets.TARGETS:
        child = os.fork()
        if child == 0:
            fuzz(target, seconds, folder / target)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
            failed.append(target)
    print("failed:", *failed, flush=True)
    return len(failed)


def main() -> int:
    target, seconds, *rest = sys.argv[1:]
    folder = Path(rest[0] if rest else tempfile.mkdtemp(prefix="rocwright-fuzz-"))
    if target == "each":
        return fuzz_each(seconds, folder)
    fuzz(target, seconds, folder)


sys.exit(main())
