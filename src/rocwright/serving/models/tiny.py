"""Small models that rocwright makes itself: what `quickstart` and the tests serve, without any hub.

Their weights are random numbers of right shapes, the same bytes for the same seed: a reply that is well
formed says that the program, the driver and the model's way into them work, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rocwheel.errors import InputError
from rocwheel.files.atomic import sha256_file
from rocwright.serving.models.facts import ModelsFile
from rocwright.serving.models.local import local_model
from rocwright.serving.models.model import Model

TINY = "tiny"

MADE = 1
"""Raised when what a maker writes changes: what older versions made is not taken for it."""


@dataclass(frozen=True, slots=True)
class Maker:
    """How one is made: its format, its file and what writes it, and files beside it by what they are."""

    format: str
    file: str
    write: Callable[[Path], None]
    companions: Mapping[str, tuple[str, Callable[[Path], None]]]


def _llama(path: Path) -> None:
    from rocwright.verify.tiny_gguf import write_tiny_model

    write_tiny_model(path)


def _whisper(path: Path) -> None:
    from rocwright.serving.models.tiny_whisper import write_tiny_whisper

    write_tiny_whisper(path)


def _diffusion(path: Path) -> None:
    from rocwright.serving.models.tiny_picture import write_tiny_diffusion

    write_tiny_diffusion(path)


def _reader(path: Path) -> None:
    from rocwright.serving.models.tiny_picture import write_tiny_reader

    write_tiny_reader(path)


def _decoder(path: Path) -> None:
    from rocwright.serving.models.tiny_picture import write_tiny_decoder

    write_tiny_decoder(path)


MAKERS = {
    "llama": Maker("gguf", "tiny-llama.gguf", _llama, {}),
    "whisper": Maker("ggml", "tiny-whisper.bin", _whisper, {}),
    "picture": Maker(
        "gguf",
        "tiny-picture.gguf",
        _diffusion,
        {"reader": ("tiny-picture-reader.gguf", _reader), "decoder": ("tiny-picture-decoder.gguf", _decoder)},
    ),
}
"""By name; the first of a format is the one that `tiny` means where that format is taken."""


def tiny_model(words: str, kinds: Collection[str], folder: Path, facts: ModelsFile) -> Model:
    """`tiny` or `tiny:NAME`, made where it is not there yet. Raises InputError where there is none."""
    name = words.partition(":")[2] or next(
        (name for kind in kinds for name, maker in MAKERS.items() if maker.format == kind), ""
    )
    maker = MAKERS.get(name)
    if maker is None:
        raise InputError(
            f"there is no small model {words}",
            cause=f"rocwright makes {', '.join(f'{TINY}:{one}' for one in MAKERS)}",
            next_step="name one of them, or a file of a format that this stack takes",
        )
    place = folder / TINY / str(MADE)
    companions = {what: place / file for what, (file, _) in maker.companions.items()}
    for path, write in (
        (place / maker.file, maker.write),
        *((companions[what], write) for what, (_, write) in maker.companions.items()),
    ):
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path)
    model = local_model(place / maker.file, kinds, facts, False, f"{TINY}:{name}")
    return replace(model, sha256=sha256_file(model.path), companions=companions)
