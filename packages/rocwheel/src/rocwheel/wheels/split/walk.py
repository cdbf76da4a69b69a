"""The one walk over a wheel that is split: what is for one GPU, what is for all, what is taken apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rocbase.errors import CheckError
from rocwheel.wheels.archive import open_wheel
from rocwheel.wheels.devicecode.bundle import is_bundle
from rocwheel.wheels.devicecode.fatbin import FatBinary, check_name, fat_binary, may_hold_code
from rocwheel.wheels.devicecode.loose import loose
from rocwheel.wheels.elf import MAGIC, RELOCATABLE, Elf
from rocwheel.wheels.metadata import RECORD, Headers, dist_info_folder
from rocwheel.wheels.scratch import Scratch, scratch
from rocwheel.wheels.source import ByteSource
from rocwheel.wheels.write import WheelFile, in_order

HEAD = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A wheel that was written; `target` is "neutral" or "host" for the one without GPU code."""

    path: Path
    target: str
    size: int
    code_objects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The pieces of a wheel, and the files whose code stays where it was, each with the reason."""

    pieces: tuple[Piece, ...]
    left: Mapping[str, str]


class Sorter(Protocol):
    """What a way to split does with the files of a wheel."""

    takes_archives: bool
    """Whether a kpack archive for one target goes to that target."""

    def keep(self, file: WheelFile) -> None:
        """A file for all targets."""

    def give(self, file: WheelFile, target: str) -> None:
        """A file that is for one target."""

    def reason_to_stay(self, file: WheelFile, fat: FatBinary) -> str:
        """Why the library cannot be taken apart in this way; else ""."""

    def take_apart(self, file: WheelFile, source: ByteSource, fat: FatBinary) -> None:
        """A library with code for several targets, or for one and for the host."""


@dataclass(slots=True)
class Walk:
    """A wheel that is open: its files in their order but for RECORD, `folder` that of its metadata.

    `results` holds what is made of it until it is written; `left` says which code stayed where it was, and
    why.
    """

    wheel: str
    files: tuple[WheelFile, ...]
    folder: str
    results: Scratch
    _originals: Scratch
    left: dict[str, str] = field(default_factory=dict)

    def sort(self, sorter: Sorter, tell: Callable[[str], None]) -> None:
        """Hand each file to the sorter; `tell` gets the name of each that is taken apart."""
        for file in self.files:
            self._sort(file, sorter, tell)

    def _sort(self, file: WheelFile, sorter: Sorter, tell: Callable[[str], None]) -> None:
        head = next(iter(file.pieces()), b"")[:HEAD]
        kernel = loose(file.path)
        if kernel and len(kernel.targets) == 1:
            sorter.give(file, min(kernel.targets))
            return
        if not may_hold_code(head):
            check_name(file.path)
            sorter.keep(file)
            return
        part = self._originals.put(file.pieces())
        source = self._originals.window(part.offset, part.size)
        fat = fat_binary(source)
        targets = _targets(fat, sorter.takes_archives) if fat else set()
        if fat and (reasons := [*_staying_code(fat, sorter.takes_archives), *fat.unseen]):
            self.left[file.path] = "; ".join(reasons)
        if fat and len(targets) == 1 and (fat.lone or fat.archive or is_bundle(head)):
            sorter.give(file, targets.pop())
        elif not fat or not targets:
            sorter.keep(file)
        elif reason := _reason_to_stay(source, head) or sorter.reason_to_stay(file, fat):
            self.left[file.path] = reason
            sorter.keep(file)
        else:
            tell(file.path)
            sorter.take_apart(file, source, fat)

    def nothing(self, already: str) -> CheckError:
        """The error where there is no code to be split off; `already` is what the wheel is then."""
        return CheckError(
            f"{self.wheel} has no GPU code that can be split off",
            cause=f"it is {already}" if not self.left else "the code it has cannot be moved out of its files",
            next_step="use it as it is; `rocwheel inspect` shows what it contains",
            detail="\n".join(f"{path}: {reason}" for path, reason in self.left.items()),
        )

    def headers(self) -> Headers:
        """What its file WHEEL says."""
        return next(Headers(file.read()) for file in self.files if file.path == f"{self.folder}/WHEEL")


@contextmanager
def opened(path: Path, out: Path) -> Iterator[Walk]:
    """The wheel `path`, to be split into the folder `out`. Raises as `open_wheel` does."""
    out.mkdir(parents=True, exist_ok=True)
    with open_wheel(path) as files, scratch(out) as originals, scratch(out) as results:
        folder = dist_info_folder(file.path for file in files)
        ordered = tuple(file for file in in_order(files) if file.path != f"{folder}/{RECORD}")
        yield Walk(path.name, ordered, folder, results, originals)


def _targets(fat: FatBinary, archives: bool) -> set[str]:
    lone = {fat.lone.target} if fat.lone else set()
    packed = {code.target for code in fat.archive.code} if archives and fat.archive else set()
    return lone | packed | {entry.target for bundle in fat.bundles for entry in bundle.code}


def _staying_code(fat: FatBinary, archives: bool) -> Iterator[str]:
    """Which code of a file stays there that is none of its bundles."""
    for section in dict.fromkeys(embedded.section for embedded in fat.embedded):
        yield f"code embedded in {section}, from where the program loads it itself"
    if fat.archive and not archives:
        yield "a kpack archive: its code is apart from the libraries already"


def _reason_to_stay(source: ByteSource, head: bytes) -> str:
    """Why a file with code for several targets, or for one and for the host, is not taken apart; else ""."""
    if is_bundle(head):
        return "a file of bundles for several targets"
    if not head.startswith(MAGIC):
        return "a Windows library"
    return "an object file" if Elf(source).kind == RELOCATABLE else ""
