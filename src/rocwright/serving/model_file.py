"""The model that is served: a file here, or the tiny one that rocwright makes itself."""

from __future__ import annotations

import os
from pathlib import Path

from rocwheel.errors import InputError
from rocwright.catalog.server import Server
from rocwright.home import Home

TINY = "tiny"
"""The model that rocwright makes: random weights of a known walk, 1.7 MB."""

_KINDS = {"gguf": (".gguf",), "ggml": (".bin",), "safetensors": (".safetensors",)}


def model_of(asked: str, server: Server, home: Home) -> Path | None:
    """The file that is meant; None for a server that takes none. Raises InputError."""
    if not server.models:
        if asked:
            raise InputError(
                f"it takes no model: {asked}",
                cause="this server has no option for one, and loads what its clients name",
                next_step="leave --model out",
            )
        return None
    if not asked:
        raise InputError(
            "no model named",
            cause=f"it serves one: {', '.join(server.models)}",
            next_step=f"--model FILE, or --model {TINY} for a trial without a download",
        )
    if asked == TINY and "gguf" in server.models:
        return _tiny(home)
    path = Path(asked).expanduser().absolute()
    endings = tuple(one for kind in server.models for one in _KINDS.get(kind, ()))
    if not path.is_file():
        raise InputError(
            f"{asked} is no file", cause="it does not exist here", next_step="name a model's file"
        )
    if not path.name.endswith(endings):
        raise InputError(
            f"{path.name} is not a model that this server takes",
            cause=f"it takes files that end with {', '.join(endings)}",
            next_step="name another file, or another stack",
        )
    if not os.access(path, os.R_OK):
        raise InputError(
            f"{path} may not be read",
            cause="its mode and owner keep you out",
            next_step=f"chmod a+r {path}, as its owner",
        )
    return path


def _tiny(home: Home) -> Path:
    path = home.models / "tiny.gguf"
    if not path.exists():
        from rocwright.verify.tiny_gguf import write_tiny_model

        write_tiny_model(path)
    return path
