"""How a product is run as a server: what `rocwright run` knows of it."""

from __future__ import annotations

import json
import string
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from rocwheel.model import Frozen

ModelKind = Literal["gguf", "ggml", "safetensors", "names"]
"""What a server takes as a model: a GGUF file, an older ggml file (.bin), safetensors, or only names that it
looks up by itself."""

SLOTS = frozenset({"artifact", "model", "host", "port", "key_file", "page"})
"""What is filled in in a server's words and variables: folders and files as the server sees them."""

GPU = "gpu"
"""The device of a server that needs no words of its own."""


def _check_slots(words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        unknown = {name for _, name, _, _ in string.Formatter().parse(word) if name is not None} - SLOTS
        if unknown:
            raise ValueError(f"{{{unknown.pop()}}} is not one of {', '.join(sorted(SLOTS))}")
    return words


def _check_path(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"{path!r} does not begin with a slash")
    return path


Words = Annotated[tuple[str, ...], AfterValidator(_check_slots)]
UrlPath = Annotated[str, AfterValidator(_check_path)]


class Address(Frozen):
    """A page or an interface of a running server."""

    name: str
    path: UrlPath = "/"


class FirstRequest(Frozen):
    """A request whose answer shows that the server works: JSON that is posted; `answer` is where in the reply
    its text is, as names and numbers with dots between them."""

    path: UrlPath
    body: str
    answer: str

    @model_validator(mode="after")
    def _is_json(self) -> Self:
        try:
            json.loads(self.body)
        except ValueError as error:
            raise ValueError(f"body is not JSON: {error}") from error
        return self


class Flags(Frozen):
    """Words that some GPUs want (all, where no target is named), with the reason."""

    words: Annotated[Words, Field(min_length=1)]
    targets: tuple[str, ...] = ()
    why: str
    source: str


class Compute(Frozen):
    """Words and variables that make the server compute on something other than what it takes by itself."""

    name: str
    summary: str
    words: Words = ()
    env: dict[str, str] = {}
    why: str = ""


class Server(Frozen):
    """How a product is served.

    `command` are its words, with places: {artifact}, {model}, {host}, {port}. `models` are the kinds of model
    that it takes. `health` answers with 200 once it can be used, within `seconds`. `key` are the words that
    make it ask for a key, which is in {key_file}; without them it cannot. `env` holds for every run; its
    caches go to XDG_CACHE_HOME, which is kept. `page` is a folder of the catalog whose files the server
    shows, in {page}. `compute` is what it can compute on beside the GPU that it finds, the first of which is
    taken where there is no GPU. `warnings` are said before each start.
    """

    command: Annotated[Words, Field(min_length=1)]
    models: tuple[ModelKind, ...] = ()
    port: Annotated[int, Field(gt=0, lt=65536)]
    health: UrlPath
    seconds: Annotated[float, Field(gt=0)] = 600
    key: Words = ()
    page: str = ""
    env: dict[str, str] = {}
    address: tuple[Address, ...] = ()
    request: FirstRequest | None = None
    flags: tuple[Flags, ...] = ()
    compute: tuple[Compute, ...] = ()
    warnings: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        slots = " ".join(self.command)
        if self.models and "{model}" not in slots:
            raise ValueError("it takes a model, and {model} is not in its command")
        if self.key and "{key_file}" not in " ".join(self.key):
            raise ValueError("{key_file} is not in its key")
        if bool(self.page) != ("{page}" in slots):
            raise ValueError("page and {page} in its command go together")
        names = [GPU, *(one.name for one in self.compute)]
        if len(set(names)) < len(names):
            raise ValueError(f"two things to compute on have one name: {', '.join(names)}")
        return self

    def words_for(self, targets: tuple[str, ...]) -> tuple[str, ...]:
        """The words that these GPUs want."""
        return tuple(
            word for one in self.flags if not one.targets or {*targets} & {*one.targets} for word in one.words
        )
