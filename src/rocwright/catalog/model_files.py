"""What the catalog knows of models: formats, types of numbers, quantisations (models.toml)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from rocbase.model import Frozen
from rocbase.toml.read import Reader, parse
from rocwright.catalog.folders import catalog_folders
from rocwright.model.sizes import Size

MODELS = "models.toml"

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(gt=0)]


class Format(Frozen):
    """A format of models: how its files are named, what they begin with, or which file marks its folder.

    `takes` are globs of the files of such a folder that are brought from a hub.
    """

    name: Text
    says: Text
    names: tuple[str, ...] = ()
    begins: tuple[Annotated[str, Field(pattern=r"^([0-9a-f]{2})+$")], ...] = ()
    marker: str = ""
    takes: tuple[str, ...] = ()
    pickled: bool = False
    source: Text

    def is_begun_by(self, data: bytes) -> bool:
        """Whether a file with these first bytes is of this format."""
        return any(data.startswith(bytes.fromhex(prefix)) for prefix in self.begins)


class Mistaken(Frozen):
    """What lies where a model should, by the text that it begins with, and how one comes to the model."""

    says: Text
    begins: tuple[Text, ...]
    remedy: Text
    source: Text

    def is_begun_by(self, data: bytes) -> bool:
        """Whether a file with these first bytes is that, however its letters are written."""
        return data.lower().startswith(tuple(prefix.lower().encode() for prefix in self.begins))


class Margin(Frozen):
    """What a program takes beyond weights and cache."""

    bytes: Size
    source: Text


class Cache(Frozen):
    """What a number in a cache of keys and values takes."""

    bytes_per_value: Count
    source: Text


class Fit(Frozen):
    """A program that tells what a model takes; it is beside the server where it was built."""

    program: Text
    arguments: tuple[str, ...]
    source: Text


class TensorType(Frozen):
    """So many `values` make a block of so many `bytes`."""

    id: Annotated[int, Field(ge=0)]
    name: Text
    values: Count
    bytes: Count


class TensorTypes(Frozen):
    """The types of GGUF's tensors."""

    source: Text
    types: tuple[TensorType, ...]


class Quantisation(Frozen):
    """What a file's type is called, and the bits that a weight takes over a whole model, where measured."""

    file_type: Annotated[int, Field(ge=0)]
    name: Text
    bits: float | None = None


class Quantisations(Frozen):
    """All of them."""

    source: tuple[Text, ...]
    types: tuple[Quantisation, ...]


class ModelsFile(Frozen):
    """models.toml."""

    format: tuple[Format, ...]
    mistaken: tuple[Mistaken, ...] = ()
    margin: Margin
    cache: Cache
    fit: Fit
    tensor_types: TensorTypes
    quantisations: Quantisations

    def named(self, name: str) -> Format:
        """The format of a name that the catalog has."""
        return next(kind for kind in self.format if kind.name == name)

    def of_begin(self, data: bytes) -> Format | None:
        """The format that a file's first bytes tell."""
        return next((kind for kind in self.format if kind.is_begun_by(data)), None)

    def of_name(self, filename: str) -> Format | None:
        """The format that a file's name tells; pickled weights where it may be those, too."""
        return max(self.all_of_name(filename), key=lambda kind: kind.pickled, default=None)

    def all_of_name(self, filename: str) -> list[Format]:
        """Every format that a file of this name may have."""
        return [kind for kind in self.format if filename.lower().endswith(kind.names)]

    def is_pickled(self, filename: str) -> bool:
        """Whether files of such a name may be pickled weights."""
        return any(kind.pickled for kind in self.all_of_name(filename))

    def tensor_type(self, number: int) -> TensorType | None:
        """The type of a number in GGUF; None where the catalog does not know it."""
        return next((kind for kind in self.tensor_types.types if kind.id == number), None)

    def quantisation(self, file_type: int) -> Quantisation | None:
        """The quantisation of a number in GGUF."""
        return next((kind for kind in self.quantisations.types if kind.file_type == file_type), None)


def model_facts() -> ModelsFile:
    """Of the catalog in use. Raises InputError where it is at fault."""
    return load_model_facts(*catalog_folders())


@cache
def load_model_facts(*folders: Path) -> ModelsFile:
    """Of folders, the topmost first: its file stands for those below. Raises InputError."""
    reader = Reader(folders)
    path = reader.layers(MODELS)[-1]
    return parse(ModelsFile, reader.data(path), path)
