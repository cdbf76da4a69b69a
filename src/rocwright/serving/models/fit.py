"""Does a model fit the memory of the device: llama.cpp's own answer where it is there, else an estimate.

Said before anything is loaded, with how much is missing, and the next smaller quantisation that would fit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rocbase.errors import OutOfMemoryError
from rocbase.units import size
from rocwright.catalog.model_files import ModelsFile, model_facts
from rocwright.diagnosis.machine.model import Gpu, Machine, Memory
from rocwright.serving.models.model import Head, Model

# Tokens, where neither the user nor the model says.
DEFAULT_CONTEXT = 4096

# How long the program that tells may take: it reads the head alone.
SECONDS = 60

MIB = 1024**2
# What llama.cpp calls the machine's memory among devices.
HOST = "Host"

_LINE = re.compile(r"^(\S+) +(\d{1,9}) +(\d{1,9}) +(\d{1,9}) *$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Room:
    """The memory that a server may use: what it is, and its bytes."""

    what: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelNeed:
    """What a model takes when it is served, in bytes.

    `least` is what it takes in any case, `most` what it takes where each layer keeps every token: they
    differ for models with sliding windows or states of one size. `said_by` is who says so.
    """

    weights: int
    cache: int
    margin: int
    least: int
    said_by: str

    @property
    def most(self) -> int:
        return self.weights + self.cache + self.margin


def room_of(machine: Machine, gpu: Gpu | None) -> Room | None:
    """The memory of a GPU, or of the machine where there is none; None where nothing tells.

    A GPU that shares the machine's memory has its own part and what the driver lets it take of the rest, but
    not more of that than is free.
    """
    memory = machine.memory
    if gpu is None:
        return Room("the machine's memory", free_memory(memory)) if memory else None
    if gpu.vram is None:
        return None
    if not gpu.shared:
        return Room("the GPU's memory (VRAM)", gpu.vram)
    gtt = min(gpu.gtt or 0, free_memory(memory)) if memory else gpu.gtt or 0
    return Room("the memory that the GPU can reach (VRAM and GTT)", gpu.vram + gtt)


def free_memory(memory: Memory) -> int:
    """What programs may take now, in bytes: of the machine, or of this process's limit."""
    return min(memory.available, memory.limit) if memory.limit is not None else memory.available


def estimate(head: Head, facts: ModelsFile, *, context: int = 0, slots: int = 1) -> ModelNeed:
    """What a model takes, from its head: weights, a cache for `context` tokens in all, and a margin.

    `context` 0 is what the model was trained for, at most `DEFAULT_CONTEXT`. `slots` share the context, as
    llama-server's do; each has at least one layer's window.
    """
    tokens = context or _tokens(head)
    a_token = (head.key + head.value) * facts.cache.bytes_per_value
    cache = sum(head.kv_heads) * a_token * tokens
    min_cache = cache
    if head.window:
        min_cache = sum(head.kv_heads) * a_token * min(tokens, head.window * slots)
    if not head.attends:
        min_cache = 0
    margin = facts.margin.bytes
    return ModelNeed(
        weights=head.weights,
        cache=cache,
        margin=margin,
        least=head.weights + min_cache,
        said_by="an estimate from the head of the file",
    )


def arguments(
    path: str, model: Model, facts: ModelsFile, *, context: int = 0, slots: int = 1
) -> tuple[str, ...]:
    """What llama.cpp's own program is asked with, of the model that it sees at `path`."""
    filled = {"model": path, "context": str(context or _tokens(model.head)), "slots": str(slots)}
    return tuple(argument.format(**filled) for argument in facts.fit.arguments)


def _tokens(head: Head | None) -> int:
    """The context where nobody says one."""
    return min((head.context if head else 0) or DEFAULT_CONTEXT, DEFAULT_CONTEXT)


def parse_answer(text: str, facts: ModelsFile) -> ModelNeed | None:
    """Lines of `device model context compute`, in MiB: of the devices together, or of the machine alone."""
    rows = [(name, *(int(number) * MIB for number in numbers)) for name, *numbers in _LINE.findall(text)]
    device_rows = [row[1:] for row in rows if row[0] != HOST] or [row[1:] for row in rows]
    if not device_rows:
        return None
    weights, cache, compute = (sum(column) for column in zip(*device_rows, strict=True))
    return ModelNeed(
        weights=weights,
        cache=cache,
        margin=compute + facts.margin.bytes,
        least=weights + cache + compute,
        said_by=f"says {facts.fit.program}",
    )


def smaller(head: Head, need: ModelNeed, room: int, facts: ModelsFile) -> str:
    """The next smaller quantisation with which it would fit; empty where none would."""
    if not head.parameters:
        return ""
    bits = 8 * head.weights / head.parameters
    for quantisation in sorted(facts.quantisations.types, key=lambda quantisation: -(quantisation.bits or 0)):
        if quantisation.bits and quantisation.bits < bits:
            weights = int(head.weights * quantisation.bits / bits)
            if weights + need.cache + need.margin <= room:
                return f"{quantisation.name} (about {size(weights)})"
    return ""


def check_fit(model: Model, need: ModelNeed, room: Room, facts: ModelsFile) -> str:
    """How tight it is, in words, empty where there is room. Raises OutOfMemoryError where it cannot fit."""
    if need.most <= room.bytes:
        return ""
    if need.least <= room.bytes:
        return (
            f"{model.path.name} fits tightly: up to {size(need.most)} of {size(room.bytes)} of {room.what} "
            f"({need.said_by}); with a shorter context it takes less"
        )
    raise OutOfMemoryError(
        f"{model.path.name} does not fit: {size(need.most - room.bytes)} are missing",
        cause=f"weights {size(need.weights)}, cache {size(need.cache)}, {size(need.margin)} to compute in; "
        f"{room.what} has {size(room.bytes)} ({need.said_by})",
        next_step=_instead(model.head, need, room, facts),
        subject=str(model.path),
    )


def fits(
    model: Model, room: Room | None, *, context: int = 0, slots: int = 1, reported: ModelNeed | None = None
) -> tuple[str, ModelNeed | None]:
    """Hold a model against the memory that there is: what it needs, as the server `reported`, or an estimate.

    With it comes a sentence where it is tight or nothing tells, else nothing. Raises OutOfMemoryError.
    """
    facts = model_facts()
    if model.head is None:
        return f"nothing tells how much memory {model.path.name} takes", None
    if room is None:
        return "nothing tells how much memory the GPU has", None
    need = reported or estimate(model.head, facts, context=context, slots=slots)
    return check_fit(model, need, room, facts), need


def _instead(head: Head | None, need: ModelNeed, room: Room, facts: ModelsFile) -> str:
    """What would fit, in words."""
    alternative = smaller(head, need, room.bytes, facts) if head else ""
    if not alternative:
        return "use a smaller model: no quantisation of this one would fit"
    own = f"its quantisation is {head.quantisation}; " if head and head.quantisation else ""
    return f"{own}use one that is smaller: {alternative} would fit"
