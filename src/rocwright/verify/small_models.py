"""Small models that rocwright makes itself: what checks, `quickstart` and tests load, without any hub.

Their weights are random numbers of right shapes, the same bytes for the same seed: a reply that is well
formed says that the program, the driver and the model's way into them work, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ModelMaker:
    """How one is made: its format, its file and what writes it, and files beside it by what they are."""

    format: str
    file: str
    write: Callable[[Path], None]
    companions: Mapping[str, tuple[str, Callable[[Path], None]]]

    def make(self, folder: Path) -> tuple[Path, dict[str, Path]]:
        """The file and its companions in a folder, written where they are not there yet."""
        files = {"": (self.file, self.write), **self.companions}
        for name, write in files.values():
            if not (folder / name).is_file():
                folder.mkdir(parents=True, exist_ok=True)
                write(folder / name)
        companions = {key: folder / name for key, (name, _) in self.companions.items()}
        return folder / self.file, companions


def _llama(path: Path) -> None:
    from rocwright.verify.tiny_gguf import write_tiny_model

    write_tiny_model(path)


def _whisper(path: Path) -> None:
    from rocwright.verify.tiny_whisper import write_tiny_whisper

    write_tiny_whisper(path)


def _diffusion(path: Path) -> None:
    from rocwright.verify.tiny_picture import write_tiny_diffusion

    write_tiny_diffusion(path)


def _reader(path: Path) -> None:
    from rocwright.verify.tiny_picture import write_tiny_reader

    write_tiny_reader(path)


def _decoder(path: Path) -> None:
    from rocwright.verify.tiny_picture import write_tiny_decoder

    write_tiny_decoder(path)


# By name; which of them `tiny` means, a server's recipe says.
MAKERS = {
    "llama": ModelMaker("gguf", "tiny-llama.gguf", _llama, {}),
    "whisper": ModelMaker("ggml", "tiny-whisper.bin", _whisper, {}),
    "picture": ModelMaker(
        "gguf",
        "tiny-picture.gguf",
        _diffusion,
        {"llm": ("tiny-picture-llm.gguf", _reader), "taesd": ("tiny-picture-taesd.gguf", _decoder)},
    ),
}

# The one that talks: what is meant where nothing else is said.
LLAMA = "llama"
