"""Which torch and device this is, whether torch was built for it, and whether its libraries are whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from smoke.about import describe
from smoke.devices import plain_target, serves, title
from smoke.explain import ended, explain, tail
from smoke.model import AbsentError, Case, Context, Told, WrongError

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_THERE = "cannot open shared object file"
OPEN_ALL = """
import ctypes, json, os, sys
import torch
if sys.argv[1] != "cpu":
    torch.zeros(2, device=sys.argv[1])
failed = {}
for path in sys.argv[2:]:
    try:
        ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        failed[os.path.basename(path)] = str(error)
print("OPENED " + json.dumps(failed), flush=True)
os._exit(0)
"""
"""Imports torch with every symbol bound at once, then opens what the import has not opened."""


def cases() -> Iterator[Case]:
    for run in (versions, device, targets, one_copy, symbols):
        yield Case("about", run.__name__.replace("_", "-"), run)


def versions(context: Context) -> Told:
    """The versions of torch, and of what it was built with."""
    found = describe(context.torch)
    built = (
        f"hip {found['hip']}" if found["hip"] else f"cuda {found['cuda']}" if found["cuda"] else "cpu only"
    )
    return Told(f"torch {found['torch']} ({built}), Python {found['python']}")


def device(context: Context) -> Told:
    """The device is there, and gives 1 + 1."""
    torch = context.torch
    two = (torch.ones(1, device=context.device) + 1).item()
    if two != 2:
        raise WrongError(f"1 + 1 is {two} on it")
    if not context.on_gpu:
        return Told(f"cpu, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}")
    one = describe(torch)["devices"][context.device.index or 0]
    return Told(f"{title(one)}, {one['units']} compute units, {one['memory'] / 1024**3:.1f} GiB")


def targets(context: Context) -> Told:
    """Torch was built for the device's target."""
    if not context.on_gpu:
        raise AbsentError("the CPU has no target")
    found = describe(context.torch)
    target = found["devices"][context.device.index or 0]["target"]
    built = ", ".join(found["built_for"]) or "none"
    if not serves(found["built_for"], target):
        raise WrongError(
            f"the device is {plain_target(target)}, and torch was built for {built}",
            cause="missing kernels: operations may fail on it, or run code meant for another device",
            next_step=f"build torch for {plain_target(target)}, or install a build that has it",
        )
    return Told(f"the device is {plain_target(target)}; torch was built for {built}")


def one_copy(context: Context) -> Told:
    """No library is in the process twice, from two files."""
    (
        context.torch.ones(8, 8, device=context.device) @ context.torch.ones(8, 8, device=context.device)
    ).sum().item()
    places = defaultdict(set)
    for path in mapped():
        places[path.name].add(path)
    twice = {name: sorted(str(one) for one in found) for name, found in places.items() if len(found) > 1}
    if twice:
        raise WrongError(
            f"loaded from two files: {'; '.join(', '.join(found) for found in twice.values())}",
            cause="two copies of a library: each has its own state, and symbols may bind to either",
            next_step="remove one of the two, or the package that brought it",
        )
    own = Path(context.torch.__file__).parent
    ours = sum(own in path.parents for found in places.values() for path in found)
    return Told(f"{len(places)} libraries in the process, {ours} of them torch's, each from one file")


def symbols(context: Context) -> Told:
    """Every library of torch opens, with all of its symbols resolved at once."""
    folder = Path(context.torch.__file__).parent / "lib"
    # a distribution puts them beside its other libraries: then what the import has loaded
    own = {path for path in folder.glob("*.so*") if not path.is_symlink()}
    libraries = sorted(str(path) for path in own or {path for path in mapped() if "torch" in path.name})
    done = subprocess.run(
        [sys.executable, "-c", OPEN_ALL, str(context.device), *libraries],
        env={**os.environ, "LD_BIND_NOW": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=110,
        check=False,
    )
    answers = [line for line in done.stdout.splitlines() if line.startswith("OPENED ")]
    if not answers:
        known = explain(done.stderr)
        raise WrongError(
            f"with all symbols bound at once, the import {ended(done.returncode)}: {tail(done.stderr)}",
            cause=known.cause or "a library does not load",
            next_step=known.next_step,
        )
    failed = json.loads(answers[0].removeprefix("OPENED "))
    # a torch for GPUs opens some of its libraries only where there is a driver
    waiting = {} if context.on_gpu else {name: why for name, why in failed.items() if NOT_THERE in why}
    text = "; ".join(f"{name}: {why}" for name, why in failed.items() if name not in waiting)
    if text:
        known = explain(text)
        raise WrongError(text, cause=known.cause or "a library does not load", next_step=known.next_step)
    opened = f"{len(libraries) - len(waiting)} libraries of torch opened, no symbol missing"
    return Told(opened + (f"; not without a GPU: {', '.join(waiting)}" if waiting else ""))


def mapped() -> set[Path]:
    """The shared libraries in this process."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    named = {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}
    return {Path(name) for name in named if name.startswith("/") and ".so" in Path(name).name}
