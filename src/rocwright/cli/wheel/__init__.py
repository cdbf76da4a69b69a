"""`rocwright wheel`: one file a verb, imported when the verb is used."""

from __future__ import annotations

import click

from rocwright.cli import Verbs

VERBS = {
    "inspect": "Every piece of GPU code in a wheel, library, folder or environment, by target.",
    "runs-on": "Whether it runs on a GPU, and why: natively, generically, with an override, or not.",
    "audit-override": "Is code for one target valid on another: kernel by kernel, from the machine code.",
    "slim": "The same wheel, library or folder with only the machine code that the GPUs need.",
    "split": "A wheel as a neutral one and one for each GPU target.",
    "merge": "The pieces that split made, put together for all targets or some.",
    "bundle": "A wheel that needs ROCm, with all of it that it needs inside.",
    "normalise": "The same content as the same bytes: order, times, modes, compression, RECORD.",
    "diff": "What differs between two wheels, from the name down to the kernel.",
    "index": "A folder of wheels as a package index: pages, an object store, a server.",
}


@click.group("wheel", cls=Verbs, verbs=VERBS, package="rocwright.cli.wheel")
def command() -> None:
    """The machine code in wheels and libraries: see it, judge it, trim it, serve it."""
