"""The table of what people call GPUs: AMD's that ROCm runs on, AMD's that it does not, and other makers'."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from rocbase.errors import InputError
from rocbase.toml.folders import layers, read_table
from rocwheel.tables import data_folders

FILE = "gpu_names.toml"
GPU_LISTS = ("products", "also", "codenames", "pci_ids")
MAKER_LISTS = ("pci", "words", "names")
UNSUPPORTED_LISTS = ("targets", "names", "pci_ids", "kernel")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNames:
    """What one processor is called: `products` are shown with it, `also` are understood too.

    `pci_ids` are such as 1002:67df; `families` are groups of processors that it belongs to.
    """

    target: str
    products: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    codenames: tuple[str, ...] = ()
    pci_ids: tuple[str, ...] = ()
    families: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every name in words."""
        return (*self.products, *self.also, *self.codenames)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMaker:
    """Another maker of GPUs: its PCI vendor ids, words that its names hold, and names without such a word."""

    name: str
    pci: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """A generation of AMD's GPUs that ROCm does not run on.

    `kernel` is what the command line of Linux must say before its amdgpu driver takes such a card.
    """

    name: str
    targets: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    pci_ids: tuple[str, ...] = ()
    kernel: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuTable:
    """The processors that can be named, what ROCm does not run on, and the command that `lists` the names.

    `fallback` is the processor that code is made for where any will do and the machine has no GPU; `without`
    says what to use a GPU with that ROCm does not run on.
    """

    gpus: tuple[GpuNames, ...]
    makers: tuple[GpuMaker, ...] = ()
    lists: str = "rocwheel targets"
    fallback: str = ""
    unsupported: tuple[Unsupported, ...] = ()
    without: str = ""


@cache
def gpu_table() -> GpuTable:
    """The GPUs whose names are carried, and other makers. Raises InputError where the file is wrong."""
    gpus: dict[str, GpuNames] = {}
    makers: dict[str, GpuMaker] = {}
    unsupported: dict[str, Unsupported] = {}
    fallback = ""
    for path in layers(FILE, data_folders()):
        data = read_table(path)
        for name, lists in _rows(path, data, "gpu", "target", GPU_LISTS):
            gpus[name] = GpuNames(target=name, **lists)
        for name, lists in _rows(path, data, "maker", "name", MAKER_LISTS):
            makers[name] = GpuMaker(name=name, **lists)
        for name, lists in _rows(path, data, "unsupported", "name", UNSUPPORTED_LISTS):
            unsupported[name] = Unsupported(name=name, **lists)
        for name, _ in _rows(path, data, "fallback", "target", ()):
            fallback = name
            if fallback not in gpus:
                raise InputError(
                    f"{path}: fallback.target names no GPU of this table",
                    cause=f"no [[gpu]] row has the target {fallback!r}",
                    next_step="write the target of one of the rows",
                )
    return GpuTable(
        tuple(gpus.values()),
        tuple(makers.values()),
        fallback=fallback,
        unsupported=tuple(unsupported.values()),
    )


def only_targets(table: GpuTable, targets: Collection[str]) -> GpuTable:
    """The table of these processors alone, also of those that have no names beside their own."""
    gpus = tuple(gpu for gpu in table.gpus if gpu.target in targets)
    return with_targets(replace(table, gpus=gpus), targets)


def with_targets(table: GpuTable, targets: Iterable[str]) -> GpuTable:
    """The table with processors that have no names beside their own."""
    named = {gpu.target for gpu in table.gpus}
    nameless = (GpuNames(target=name) for name in sorted({*targets} - named))
    return replace(table, gpus=(*table.gpus, *nameless))


def _rows(
    path: Path, data: Mapping[str, object], kind: str, key: str, fields: Iterable[str]
) -> Iterator[tuple[str, dict[str, tuple[str, ...]]]]:
    """The rows [[kind]], or the one [kind]: the name under `key`, and the lists of texts."""
    rows = data.get(kind, [])
    for number, row in enumerate(rows if isinstance(rows, list) else [rows]):
        name = row.get(key) if isinstance(row, dict) else None
        lists = {field: row.get(field, []) for field in fields} if isinstance(row, dict) else {}
        texts = [
            text for entries in lists.values() for text in (entries if isinstance(entries, list) else [None])
        ]
        if not isinstance(name, str) or not all(isinstance(text, str) for text in texts):
            raise InputError(
                f"{path}: {kind}.{number} does not name a GPU",
                cause="; ".join(
                    (f"`{key}` must be a string", *(f"`{field}` a list of strings" for field in fields))
                ),
                next_step="correct that row of the file",
            )
        yield name, {field: tuple(entries) for field, entries in lists.items()}
