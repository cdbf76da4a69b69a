"""The small models of rocwright's own, for servers: where they are kept, and which one is meant."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from rocbase.errors import InputError
from rocbase.files.atomic import sha256_file
from rocwright.catalog.model_files import ModelsFile
from rocwright.serving.models.local import local_model
from rocwright.serving.models.model import Model
from rocwright.serving.models.refused import not_here
from rocwright.verify.small_models import LLAMA, MAKERS

TINY = "tiny"

# Raised when what a maker writes changes: what older versions made is not taken for it.
GENERATED = 2


def is_tiny(words: str) -> bool:
    """Whether a model's name means one of these."""
    return words == TINY or words.startswith(f"{TINY}:")


def maker_named(words: str, default: str) -> str:
    """The name of the small model that `tiny` (the `default`) or `tiny:NAME` means."""
    return words.partition(":")[2] or default or LLAMA


def tiny_model(
    words: str, kinds: Collection[str], folder: Path, facts: ModelsFile, default: str, *, make: bool = True
) -> Model:
    """`tiny` or `tiny:NAME`, made where it is not there yet. Raises InputError where there is none, or one
    that is of none of `kinds`, and without `make` where it is not made yet."""
    name = maker_named(words, default)
    maker = MAKERS.get(name)
    if maker is None:
        raise InputError(
            f"there is no small model {words}",
            cause=f"rocwright makes {', '.join(f'{TINY}:{option}' for option in MAKERS)}",
            next_step="name one of them, or a file of a format that this stack takes",
        )
    if maker.format not in kinds:
        raise InputError(
            f"there is no small model that this stack takes: {words}",
            cause=f"{TINY}:{name} is {facts.named(maker.format).says}; "
            f"it takes {', '.join(facts.named(kind).says for kind in kinds)}",
            next_step="name a model of your own: --model FILE, --model FOLDER or --model hf:OWNER/NAME",
        )
    place = folder / TINY / str(GENERATED)
    if not make and not (place / maker.file).is_file():
        raise not_here(words)
    path, companions = maker.make(place)
    model = local_model(path, kinds, facts, False, f"{TINY}:{name}")
    return replace(model, sha256=sha256_file(model.path), companions=companions)
