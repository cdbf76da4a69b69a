"""What is known of ROCm's libraries: what they open by name, what they read, what is never brought along."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from pydantic import Field

from rocbase.model import Frozen
from rocbase.toml.read import Reader, parse
from rocwheel.tables import data_folders


class Opened(Frozen):
    """A library opened by name: a pattern for its file's name, and what it is good for."""

    name: str
    why: str
    windows: str = ""
    optional: bool = False


class Read(Frozen):
    """Folders and files that a library reads, seen from its own folder (see libraries.toml)."""

    at: tuple[str, ...] = Field(min_length=1)
    why: str
    also: tuple[str, ...] = ()
    variable: str = ""
    fixed_on_windows: bool = False
    optional: bool = False


class RocmLibrary(Frozen):
    """One of ROCm's libraries: its name up to the version, and all that it loads beside what it says."""

    name: str
    source: tuple[str, ...] = Field(min_length=1)
    windows: str = ""
    opens: tuple[Opened, ...] = ()
    reads: tuple[Read, ...] = ()
    documents: tuple[str, ...] = ()


class Elsewhere(Frozen):
    """Libraries (patterns) that another wheel brings."""

    wheel: str
    libraries: tuple[str, ...]
    source: tuple[str, ...]


class Never(Frozen):
    """Libraries (patterns) that no wheel may bring, and why."""

    libraries: tuple[str, ...]
    why: str
    source: tuple[str, ...]
    unneeded: bool = False


class RootLayout(Frozen):
    """Folders of a ROCm root, or of a root file system, that hold libraries."""

    linux: tuple[str, ...]
    windows: tuple[str, ...]
    source: tuple[str, ...]


class LibrariesFile(Frozen):
    """libraries.toml."""

    layout: RootLayout | None = None
    library: tuple[RocmLibrary, ...] = ()
    elsewhere: tuple[Elsewhere, ...] = ()
    never: tuple[Never, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The table, and the questions that it answers."""

    layout: RootLayout
    libraries: tuple[RocmLibrary, ...]
    elsewhere: tuple[Elsewhere, ...]
    never: tuple[Never, ...]

    def elf_library(self, file_name: str) -> RocmLibrary | None:
        """What is known of the ELF library with that file name, if it is one of ROCm's."""
        stem = file_name.partition(".so")[0]
        return next((library for library in self.libraries if library.name == stem), None)

    def dll_library(self, file_name: str) -> RocmLibrary | None:
        """The same of a DLL, whose names have no case."""
        stem = file_name.lower().removesuffix(".dll")
        return next(
            (
                library
                for library in self.libraries
                if library.windows and fnmatchcase(stem, library.windows.lower())
            ),
            None,
        )

    def why_never(self, file_name: str) -> str:
        """Why a library may not be brought along; "" where it may."""
        return next((rule.why for rule in self.never if matches(file_name, rule.libraries)), "")

    def unneeded(self, file_name: str) -> bool:
        """Whether a name is taken out of what libraries need: what it names is in the process already."""
        return any(rule.unneeded and matches(file_name, rule.libraries) for rule in self.never)

    def brought_by(self, file_name: str, wheels: Iterable[str]) -> str:
        """Which of `wheels` (normalised names) brings a library; "" where none does."""
        wheel_names = set(wheels)
        return next(
            (
                provider.wheel
                for provider in self.elsewhere
                if provider.wheel in wheel_names and matches(file_name, provider.libraries)
            ),
            "",
        )


def matches(file_name: str, patterns: Iterable[str]) -> bool:
    """Whether a file name matches one of the patterns; the case of a DLL's name does not matter."""
    if file_name.lower().endswith(".dll"):
        return any(fnmatchcase(file_name.lower(), pattern.lower()) for pattern in patterns)
    return any(fnmatchcase(file_name, pattern) for pattern in patterns)


@cache
def the_facts() -> Facts:
    """The table of the catalog; a user's own stands over it, library by library. Raises InputError."""
    reader = Reader(data_folders())
    tables = [parse(LibrariesFile, reader.data(path), path) for path in reader.layers("libraries.toml")]
    libraries = {library.name: library for table in tables for library in table.library}
    layouts = [table.layout for table in tables if table.layout is not None]
    return Facts(
        layout=layouts[-1] if layouts else RootLayout(linux=(), windows=(), source=()),
        libraries=tuple(libraries.values()),
        elsewhere=tuple(provider for table in tables for provider in table.elsewhere),
        never=tuple(rule for table in tables for rule in table.never),
    )
