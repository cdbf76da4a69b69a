"""Completions that several verbs share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from rocwheel.wheels.gpu_table import GpuNames


def complete_gpu(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shell completion with targets and, once something is typed, names of products and chips."""
    from rocwheel.wheels.gpu_table import gpu_table

    return completions(gpu_table().gpus, incomplete)


def completions(gpus: Iterable[GpuNames], incomplete: str) -> list[CompletionItem]:
    """The names of GPUs, and `auto`, that begin with what was typed.

    Their words are joined by dashes, which need no quotes, and are in small letters where they are typed so.
    """
    from click.shell_completion import CompletionItem

    gpu_names = tuple(gpus)
    descriptions = {gpu.target: ", ".join(gpu.products) for gpu in gpu_names} | {
        "auto": "the GPU of this machine"
    }
    if incomplete:
        for gpu in gpu_names:
            for name in gpu.names:
                joined = name.replace(" ", "-")
                descriptions.setdefault(joined.lower() if incomplete.islower() else joined, gpu.target)
    return [
        CompletionItem(name, help=description)
        for name, description in descriptions.items()
        if name.lower().startswith(incomplete.lower())
    ]
