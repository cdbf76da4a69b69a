"""What is known of the machines around the cards: what goes wrong there, why, and what mends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from rocwright.catalog.model import Size
from rocwright.catalog.read import Reader, catalog_folders, parse
from rocwright.models import Frozen

HOST = "host.toml"

Grade = Literal["ok", "note", "warning", "error"]
Text = Annotated[str, Field(min_length=1)]


class Concern(Frozen):
    """Why something matters, to which stacks (globs; with "!" before it, not these), and what mends it.

    `mend` is a command with places to fill in such as {user}; a `safe` one harms nothing and can be taken
    back, so that `--fix` offers to run it.
    """

    why: Text
    stacks: tuple[str, ...] = ("*",)
    mend: str = ""
    safe: bool = False
    source: Text

    def concerns(self, stack: str) -> bool:
        """Whether it matters to a stack: the last glob that fits decides."""
        fits = [one for one in self.stacks if fnmatchcase(stack, one.removeprefix("!"))]
        return bool(fits) and not fits[-1].startswith("!")


class Advice(Concern):
    """What to say of something that rocwright itself finds, by name."""

    name: Text


class Driver(Frozen):
    """The kernel's driver of the cards, by the name of its module."""

    module: Text
    source: Text


class SharesMemory(Frozen):
    """Families of targets that compute in the machine's memory, and the modules whose limit holds them."""

    families: tuple[str, ...]
    modules: tuple[str, ...]
    page: int
    keep: Size
    source: Text


class Setting(Concern):
    """A file of the kernel whose value is one of `bad`."""

    file: Text
    bad: tuple[int, ...]
    grade: Grade = "warning"


class BadFirmware(Concern):
    """A version, after `mask`, of one of the `blocks` of a target's firmware, that is known to be bad."""

    targets: tuple[str, ...]
    blocks: tuple[str, ...]
    mask: int = 0xFFFFFFFF
    bad: tuple[int, ...]


class Leak(Concern):
    """A variable, as a glob, that gets into builds or programs without anybody's asking."""

    variable: Text
    value: str = "*"
    grade: Grade = "note"


class Configured(Concern):
    """Lines in configuration files that change what is installed; `files` with ~ for the user's folder."""

    files: tuple[str, ...]
    keys: tuple[str, ...]
    grade: Grade = "note"


class Folder(Concern):
    """A folder that programs look into by themselves."""

    path: Text


class Wants(Frozen):
    """The memory that a stack wants the GPU to reach."""

    stack: str
    memory: Size
    why: Text
    source: Text


class Tool(Frozen):
    """A program and how it tells its version."""

    program: Text
    arguments: tuple[str, ...] = ("--version",)
    why: Text
    source: Text


class Storage(Frozen):
    """Where an engine keeps images: the first of `folders` that is there, or what `key` in `files` says."""

    engine: str
    folders: tuple[str, ...]
    files: tuple[str, ...] = ()
    key: str = ""
    source: Text


class Link(Concern):
    """A feature of the bus that targets need which say so: `feature` is its name among theirs."""

    feature: Text
    needed: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """The file host.toml of the catalog."""

    driver: Driver
    shares_memory: SharesMemory
    advice: Mapping[str, Advice]
    setting: Sequence[Setting]
    firmware: Sequence[BadFirmware]
    leak: Sequence[Leak]
    configured: Sequence[Configured]
    folder: Sequence[Folder]
    wants: Sequence[Wants]
    tool: Sequence[Tool]
    storage: Sequence[Storage]
    link: Sequence[Link]


Row = TypeVar("Row", bound=Frozen)


def host_facts() -> HostFacts:
    """Of the catalog in use. Raises InputError where it is at fault."""
    return load_host_facts(*catalog_folders())


@cache
def load_host_facts(*folders: Path) -> HostFacts:
    """Of folders, the topmost first. Raises InputError that names the file and what is wrong in it."""
    reader = Reader(folders)

    def rows(name: str, model: type[Row]) -> tuple[Row, ...]:
        """The tables of that name, those of the topmost folder first."""
        layers = reversed(reader.layers(HOST))
        return tuple(
            parse(model, row, path) for path in layers for row in reader.rows(path, reader.data(path), name)
        )

    def one(name: str, model: type[Row]) -> Row:
        path = next(path for path in reversed(reader.layers(HOST)) if name in reader.data(path))
        return parse(model, reader.data(path)[name], path)

    return HostFacts(
        driver=one("driver", Driver),
        shares_memory=one("shares_memory", SharesMemory),
        advice={advice.name: advice for advice in reversed(rows("advice", Advice))},
        setting=rows("setting", Setting),
        firmware=rows("firmware", BadFirmware),
        leak=rows("leak", Leak),
        configured=rows("configured", Configured),
        folder=rows("folder", Folder),
        wants=rows("wants", Wants),
        tool=rows("tool", Tool),
        storage=rows("storage", Storage),
        link=rows("link", Link),
    )
