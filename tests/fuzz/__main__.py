"""`python -m tests.fuzz TARGET|all SECONDS [FOLDER]`: fuzz the readers; what fails lies in FOLDER then."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(
    include=["rocwheel.wheels", "rocwright.provenance", "rocwright.web", "rocwheel.http.limits", "h11"],
    enable_loader_override=False,
):
    for name in ("archives", "images", "zips"):  # which the readers import only when they need them
        importlib.import_module(f"rocwheel.wheels.{name}")
    from tests.fuzz import targets

CORPUS = Path(__file__).parent / "corpus"


def main() -> None:
    target, seconds, *rest = sys.argv[1:]
    folder = Path(rest[0] if rest else tempfile.mkdtemp(prefix="rocwright-fuzz-"))
    found = folder / "corpus"
    found.mkdir(parents=True, exist_ok=True)
    seeds = targets.seeds()
    for number, kind in enumerate(targets.TARGETS):
        named = seeds.get(kind, {})
        kept = {file.name: file.read_bytes() for file in sorted((CORPUS / kind).glob("*"))}
        for name, content in {**named, **kept}.items():
            if target in (kind, "all"):
                first = bytes([number]) if target == "all" else b""
                (found / f"seed-{kind}-{name}").write_bytes(first + content)
    targets.bound_work()
    tempfile.tempdir = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    options = ["-max_len=65536", "-timeout=20", "-rss_limit_mb=1500", f"-artifact_prefix={folder}/"]
    run = targets.call_any if target == "all" else lambda data: targets.call(target, data)
    atheris.Setup([sys.argv[0], *options, f"-max_total_time={seconds}", str(found)], run)
    atheris.Fuzz()


main()
