"""LLVM's disassembler: which one of this machine to use, and its listing of a code object."""

from __future__ import annotations

import os
import re
import shutil
import struct
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rocbase.errors import CheckError, InputError
from rocbase.processes import run as process
from rocwheel.wheels.audit.facts import table

OBJDUMP = "llvm-objdump"
TRIPLE = "amdgcn-amd-amdhsa"

_VERSION = re.compile(r"version (\d+(?:\.\d+)*)")
_NAME = re.compile(r"^\s+(\S+)\s+- ", re.MULTILINE)
_UNKNOWN = "is not a recognized"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disassembler:
    """An llvm-objdump, the processors that it knows, and the switches that make it write both alike."""

    path: Path
    version: str
    processors: frozenset[str]
    spelling: tuple[str, ...]

    @contextmanager
    def listing(self, code: Path, processor: str) -> Iterator[process.Reading]:
        """The instructions of a code object as those of `processor`, as LLVM prints them."""
        switches = (
            [f"--mattr={','.join(f'+{feature}' for feature in self.spelling)}"] if self.spelling else []
        )
        argv: list[str | Path] = [
            self.path,
            "--disassemble",
            "--disassemble-zeroes",
            f"--mcpu={processor}",
            *switches,
            code,
        ]
        with process.reading(argv) as running:
            yield running


def check_listing(finished: process.Finished, subject: str) -> None:
    """Raise CheckError where a listing did not end well, and is thus not whole."""
    if not finished.ok or _UNKNOWN in finished.stderr:
        raise CheckError(
            f"{OBJDUMP} cannot read {subject}",
            cause="the code is damaged, or newer than this LLVM",
            next_step="get a fresh copy of the file, or name the folder of a newer LLVM with --llvm",
            detail=finished.stderr.strip()[-2000:],
            subject=subject,
        )


def find_disassembler(processors: Sequence[str], folder: Path | None = None) -> Disassembler:
    """The newest llvm-objdump here that knows all `processors`; only that in `folder`, where it is given.

    Raises InputError that names what was found, and what to install, where there is none.
    """
    candidates = [_probed(path) for path in _places(folder)]
    fitting = [tool for tool in candidates if tool is not None and tool.processors.issuperset(processors)]
    if fitting:
        return max(fitting, key=lambda tool: tuple(map(int, tool.version.split("."))))
    listed = ", ".join(f"{tool.path} ({tool.version})" for tool in candidates if tool is not None)
    raise InputError(
        f"no {OBJDUMP} that knows {' and '.join(dict.fromkeys(processors))}",
        cause=f"found: {listed}"
        if listed
        else f"looked in {folder or 'PATH, ' + ', '.join(table().llvm.folders)}",
        next_step=f"install a newer LLVM ({table().llvm.packages}), or name its folder with --llvm",
    )


def _places(folder: Path | None) -> list[Path]:
    if folder is not None:
        folders = [folder, folder / "bin", folder / "llvm" / "bin"]
    else:
        on_path = [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]
        listed = (path for pattern in table().llvm.folders for path in Path("/").glob(pattern.lstrip("/")))
        folders = [*on_path, *sorted(listed), *_of_hip()]
    files = (base / OBJDUMP for base in folders)
    return list(dict.fromkeys(file.resolve() for file in files if os.access(file, os.X_OK)))


def _of_hip() -> list[Path]:
    """Where the compiler of hipcc lies, as ROCm's own hipconfig tells."""
    if shutil.which("hipconfig") is None:
        return []
    path = process.run(["hipconfig", "--hipclangpath"], timeout=60).stdout.strip()
    return [Path(path)] if path else []


def _probed(path: Path) -> Disassembler | None:
    """What an llvm-objdump is and knows; None for one without AMD GPUs."""
    version = _VERSION.search(process.run([path, "--version"], timeout=60).stdout)
    if version is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty"
        empty.write_bytes(_EMPTY)
        completed = process.run(
            [path, "-d", f"--triple={TRIPLE}", "--mcpu=help", "--mattr=help", empty], timeout=60
        )
    names = set(_NAME.findall(completed.stdout + completed.stderr))
    return Disassembler(
        path=path,
        version=version[1],
        processors=frozenset(names),
        spelling=tuple(name for name in table().llvm.spelling if name in names),
    )


# An ELF header for AMD GPUs with nothing behind it: older LLVMs list what they know only beside a file.
_EMPTY = struct.pack(
    "<4s5B7xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 64, 2, 3, 224, 1, 0, 0, 0, 0x2C, 64, 56, 0, 64, 0, 0
)
