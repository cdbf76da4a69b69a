"""What is known of a model before a server loads it. Sizes are bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What the head of a file of weights says.

    `weights` is what the tensors take; `parameters` how many numbers they have. The rest is 0, or empty,
    where the file does not say it. `kv_heads` has a number for each layer; `key` and `value` are the lengths
    of a head; `window` is what a layer with a sliding window looks back on, in tokens. `attends` is false for
    models that keep a state of one size in some layers, so that their cache is smaller than layers say.
    """

    weights: int
    parameters: int
    architecture: str = ""
    name: str = ""
    quantisation: str = ""
    context: int = 0
    layers: int = 0
    kv_heads: tuple[int, ...] = ()
    key: int = 0
    value: int = 0
    window: int = 0
    attends: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model that a server can be given.

    `paths` are its files, the one to name to a program first; a folder is one path. `size` is what its files
    take; `sha256` is that of a single file where it is known, for nothing is read whole only to tell it.
    `origin` says where it is from: `file:...`, `hf:REPO/FILE@COMMIT` or `tiny:NAME`. `companions` are files
    that a program takes beside it, by what they are.
    """

    paths: tuple[Path, ...]
    format: str
    size: int
    sha256: str | None
    origin: str
    head: Head | None = None
    companions: Mapping[str, Path] = field(default_factory=dict)

    @property
    def files(self) -> tuple[Path, ...]:
        """All that a program is given: its own files and those beside it."""
        return (*self.paths, *self.companions.values())

    @property
    def path(self) -> Path:
        """What a program is given."""
        return self.paths[0]
