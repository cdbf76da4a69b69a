"""A real load, watched: what a wheel that stands alone opens, and whether that is its own or the system's.

The loader tells it (LD_DEBUG, ld.so(8)); files are told by strace(1) where that is there. What the code that
was run does not do is not seen: without a GPU, no library reads its kernels.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rocbase.errors import CheckError, InputError
from rocbase.folders.temporary import temporary_folder
from rocbase.processes import run as process
from rocwheel.wheels.archive import open_wheel
from rocwheel.wheels.needed import LibrarySearch, linkage_of, of_system
from rocwheel.wheels.repair.facts import Facts, the_facts
from rocwheel.wheels.repair.finding import given_folders
from rocwheel.wheels.repair.make import Made, installed
from rocwheel.wheels.repair.model import Plan, Request
from rocwheel.wheels.repair.staying import is_meant
from rocwheel.wheels.write import WheelFile

DRIVER = Path(__file__).with_name("driver.py")
TIME_LIMIT = 600
"""Seconds that the watched process may take."""

_NEEDED_BY = re.compile(r"file=(\S+) \[\d+\];\s+(needed|dynamically loaded) by (\S+) \[")
_LOADED = re.compile(r"file=(\S+) \[\d+\];\s+generating link map")
_TRIED = re.compile(r"trying file=(.*\S)")
_OPENED = re.compile(r'open(?:at)?\((?:[^,"]*, )?"((?:[^"\\]|\\.)*)"[^)]*\) = \d')


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """What was seen.

    `loaded` are the wheel's own files that the loader took, `outside` (name, who asked, where it was taken
    from) what came from elsewhere and should not have, `lacking` (name, who asked) what was looked for in
    vain though ROCm has it, `absent` the same where ROCm has it not, `read` the wheel's files that were
    opened, `read_outside` files of ROCm's that were opened where they came from, `failed` what could not be
    loaded or run, with the reason. `files_seen` says whether files were watched.
    """

    loaded: tuple[str, ...]
    outside: tuple[tuple[str, str, str], ...]
    lacking: tuple[tuple[str, str], ...]
    absent: tuple[tuple[str, str], ...]
    read: tuple[str, ...]
    read_outside: tuple[str, ...]
    failed: dict[str, str]
    files_seen: bool

    @property
    def problems(self) -> tuple[str, ...]:
        """What keeps the wheel from standing alone, in words."""
        return (
            *(f"{path} cannot be loaded: {reason}" for path, reason in self.failed.items()),
            *(f"{name} came from {path}, for {dependent}" for name, dependent, path in self.outside),
            *(f"{name} is opened by {dependent} but was not bundled" for name, dependent in self.lacking),
            *(f"{path} was read from outside the wheel" for path in self.read_outside),
        )


def trace(wheel: Path, plan: Plan, request: Request, programs: Sequence[Path] = ()) -> Traced:
    """Unpack the wheel, load its own libraries and run Python `programs` in a clean process, and watch.

    Raises CheckError where the process does not come to its end.
    """
    with temporary_folder("trace") as folder, open_wheel(wheel) as files:
        site = Path(folder).resolve() / "site"
        _unpack(files, site)
        own = [
            path
            for path in sorted(
                path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()
            )
            if not path.startswith(f"{plan.home}/") and is_meant(path, request.only)
            if linkage_of(site / path) is not None
        ]
        log, trace_log, report = (Path(folder) / name for name in ("loader", "files", "report"))
        strace = shutil.which("strace")
        watched = ["strace", "-f", "-qq", "-e", "trace=open,openat", "-o", str(trace_log)] if strace else []
        words = [*watched, sys.executable, "-I", str(DRIVER), str(site), str(report), *own]
        completed = process.run(
            [*words, "--", *(program.resolve() for program in programs)],
            env={
                "PATH": os.environ.get("PATH", ""),
                "LD_DEBUG": "files,libs",
                "LD_DEBUG_OUTPUT": str(log),
                "HOME": str(folder),
            },
            cwd=Path(folder),
            timeout=TIME_LIMIT,
        )
        if not report.is_file():
            raise CheckError(
                "the traced process did not finish",
                cause="it took too long" if completed.timed_out else f"it ended with {completed.returncode}",
                detail=completed.stderr[-2000:],
                next_step="write the wheel without --trace and try it by hand",
            )
        lines = [line for file in sorted(log.parent.glob("loader.*")) for line in _lines(file)]
        opened = _lines(trace_log) if strace else []
        failed = {str(name): str(reason) for name, reason in json.loads(report.read_text()).items()}
    return judge(lines, opened, site=site, plan=plan, request=request, failed=failed, files_seen=bool(strace))


def check_traced(repaired: Made, request: Request, programs: Sequence[Path] = ()) -> Traced:
    """The same of a wheel just made. Raises CheckError where it does not stand alone, and removes it."""
    if repaired.plan.layout == "windows":
        raise InputError(
            "a wheel for Windows cannot be traced here",
            cause="tracing uses the Linux loader",
            next_step=f"try {repaired.path.name} on Windows; the wheel was written",
        )
    traced = trace(repaired.path, repaired.plan, request, programs)
    if traced.problems:
        repaired.path.unlink()
        raise CheckError(
            f"{repaired.path.name} is not self-contained",
            detail="\n".join(traced.problems),
            cause="it loads a library that was not bundled, or one whose own needs are missing",
            next_step="bundle it with --include, and add it to libraries.toml",
        )
    return traced


def judge(
    loader: Iterable[str],
    opened: Iterable[str],
    *,
    site: Path,
    plan: Plan,
    request: Request,
    failed: dict[str, str],
    files_seen: bool,
) -> Traced:
    """What the loader's and strace's lines say of a wheel that was unpacked at `site`."""
    facts = the_facts()
    requested_by: dict[str, str] = {}
    loaded: dict[str, str] = {}
    tried = ""
    for line in loader:
        if match := _NEEDED_BY.search(line):
            requested_by.setdefault(match[1], match[3])
        elif match := _TRIED.search(line):
            tried = os.path.normpath(match[1])
        elif match := _LOADED.search(line):
            loaded[match[1]] = match[1] if "/" in match[1] else tried
    ours = {name: dependent for name, dependent in requested_by.items() if _in(dependent, site)}
    outside, lacking, absent = [], [], []
    for name, dependent in ours.items():
        base, relative = Path(name).name, dependent.removeprefix(f"{site}/")
        if of_system(base) or base in plan.kept_out or facts.why_never(base):
            continue
        if name in loaded:
            if not _in(loaded[name], site):
                outside.append((base, relative, loaded[name]))
        elif _somewhere(base, site / relative, request, facts):
            lacking.append((base, relative))
        else:
            absent.append((base, relative))
    read = [match[1] for line in opened if (match := _OPENED.search(line))]
    # of libraries the loader tells: Python's own modules may use one of the system's that was brought too
    places = {os.path.realpath(file.source) for file in plan.data}
    return Traced(
        loaded=tuple(sorted({path.removeprefix(f"{site}/") for path in loaded.values() if _in(path, site)})),
        outside=tuple(outside),
        lacking=tuple(lacking),
        absent=tuple(absent),
        read=tuple(sorted({path.removeprefix(f"{site}/") for path in read if _in(path, site)})),
        read_outside=tuple(sorted({path for path in read if os.path.realpath(path) in places})),
        failed=failed,
        files_seen=files_seen,
    )


def _unpack(files: Iterable[WheelFile], site: Path) -> None:
    for file in files:
        target = site / installed(file.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as out:
            for piece in file.pieces():
                out.write(piece)


def _somewhere(name: str, dependent: Path, request: Request, facts: Facts) -> bool:
    """Whether ROCm has a library by that name, for the machine of the one that asked."""
    linkage = linkage_of(dependent) if dependent.is_file() else None
    search = LibrarySearch(given_folders(request, facts))
    if linkage is None:
        return bool(search.matching(name))
    return search.find(name, linkage.machine) is not None


def _in(path: str, site: Path) -> bool:
    return path.startswith(f"{site}/")


def _lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines()
