"""How a product is run as a server: what `rocwright run` knows of it."""

from __future__ import annotations

import json
import string
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from rocbase.model import Frozen

# What a server takes as a model: a GGUF file, an older ggml file (.bin), safetensors, a folder of
# transformers, pickled weights (with --trust-model), or only names that it looks up by itself.
ModelKind = Literal["gguf", "ggml", "safetensors", "transformers", "pickled", "names"]

# What is filled in in a server's words and variables: folders and files as the server sees them. `listen` is
# host and port in one, an IPv6 address in brackets.
SLOTS = frozenset({"artifact", "model", "host", "port", "listen", "key_file", "page", "data"})

# What is filled in in the words of a companion: its file.
FILE = "file"

# The device of a server that needs no words of its own.
GPU = "gpu"


def _check_slots(words: tuple[str, ...]) -> tuple[str, ...]:
    if unknown := _slots(words) - SLOTS:
        raise ValueError(f"{{{unknown.pop()}}} is not one of {', '.join(sorted(SLOTS))}")
    return words


def _check_file(words: tuple[str, ...]) -> tuple[str, ...]:
    if _slots(words) != {FILE}:
        raise ValueError(f"{{{FILE}}}, and nothing else, is filled in in {words}")
    return words


def _slots(words: tuple[str, ...]) -> set[str]:
    return {name for word in words for _, name, _, _ in string.Formatter().parse(word) if name is not None}


def _check_variables(env: dict[str, str]) -> dict[str, str]:
    _check_slots(tuple(env.values()))
    return env


def _check_folders(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not all(part and not part.startswith(".") for part in name.split("/")):
            raise ValueError(f"{name!r} is not the name of a folder below another")
    return names


def _check_path(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"{path!r} does not begin with a slash")
    return path


Words = Annotated[tuple[str, ...], AfterValidator(_check_slots)]
FileWords = Annotated[tuple[str, ...], AfterValidator(_check_file)]
Variables = Annotated[dict[str, str], AfterValidator(_check_variables)]
Folders = Annotated[tuple[str, ...], AfterValidator(_check_folders)]
UrlPath = Annotated[str, AfterValidator(_check_path)]


class ServerPage(Frozen):
    """A page or an interface of a running server."""

    name: str
    path: UrlPath = "/"


class FirstRequest(Frozen):
    """A request whose answer shows that the server works.

    `body` is JSON that is posted. Without it a form is: `form` are its fields, and the field `sound` a short
    WAV file. `answer` is where in the reply its text is, as names and numbers with dots between them;
    `picture` says that this text is a PNG in base64, so many points wide and high.
    """

    path: UrlPath
    body: str = ""
    form: dict[str, str] = {}
    sound: str = ""
    answer: str
    picture: Annotated[str, Field(pattern=r"^([1-9]\d{0,4}x[1-9]\d{0,4})?$")] = ""

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if bool(self.body) == bool(self.sound):
            raise ValueError("either a body or a sound is posted")
        if self.body and self.form:
            raise ValueError("a form has no body")
        try:
            json.loads(self.body or "{}")
        except ValueError as error:
            raise ValueError(f"body is not JSON: {error}") from error
        return self


class Companion(Frozen):
    """A file that some models need beside them: how users call it, what it does, and the words that name it
    to the server, with {file} in them."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    summary: str
    words: FileWords


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
    that it takes, the one it likes best first, without which it is not started unless `needs_model` is false;
    `tiny` is the small one that it is given for a trial. Where a
    model of several files is named in other words, `alone` are those for one that is whole in its file, and
    `parted` those for one that comes with `companion` files. `health` answers with 200 once it can be used,
    within `seconds`. `key` are the words that make it ask for a key, which is in {key_file}; `key_variable`
    is a variable that does it, which is set inside alone, in no command that others see. Without either it
    cannot. `env` holds for every run; its caches go to XDG_CACHE_HOME, which is kept. `page` is a folder of
    the catalog whose files the server shows or reads, in {page}. `keeps` are folders in {data}, which is its
    users' and is never removed: pictures, or models that it fetches itself. `compute` is what it can compute
    on beside the GPU that it finds, the first of which is taken where there is no GPU. `warnings` are said
    before each start. `reserved` are options and variables that users may not set, beside those that are in
    these words: other names for the same, as `-m` for `--model`.
    """

    command: Annotated[Words, Field(min_length=1)]
    models: tuple[ModelKind, ...] = ()
    needs_model: bool = True
    tiny: str = ""
    alone: Words = ()
    parted: Words = ()
    companion: tuple[Companion, ...] = ()
    port: Annotated[int, Field(gt=0, lt=65536)]
    health: UrlPath
    seconds: Annotated[float, Field(gt=0)] = 600
    key: Words = ()
    key_variable: Annotated[str, Field(pattern=r"^([A-Z_][A-Z0-9_]*)?$")] = ""
    page: str = ""
    keeps: Folders = ()
    env: Variables = {}
    address: tuple[ServerPage, ...] = ()
    request: FirstRequest | None = None
    flags: tuple[Flags, ...] = ()
    compute: tuple[Compute, ...] = ()
    warnings: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for also in (self.alone, self.parted):
            if self.models and self.needs_model and "{model}" not in " ".join((*self.command, *also)):
                raise ValueError("it takes a model, and {model} is not in its command")
        if not self.needs_model and not self.models:
            raise ValueError("it takes no model, so it needs none anyway")
        if self.companion and not self.parted:
            raise ValueError("it takes companions, and no words are given for a model that has some")
        if self.key and "{key_file}" not in " ".join(self.key):
            raise ValueError("{key_file} is not in its key")
        if self.key and self.key_variable:
            raise ValueError("it is told of a key in words or by a variable, not both")
        if bool(self.page) != ("{page}" in " ".join(self.command)):
            raise ValueError("page and {page} in its command go together")
        if bool(self.keeps) != ("{data}" in " ".join((*self.command, *self.env.values()))):
            raise ValueError("keeps and {data} in its command or its variables go together")
        for names in (
            [GPU, *(option.name for option in self.compute)],
            [companion.name for companion in self.companion],
        ):
            if len(set(names)) < len(names):
                raise ValueError(f"two of one kind have one name: {', '.join(names)}")
        return self

    @property
    def can_ask_for_key(self) -> bool:
        """Whether others can be kept out by a key."""
        return bool(self.key or self.key_variable)

    def words_for(self, targets: tuple[str, ...]) -> tuple[str, ...]:
        """The words that these GPUs want."""
        return tuple(
            word
            for flag in self.flags
            if not flag.targets or {*targets} & {*flag.targets}
            for word in flag.words
        )
